"""No secret leaves the process: what is hidden, where, and how it is shown.

Policy: three independent rules, each enough on its own. By name (`secret_names`): the value under a secret's name, at any depth of mappings
and lists, and inside of texts (`secret_text`). By value (`known_secrets`): the text of every secret this process knows, encoded too, wherever
it turns up, keys included. By form (`secret_forms`): the published shapes of tokens. A hidden value is `<hidden: NAME>`, with neither
length nor hash. None and bools are no secrets and stay. Redaction is idempotent, changes nothing else, and never raises.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson

from slime_logging.backends.base import Json
from slime_logging.config import secret_names
from slime_logging.config.known_secrets import KnownSecrets
from slime_logging.config.name_rules import NameRules
from slime_logging.config.secret_files import stored_secrets
from slime_logging.config.secret_forms import FORMS, Form, looks_random
from slime_logging.config.secret_names import Verdict
from slime_logging.config.secret_text import MARK, hide_assigned
from slime_logging.config.serialize import arguments_to_json, to_json

MAX_CACHED = 50_000
"""Names and keys remembered; a job that makes up more of them than this starts over instead of growing."""

_NOT_IN_NAME = re.compile(r"[^\w.+ -]+")
_NAMED_BESIDE = ("name", "key", "env", "option", "variable", "header", "field")
_PASSES = 4
"""One pass nearly always settles a text; more are needed where hiding one part lets another be seen."""


class Redactor:
    """Hides this process's secrets; made by `Redactor.of`, taught more by `learn`.

    Safe to use from several threads: what it learns is only ever added to.
    """

    def __init__(self, *, hide: Sequence[str] = (), show: Sequence[str] = ()) -> None:
        """A redactor that knows no secret by value yet; see `of` for the arguments."""
        self._rules = NameRules(hide=hide, show=show)
        self._forms = [(form, re.compile(form.pattern)) for form in (*FORMS, *self._rules.forms)]
        self._hint = _quick_check([form for form, _ in self._forms], has_patterns=bool(self._rules.forms))
        self._known = KnownSecrets()
        self._keys: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._ordinary: frozenset[str] = frozenset()
        self._is_learning = False

    @classmethod
    def of(
        cls,
        args: Namespace | Mapping[str, Any] | None,
        environ: Mapping[str, str] = os.environ,
        *,
        hide: Sequence[str] = (),
        show: Sequence[str] = (),
    ) -> Redactor:
        """A redactor that knows the secrets of these arguments, this environment and the trackers' files of stored logins.

        Args:
            args: the job's arguments, nested or not; read, never changed.
            environ: the environment; `HOME`, `NETRC` and the like in it say where stored logins are.
            hide: more names to hide: exact ones, globs (`acme_*`), `re:` and a regular expression over the name, or `text:` and a
                regular expression over any text.
            show: names that are never hidden for what they are called; exact ones only.

        Raises:
            SettingsError: a pattern in `hide` is no regular expression, or `show` holds a pattern.
        """
        redactor = cls(hide=hide, show=show)
        with redactor._learning():
            values = {} if args is None else arguments_to_json(args)
            redactor._ordinary = frozenset(values)
            redactor.config(values)
            redactor.config({str(name): to_json(value) for name, value in environ.items()})
            for name, text in stored_secrets(environ):
                redactor.learn(name, text)
        return redactor

    def __repr__(self) -> str:
        return f"Redactor(num_known={len(self._known)}, num_hidden={len(self._hidden)})"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of everything hidden so far, sorted."""
        return tuple(sorted(self._hidden))

    def learn(self, name: str, value: object) -> None:
        """From now on hide this value wherever it turns up, as `<hidden: name>`; values that are too short or common are not learned."""
        json = to_json(value)
        shown = self._shown_name(name)
        for text in _texts(json):
            if self._known.learn(shown, text, self._ordinary):
                self._keys.clear()

    def config(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """The values with every secret hidden: by name at any depth, by value, by form. The mapping given is not changed."""
        out: dict[str, Json] = {}
        for _ in range(_PASSES):
            num_known = len(self._known)
            out = self._mapping(values, Verdict.SHOWN, "", is_row=False)
            if len(self._known) == num_known:
                break
        return out

    def row(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """As `config`, for the metrics of a row: numbers are measurements and are never hidden by name."""
        return self._mapping(values, Verdict.SHOWN, "", is_row=True)

    def key(self, name: str) -> str:
        """A key or metric name without secrets in it; remembered, so that asking again costs a lookup."""
        known = self._keys.get(name)
        if known is None:
            known = self.text(name)
            if len(self._keys) >= MAX_CACHED:
                self._keys.clear()
            self._keys[name] = known
        return known

    def text(self, s: str) -> str:
        """A text with every secret hidden: by the names in it, by value, by form."""
        for _ in range(_PASSES):
            out = self._text_once(s)
            if out == s:
                break
            s = out
        return s

    def _text_once(self, s: str) -> str:
        s = self._known.replace(s, self._mark)
        if not self._hint.search(s.lower()):
            return s
        if "\\u00" in s and s.lstrip()[:1] in ("{", "["):
            s = self._parsed(s)
        lower = s.lower()
        for form, pattern in self._forms:
            if form.hint in lower:
                s = self._without_form(s, form, pattern)
        if secret_names.HINT.search(lower) or self._rules.has_own:
            s = hide_assigned(s, self._rules.judge, self._hide_text)
        if " <shortened: " in s:
            s = self._without_cut_off(s)
        return s

    def _parsed(self, s: str) -> str:
        """JSON text whose names are written with escapes: read, redacted and written anew, only if there was something to hide."""
        try:
            values = orjson.loads(s)
        except orjson.JSONDecodeError:
            return s
        out = self._json(values, Verdict.SHOWN, "", is_row=False)
        return s if out == values else orjson.dumps(out).decode()

    def _without_cut_off(self, s: str) -> str:
        head, mark, tail = s.rpartition("... <shortened: ")
        found = self._known.cut_off(head)
        return s if found is None else f"{head[: found[0]]}{self._mark(found[1])}{mark}{tail}"

    def _without_form(self, s: str, form: Form, pattern: re.Pattern[str]) -> str:
        pieces: list[str] = []
        done = 0
        for match in pattern.finditer(s):
            start, end = match.span(match.re.groups)
            start, end = max(start, done), _after_mark(s, start, end)
            secret = s[start:end]
            if start >= end or _is_inside_mark(s, start) or MARK.fullmatch(secret):
                continue
            if "<hidden: " not in secret:
                self._learn_form(form, secret)
            pieces += [s[done:start], self._mark(form.label)]
            done = end
        return "".join(pieces) + s[done:] if pieces else s

    def _learn_form(self, form: Form, secret: str) -> None:
        self.learn(form.label, secret)
        if form.label == "url userinfo":
            self.learn(form.label, secret.partition(":")[2])
            self.learn(form.label, urllib.parse.unquote(secret.partition(":")[2]))

    def _hide_text(self, name: str, value: str) -> str:
        if not MARK.search(value):
            self.learn(secret_names.leaf(name), value)
        return self._mark(self._shown_name(name))

    def _shown_name(self, name: str) -> str:
        """What a marker calls a value: the last part of its name, itself without secrets and without what could end the marker."""
        shown = _NOT_IN_NAME.sub("", self._known.replace(secret_names.leaf(name), lambda _: "secret"))
        return shown.strip()[:64] or "secret"

    def _mark(self, name: str) -> str:
        if not self._is_learning:
            self._hidden.add(name)
        return f"<hidden: {name}>"

    def _json(self, value: Json, verdict: Verdict, name: str, *, is_row: bool) -> Json:
        cls = type(value)
        if value is None or cls is bool:
            return self._mark(self._shown_name(name)) if verdict is Verdict.FORCED and value is not None else value
        if cls is str:
            return self._string(value, verdict, name)  # type: ignore[arg-type]
        if cls is dict:
            return self._mapping(value, verdict, name, is_row=is_row)  # type: ignore[arg-type]
        if cls is list:
            return self._list(value, verdict, name, is_row=is_row)  # type: ignore[arg-type]
        is_hidden = verdict >= Verdict.IN_DATA and not is_row
        if is_hidden or (cls is int and self._known.is_known(str(value))):
            self.learn(name, str(value))
            return self._mark(self._shown_name(name))
        return value

    def _string(self, value: str, verdict: Verdict, name: str) -> str:
        if verdict is Verdict.SHOWN:
            return self.text(value)
        if not value or MARK.fullmatch(value):
            return value
        if verdict >= Verdict.IN_DATA or looks_random(value):
            self.learn(name, value)
            return self._mark(self._shown_name(name))
        return self.text(value)

    def _mapping(self, values: Mapping[str, Json], verdict: Verdict, name: str, *, is_row: bool) -> dict[str, Json]:
        out: dict[str, Json] = {}
        beside = self._named_beside(values) if "value" in values else ""
        for key, value in values.items():
            own = self._rules.judge(key)
            inner, inner_name = (own, key) if own >= verdict else (verdict, name)
            if beside and key == "value":
                inner, inner_name = Verdict.HIDDEN, beside
            shown = self.key(key)
            if verdict >= Verdict.IN_DATA and looks_random(shown):
                self.learn(name, key)
                shown = self._mark(self._shown_name(name))
            if shown in out:
                shown = next(f"{shown} ({n})" for n in range(2, len(out) + 3) if f"{shown} ({n})" not in out)
            out[shown] = self._json(value, inner, inner_name, is_row=is_row)
        return out

    def _named_beside(self, values: Mapping[str, Json]) -> str:
        """The secret's name in a mapping such as `{"name": "API_KEY", "value": ...}`; empty if there is none."""
        for key in _NAMED_BESIDE:
            name = values.get(key)
            if isinstance(name, str) and self._rules.judge(name) >= Verdict.IN_DATA:
                return name
        return ""

    def _list(self, values: list[Json], verdict: Verdict, name: str, *, is_row: bool) -> list[Json]:
        if verdict >= Verdict.IN_DATA:
            return [self._json(value, verdict, name, is_row=is_row) for value in values]
        out: list[Json] = []
        pending = ""
        for index, value in enumerate(values):
            if pending and not (isinstance(value, str) and re.match(r"--?[A-Za-z]", value)):
                out.append(self._json(value, Verdict.HIDDEN, pending, is_row=is_row))
                pending = pending if pending.endswith("s") else ""
                continue
            pending = self._flag(value)
            if not pending and len(values) == 2 and index == 0:
                pending = self._pair(value, values[1])
            out.append(self._json(value, verdict, name, is_row=is_row))
        return out

    def _flag(self, value: Json) -> str:
        """The name of a secret's flag that stands alone in a command line, so that the next item is its value."""
        if isinstance(value, str) and re.fullmatch(r"--?[A-Za-z][\w./-]*", value):
            name = value.lstrip("-").replace("-", "_")
            if self._rules.judge(name) >= Verdict.IN_DATA:
                return name
        return ""

    def _pair(self, first: Json, second: Json) -> str:
        """The name in a `[name, value]` pair whose name is a secret's; two names beside each other are no pair."""
        if (
            not isinstance(first, str)
            or not re.fullmatch(r"\w[\w./-]*", first)
            or self._rules.judge(first) < Verdict.HIDDEN
        ):
            return ""
        return "" if isinstance(second, str) and re.fullmatch(r"[A-Za-z]+(?:_[A-Za-z]+)+", second) else first

    @contextmanager
    def _learning(self) -> Iterator[None]:
        self._is_learning = True
        try:
            yield
        finally:
            self._is_learning = False
            self._keys.clear()


def _is_inside_mark(s: str, at: int) -> bool:
    opened = s.rfind("<hidden: ", 0, at)
    return opened >= 0 and (mark := MARK.match(s, opened)) is not None and opened < at < mark.end()


def _after_mark(s: str, start: int, end: int) -> int:
    """The end of a match, moved behind the mark it ends in."""
    opened = s.rfind("<hidden: ", start, min(len(s), end + 8))
    mark = MARK.match(s, opened) if opened >= 0 else None
    return mark.end() if mark and opened < end < mark.end() else end


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _quick_check(forms: list[Form], *, has_patterns: bool) -> re.Pattern[str]:
    """One pattern, over lower-case text, that finds whatever any name or form could find."""
    if has_patterns:
        return re.compile("")
    hints = sorted({form.hint for form in forms if len(form.hint) > 2})
    short = [
        r"\bgh[pousr]_",
        r"\bgl(?:pat|ptt|dt|rt|cbt|oas|soat|ffct|imt|agent)-",
        r"a3t|akia|asia|abia|acca",
        r"hv[sbr]\.",
        "q~",
    ]
    return re.compile("|".join([secret_names.HINT.pattern, *map(re.escape, hints), *short]))


def escape_terminal(text: str) -> str:
    """The text with control characters and terminal escapes made visible (`\\x1b`), for output to a terminal; newlines and tabs stay."""
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
MAX_EXCEPTION_CHARS = 500
"""Of an exception's line: enough for an HTTP error with its address, and short enough for a log."""


def safe_exception_text(redactor: Redactor, exc: BaseException) -> str:
    """`TypeName: message` of a foreign exception on one line, redacted, without terminal escapes, shortened; never raises."""
    try:
        message = str(exc)
    except Exception:
        message = "<unreadable>"
    line = " ".join(redactor.text(message).split())
    line = escape_terminal(f"{type(exc).__name__}: {line}" if line else type(exc).__name__)
    return line if len(line) <= MAX_EXCEPTION_CHARS else line[:MAX_EXCEPTION_CHARS].rstrip() + "..."
