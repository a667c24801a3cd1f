"""No secret leaves the process: what is hidden, where, and how it is shown.

Policy: three independent rules, each enough on its own. By name (`secret_names`): the value under a
secret's name, at any depth of mappings and lists, and inside of texts (`secret_text`). By value
(`known_secrets`): the text of every secret this process knows, encoded too, wherever it turns up,
keys included. By form (`secret_forms`): the published shapes of tokens. A hidden value is `<hidden:
NAME>`, with neither length nor hash. Redaction is idempotent, changes nothing else, never raises,
and its time is linear in the text.

What is known is learned from arguments, environment, command line, stored logins and
configuration. Rows teach nothing: their texts are data, in which known secrets, tokens and random
values of assignments are hidden, and nothing else.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import sys
import urllib.parse
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from slime_logging.redaction import marks, search, secret_names
from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.row_text import RowTexts
from slime_logging.redaction.safe_text import escape_terminal, safe_exception_text
from slime_logging.redaction.search import Budget
from slime_logging.redaction.secret_files import stored_secrets
from slime_logging.redaction.secret_forms import LOGIN, FormRules, login_in
from slime_logging.redaction.secret_json import JsonWalk, texts_in
from slime_logging.redaction.secret_names import NameRules
from slime_logging.redaction.secret_text import hide_assigned
from slime_logging.values.json_value import Json
from slime_logging.values.serialize import arguments_to_json, to_json

__all__ = ["Redactor", "escape_terminal", "safe_error", "safe_exception_text"]

_Error = TypeVar("_Error", bound=Exception)

MAX_NAMES = 200_000
"""Names whose redacted form is remembered; further ones are redacted each time."""
MAX_CACHED_MARKS = 10_000

MAX_PIECES = 200
"""Of a secret that are looked at: the parts of a cookie, of a command, of an address."""
_PIECE = re.compile(r"[^\s;,=&|<>\"'/:@]{16,}")

_PASSES = 3
"""One pass nearly always settles a text; more are needed where hiding one part lets another be
seen.
"""


class Redactor:
    """Hides this process's secrets; made by `Redactor.of`, taught more by `learn` and `config`.

    Safe to use from several threads and from signal handlers: nothing waits, and what is learned is
    only ever added to.
    """

    def __init__(self, *, hide: Sequence[str] = (), show: Sequence[str] = ()) -> None:
        """A redactor that knows no secret by value yet; see `of` for the arguments."""
        self._rules = NameRules(hide=hide, show=show)
        self._forms = FormRules(hide)
        self._known = KnownSecrets()
        self._keys: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._marks: tuple[int, dict[str, str]] = (0, {})
        self._row_texts = RowTexts(self._known, self._forms, self._rules.judge, self._shown)
        self._ordinary: frozenset[str] = frozenset()

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
            args: the job's arguments, nested or not; read, never changed.
            environ: the environment; `HOME`, `NETRC` and the like in it say where logins are.
            argv: the command line.
            hide: more names to hide: exact ones, globs (`acme_*`), `re:` and a regular expression
                over the name, or `text:` and a regular expression (RE2) over any text.
            show: names that are never hidden for what they are called; exact ones only.

        Raises:
            SettingsError: a pattern in `hide` is no regular expression, or `show` holds a pattern.
        """
        redactor = cls(hide=hide, show=show)
        values = {} if args is None else arguments_to_json(args)
        redactor._ordinary = frozenset(values)
        for name, text in stored_secrets(environ):
            redactor.learn(name, text)
        given = {str(name): to_json(value) for name, value in environ.items()}
        for learned in (values, given, {"argv": to_json(list(argv))}):
            redactor._learn_from(learned)
        return redactor

    def __repr__(self) -> str:
        return f"Redactor(num_known={len(self._known)}, num_hidden={len(self._hidden)})"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of everything hidden so far, sorted."""
        return tuple(sorted(self._hidden.copy()))

    @property
    def num_known(self) -> int:
        """How many secret texts are known."""
        return len(self._known)

    def learn(self, name: str, value: object) -> None:
        """From now on hide this value wherever it turns up, as `<hidden: name>`; values that are
        too short or common are not learned.
        """
        for text in texts_in(to_json(value)):
            self._learn(name, text)

    def config(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """The values with every secret hidden: by name at any depth, by value, by form; and learned
        from. The mapping given is not changed.
        """
        self._learn_from(values)
        keys: dict[str, str] = {}
        walk = JsonWalk(
            self._rules.judge,
            self.text,
            functools.partial(self._key, keys),
            self._show,
            self._known.is_known,
        )
        out = walk.mapping(values)
        self._remember(keys)
        return out

    def row(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """The metrics of one row without secrets: known ones and tokens are hidden wherever they
        stand, under a secret's name and in an assignment what looks random, and nothing else.

        A row costs milliseconds a megabyte. In one that holds thousands of secrets, what is
        behind the first `MAX_REPLACED` is hidden whole, and behind `MAX_LOOKED_AT` assignments
        further ones stay.
        """
        # The texts are looked through as one, parted by a byte that no UTF-8 has.
        texts: list[bytes] = []

        def collect(text: str) -> str:
            texts.append(text.encode("utf-8", "surrogatepass"))
            return text

        walk = functools.partial(
            JsonWalk,
            self._rules.judge,
            hide=lambda name, _: self._shown(name),
            is_known=self._known.is_known,
            in_row=True,
        )
        keys: dict[str, str] = {}
        key = functools.partial(self._key, keys)
        out = walk(text=collect, key=key).mapping(values)
        self._remember(keys)
        changed = self._row_texts.changed(texts)
        if not changed:
            return out
        numbers = itertools.count()
        return walk(text=lambda text: changed.get(next(numbers)) or text, key=key).mapping(values)

    def key(self, name: str) -> str:
        """A key or metric name without secrets in it. It is remembered: a secret that is learned
        later does not change it.
        """
        keys: dict[str, str] = {}
        shown = self._key(keys, name)
        self._remember(keys)
        return shown

    def text(self, s: str) -> str:
        """A text with every secret hidden: by the names in it, by value, by form. What cannot be
        looked through is hidden whole.
        """
        return self._text(s, self._show)

    def message(self, s: str) -> str:
        """One of our own messages, by value and by form: its own words, such as `--wandb-key or`,
        are not judged.
        """
        s = self._by_value_and_form(s, self._show)
        *cut, rest = s.split("…")
        return "".join(f"{self._without_tail(head)}…" for head in cut) + rest

    def _key(self, keys: dict[str, str], name: str) -> str:
        known = self._keys.get(name) or keys.get(name)
        if known is None:
            data = name.encode("utf-8", "surrogatepass")
            after = self._row_texts.hidden(data)
            known = keys[name] = name if after == data else search.decoded(after)
        return known

    def _remember(self, keys: Mapping[str, str]) -> None:
        if len(self._keys) < MAX_NAMES:
            for name, shown in keys.items():
                self._keys.setdefault(name, shown)

    def _text(self, s: str, hide: Callable[[str, str], str]) -> str:
        try:
            for _ in range(_PASSES):
                before = s
                s = self._by_value_and_form(s, hide)
                if not self._rules.has_own and not secret_names.may_be_secret(s):
                    break
                if "\\u00" in s and s.lstrip()[:1] in ("{", "["):
                    s = self._parsed(s, hide)
                s = hide_assigned(s, self._rules.judge, hide)
                if s == before:
                    break
        except (RecursionError, MemoryError):
            return self._shown("text")
        if hide != self._show:
            return s
        head, cut, tail = s.rpartition("... <shortened: ")
        return f"{self._without_tail(head)}{cut}{tail}" if cut else s

    def _by_value_and_form(self, s: str, hide: Callable[[str, str], str]) -> str:
        data = before = s.encode("utf-8", "surrogatepass")
        if hide == self._show:
            data = self._known.replace(before, self._shown, Budget())
        data = self._forms.hide(data, hide, False, Budget())
        return s if data == before else search.decoded(data)

    def _parsed(self, s: str, hide: Callable[[str, str], str]) -> str:
        """JSON text whose names are written with escapes: read, redacted and written anew, only if
        there was something to hide.
        """
        try:
            values = orjson.loads(s)
        except orjson.JSONDecodeError:
            return s
        known = self._known.is_known
        out = JsonWalk(self._rules.judge, lambda text: text, str, hide, known).any(values)
        return s if out == values else orjson.dumps(out).decode()

    def _without_tail(self, head: str) -> str:
        """A text that was cut off, without the beginning of a secret at its end."""
        found = self._known.cut_off(head)
        return head if found is None else f"{head[: found[0]]}{self._shown(found[1])}"

    def _shown(self, name: str) -> str:
        """The mark for a value of this name, which is told in `hidden`."""
        size, known = self._marks
        if size != len(self._known) or len(known) > MAX_CACHED_MARKS:
            self._marks = (len(self._known), known := {})
        if name not in known:
            leaf = secret_names.leaf(name).encode("utf-8", "surrogatepass")
            leaf = self._known.replace(leaf, lambda _: "secret", Budget())
            known[name] = marks.mark(leaf.decode("utf-8", "replace"))
            self._hidden.add(marks.name_in(known[name]))
        return known[name]

    def _show(self, name: str, _: str) -> str:
        return self._shown(name)

    def _learn_from(self, values: Mapping[str, Json]) -> None:
        """Learn every secret in the values, and the secrets inside of each."""
        text = functools.partial(self._text, hide=self._hide)
        JsonWalk(self._rules.judge, text, str, self._hide, self._known.is_known).mapping(values)

    def _hide(self, name: str, text: str) -> str:
        """Learn a value together with the secrets inside of it; the mark is shown to nobody."""
        if "<hidden: " not in text and self._learn(name, text):
            inside = functools.partial(self._text, hide=self._hide_inside)
            try:
                values = orjson.loads(text)
            except orjson.JSONDecodeError:
                values = text
            known = self._known.is_known
            JsonWalk(self._rules.judge, inside, str, self._hide_inside, known).any(values)
        return marks.mark(name)

    def _hide_inside(self, name: str, text: str) -> str:
        self._learn(name, text)
        return marks.mark(name)

    def _learn(self, name: str, text: str) -> bool:
        """Learn a text and, of `user:password`, quoted and in base64 too, the password."""
        leaf = secret_names.leaf(name)
        pieces = _PIECE.findall(text)[:MAX_PIECES]
        ways = {
            *(piece for piece in pieces if looks_random(piece)),
            text.strip("\"'"),
            text.rstrip("="),
            urllib.parse.unquote(text, errors="replace"),
            login_in(text),
        }
        ways |= {way.partition(":")[2] for way in ways if LOGIN.match(way)}
        return sum(self._known.learn(leaf, way, self._ordinary) for way in (text, *ways)) > 0


def safe_error(error: _Error, args: object, environ: Mapping[str, str] = os.environ) -> _Error:
    """One of our own errors about arguments, without the secrets of these arguments and this
    process in its message.
    """
    known = args if isinstance(args, (Namespace, Mapping)) else getattr(args, "__dict__", None)
    return type(error)(Redactor.of(known, environ, argv=sys.argv).message(str(error)))
