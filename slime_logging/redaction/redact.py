"""No secret leaves the process: what is hidden, where, and how it is shown.

Policy: three independent rules, each enough on its own. By name (`secret_names`): the value under a
secret's name, at any depth of mappings and lists, and inside of texts (`secret_text`). By value
(`known_secrets`): the text of every secret this process knows, encoded too, wherever it turns up,
keys included. By form (`secret_forms`): the published shapes of tokens. A hidden value is `<hidden:
NAME>`, with neither length nor hash. None and bools are no secrets and stay. Redaction is
idempotent, changes nothing else, and never raises.
"""

from __future__ import annotations

import os
import re
import sys
import urllib.parse
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson

from slime_logging.redaction import marks, secret_names
from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.name_rules import NameRules
from slime_logging.redaction.safe_text import escape_terminal, safe_exception_text
from slime_logging.redaction.secret_files import stored_secrets
from slime_logging.redaction.secret_forms import FormRules
from slime_logging.redaction.secret_json import JsonWalk
from slime_logging.redaction.secret_names import Verdict
from slime_logging.redaction.secret_text import hide_assigned
from slime_logging.values.json_value import Json
from slime_logging.values.serialize import arguments_to_json, to_json

__all__ = ["Redactor", "escape_terminal", "safe_error", "safe_exception_text"]

_Error = TypeVar("_Error", bound=Exception)

MAX_CACHED = 50_000
"""Names and keys remembered; a job that makes up more of them than this starts over instead of
growing.
"""

_PASSES = 4
"""One pass nearly always settles a text; more are needed where hiding one part lets another be
seen.
"""


class Redactor:
    """Hides this process's secrets; made by `Redactor.of`, taught more by `learn`.

    Safe to use from several threads: what it learns is only ever added to.
    """

    def __init__(self, *, hide: Sequence[str] = (), show: Sequence[str] = ()) -> None:
        """A redactor that knows no secret by value yet; see `of` for the arguments."""
        self._rules = NameRules(hide=hide, show=show)
        self._forms = FormRules(self._rules.forms)
        own = (
            ""
            if self._rules.has_own or not self._forms.hint
            else f"{secret_names.HINT.pattern}|{self._forms.hint}|<shortened: "
        )
        self._hint = re.compile(own)
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
        argv: Sequence[str] = (),
        hide: Sequence[str] = (),
        show: Sequence[str] = (),
    ) -> Redactor:
        """A redactor that knows the secrets of these arguments, this environment, this command line
        and the trackers' files of stored logins.

        Args:
            args: the job's arguments, nested or not; read, never changed. environ: the environment;
                `HOME`, `NETRC` and the like in it say where stored logins are. argv: the command
                line. hide: more names to hide: exact ones, globs (`acme_*`), `re:` and a regular
                expression over the name, or `text:` and a regular expression over any text.
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
            redactor.config({"argv": to_json(list(argv))})
            for name, text in stored_secrets(environ):
                redactor.learn(name, text)
        return redactor

    def __repr__(self) -> str:
        return f"Redactor(num_known={len(self._known)}, num_hidden={len(self._hidden)})"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of everything hidden so far, sorted."""
        return tuple(sorted(self._hidden))

    @property
    def num_known(self) -> int:
        """How many secret texts are known; when it grows, what was redacted before may need it
        again.
        """
        return len(self._known)

    @property
    def known_forms(self) -> tuple[str, ...]:
        """Every text that is hidden by its value: the known secrets, plain and encoded."""
        return self._known.forms

    @property
    def has_own_forms(self) -> bool:
        """Whether the user hides more than is published: any text may then hold a secret."""
        return not self._hint.pattern

    def learn(self, name: str, value: object) -> None:
        """From now on hide this value wherever it turns up, as `<hidden: name>`; values that are
        too short or common are not learned.
        """
        json = to_json(value)
        for text in _texts(json):
            if self._known.learn(self._own_name(name), text, self._ordinary):
                self._keys.clear()

    def config(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """The values with every secret hidden: by name at any depth, by value, by form. The mapping
        given is not changed.
        """
        out: dict[str, Json] = {}
        for _ in range(_PASSES):
            num_known = len(self._known)
            out = JsonWalk(self, is_row=False).mapping(values)
            if len(self._known) == num_known or self._is_learning:
                break
        return out

    def row(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """As `config`, for the metrics of a row: numbers are measurements and are never hidden by
        name.
        """
        return JsonWalk(self, is_row=True).mapping(values)

    def key(self, name: str) -> str:
        """A key or metric name without secrets in it; remembered, so that asking again costs a
        lookup.
        """
        if self._is_learning:
            return self.text(name)
        known = self._keys.get(name)
        if known is None:
            known = self.text(name)
            if len(self._keys) >= MAX_CACHED:
                self._keys.clear()
            self._keys[name] = known
        return known

    def text(self, s: str) -> str:
        """A text with every secret hidden: by the names in it, by value, by form. What cannot be
        looked through is hidden whole.
        """
        try:
            for _ in range(_PASSES):
                out = self._text_once(s)
                if out == s:
                    return s
                s = out
        except (RecursionError, MemoryError):
            return self.shown("text")
        return s

    def message(self, s: str) -> str:
        """One of our own messages, by value and by form: its own words, such as `--wandb-key or`,
        are not judged.
        """
        s = self._forms.hide(self._known.replace(s, self.shown), self._hide_form)
        *cut, rest = s.split("…")
        return "".join(f"{self._without_tail(head)}…" for head in cut) + rest

    def _text_once(self, s: str) -> str:
        if not self._is_learning:
            s = self._known.replace(s, self.shown)
        if not self._hint.search(s.lower()):
            return s
        if "\\u00" in s and s.lstrip()[:1] in ("{", "["):
            s = self._parsed(s)
        s = self._forms.hide(s, self._hide_form)
        s = hide_assigned(s, self._rules.judge, self._hide_text)
        return self._without_cut_off(s) if "... <shortened: " in s else s

    def _parsed(self, s: str) -> str:
        """JSON text whose names are written with escapes: read, redacted and written anew, only if
        there was something to hide.
        """
        try:
            values = orjson.loads(s)
        except orjson.JSONDecodeError:
            return s
        out = JsonWalk(self, is_row=False).any(values, Verdict.SHOWN, "")
        return s if out == values else orjson.dumps(out).decode()

    def _without_cut_off(self, s: str) -> str:
        head, cut, tail = s.rpartition("... <shortened: ")
        return f"{self._without_tail(head)}{cut}{tail}"

    def _without_tail(self, head: str) -> str:
        """A text that was cut off, without the beginning of a secret at its end."""
        found = self._known.cut_off(head)
        return head if found is None else f"{head[: found[0]]}{self.shown(found[1])}"

    def _hide_form(self, label: str, secret: str) -> str:
        if "<hidden: " not in secret:
            self._notice(label, secret)
        if label == "url userinfo":
            password = secret.partition(":")[2]
            self._notice(label, password)
            self._notice(label, urllib.parse.unquote(password))
        return self.shown(label)

    def _hide_text(self, name: str, value: str) -> str:
        self._notice(name, value)
        return self.shown(name)

    def _notice(self, name: str, text: str) -> None:
        if self._known.notice(self._own_name(name), text, self._ordinary):
            self._keys.clear()

    def _own_name(self, name: str) -> str:
        """What a mark calls a value: the last part of its name, itself without secrets."""
        leaf = secret_names.leaf(name)
        return leaf if self._is_learning else self._known.replace(leaf, lambda _: "secret")

    def judge(self, name: str) -> Verdict:
        """How a value under this name is treated."""
        return self._rules.judge(name)

    def is_known(self, text: str) -> bool:
        """Whether the whole text is a known secret."""
        return self._known.is_known(text)

    def shown(self, name: str) -> str:
        """The mark for a value of this name."""
        shown = marks.mark(self._own_name(name))
        if not self._is_learning:
            self._hidden.add(marks.name_in(shown))
        return shown

    def hide(self, name: str, text: str, *, is_own: bool) -> str:
        """The mark for a value, which is remembered; `is_own` says that the name is its own, not
        that of what is around it.
        """
        if is_own and self._is_learning:
            self.learn(name, text)
        else:
            self._notice(name, text)
        return self.shown(name)

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """While it lasts, texts are looked through for secrets only: nothing of the result is shown
        to anyone, so what is known already need not be replaced in it, nor counted as hidden.
        """
        self._is_learning = True
        try:
            yield
        finally:
            self._is_learning = False


def safe_error(error: _Error, args: object, environ: Mapping[str, str] = os.environ) -> _Error:
    """One of our own errors about arguments, without the secrets of these arguments and this
    process in its message.
    """
    known = args if isinstance(args, (Namespace, Mapping)) else getattr(args, "__dict__", None)
    return type(error)(Redactor.of(known, environ, argv=sys.argv).message(str(error)))


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
