"""A text of a configuration, or one of our messages, without secrets: by the names in it, by value,
by form; and what a configuration teaches: whole secrets, and the secrets inside of them.

Policy: never raises; what cannot be looked through is hidden whole.
"""

from __future__ import annotations

import functools
import re
import urllib.parse
from collections.abc import Callable, Mapping

import orjson

from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.placeholder import placeholder
from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.search import Budget, Found, decoded, encoded
from slime_logging.redaction.secret_forms import LOGIN, FormRules, login_in
from slime_logging.redaction.secret_json import JsonWalk
from slime_logging.redaction.secret_names import NameRules, leaf, may_be_secret
from slime_logging.redaction.secret_text import hide_assigned
from slime_logging.values.json_value import Json

MAX_PIECES = 200
"""Of a secret that are looked at: the parts of a cookie, of a command, of an address."""
_PIECE = re.compile(r"[^\s;,=&|<>\"'/:@]{16,}")
_PASSES = 3
"""One settles nearly every text; more are needed where hiding one part shows another."""


class ConfigTexts:
    """Hides what is secret in texts, and fills the known secrets.

    Attributes:
        ordinary: texts that are no secrets here, such as the names of the options.
    """

    def __init__(
        self,
        known: KnownSecrets,
        forms: FormRules,
        rules: NameRules,
        shown: Callable[..., str],
    ) -> None:
        """`shown(name)` stands for a value, which may be given too."""
        self.ordinary: frozenset[str] = frozenset()
        self._known, self._forms, self._rules, self._shown = known, forms, rules, shown

    def text(self, s: str) -> str:
        """A text with every secret hidden."""
        s = self._found(s, self._shown, self._by_value_and_form)
        head, cut, tail = s.rpartition("... <shortened: ")
        return f"{self._without_tail(head)}{cut}{tail}" if cut else s

    def message(self, s: str) -> str:
        """One of our own messages, by value and form."""
        *cut, rest = self._by_value_and_form(s).split("…")
        return "".join(f"{self._without_tail(head)}…" for head in cut) + rest

    def learn_from(self, values: Mapping[str, Json]) -> None:
        """Learn every secret in the values, and the secrets inside of each."""
        self._teaching(self._learned).mapping(values)

    def learn(self, name: str, text: str) -> bool:
        """Learn a text, its parts that look random, and of `user:password`, quoted and in base64
        too, the password; returns whether something is new.
        """
        ways = {
            *(piece for piece in _PIECE.findall(text)[:MAX_PIECES] if looks_random(piece)),
            text.strip("\"'"),
            text.rstrip("="),
            urllib.parse.unquote(text, errors="replace"),
            login_in(text),
        }
        ways |= {way.partition(":")[2] for way in ways if LOGIN.match(way)}
        last = leaf(name)
        return sum(self._known.learn(last, way, self.ordinary) for way in (text, *ways)) > 0

    def _teaching(self, learned: Found) -> JsonWalk:
        """Teaches with what it finds; nobody sees what it makes of the values."""
        text = functools.partial(self._found, hide=learned)
        return JsonWalk(self._rules.judge, text, str, learned, self._known.is_known)

    def _learned(self, name: str, text: str, *, is_inside: bool = False) -> str:
        if is_inside:
            self.learn(name, text)
        elif "<hidden: " not in text and self.learn(name, text):
            try:
                values = orjson.loads(text)
            except orjson.JSONDecodeError:
                values = text
            self._teaching(functools.partial(self._learned, is_inside=True)).any(values)
        return placeholder(name)

    def _found(self, s: str, hide: Found, first: Callable[[str], str] | None = None) -> str:
        """The text with `hide(name, value)` for what is secret by a name in it or by its form.

        `first` is done before each look at the names, instead of the search for forms.
        """
        try:
            for _ in range(_PASSES):
                before = s
                s = first(s) if first else self._by_form(s, hide)
                if not self._rules.has_own and not may_be_secret(s):
                    break
                if "\\u00" in s and s.lstrip()[:1] in ("{", "["):
                    s = self._parsed(s, hide)
                s = hide_assigned(s, self._rules.judge, hide)
                if s == before:
                    break
        except (RecursionError, MemoryError):
            return self._shown("text")
        return s

    def _by_value_and_form(self, s: str) -> str:
        known = self._known.replace(encoded(s), self._shown, Budget())
        return self._by_form(decoded(known), self._shown)

    def _by_form(self, s: str, hide: Found) -> str:
        return decoded(self._forms.hide(encoded(s), hide, False, Budget()))

    def _parsed(self, s: str, hide: Found) -> str:
        """JSON text whose names are written with escapes: read, redacted and written anew, only if
        there was something to hide.
        """
        try:
            values = orjson.loads(s)
        except orjson.JSONDecodeError:
            return s
        out = JsonWalk(self._rules.judge, str, str, hide, self._known.is_known).any(values)
        return s if out == values else orjson.dumps(out).decode()

    def _without_tail(self, head: str) -> str:
        """A text that was cut off, without the beginning of a secret at its end."""
        found = self._known.cut_off(head)
        return head if found is None else f"{head[: found[0]]}{self._shown(found[1])}"
