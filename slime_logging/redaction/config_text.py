"""A text of a configuration, or one of our messages, without secrets: by the names in it, by value,
by form.

Policy: never raises; what cannot be looked through is hidden whole.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.search import Budget, Found, decoded
from slime_logging.redaction.secret_forms import FormRules
from slime_logging.redaction.secret_json import JsonWalk
from slime_logging.redaction.secret_names import NameRules, may_be_secret
from slime_logging.redaction.secret_text import hide_assigned

_PASSES = 3
"""One pass nearly always settles a text; more are needed where hiding one part lets another be
seen.
"""


class ConfigTexts:
    """Hides what is secret in texts.

    Args:
        known: the secrets of this process.
        forms: the shapes of tokens.
        rules: how a value under a name is treated.
        shown: what stands for the value of a name.
    """

    def __init__(
        self,
        known: KnownSecrets,
        forms: FormRules,
        rules: NameRules,
        shown: Callable[[str], str],
    ) -> None:
        self._known = known
        self._forms = forms
        self._rules = rules
        self._shown = shown

    def text(self, s: str) -> str:
        """A text with every secret hidden."""
        s = self.found(s, lambda name, _: self._shown(name), self._by_value_and_form)
        head, cut, tail = s.rpartition("... <shortened: ")
        return f"{self._without_tail(head)}{cut}{tail}" if cut else s

    def message(self, s: str) -> str:
        """One of our own messages, by value and form."""
        *cut, rest = self._by_value_and_form(s).split("…")
        return "".join(f"{self._without_tail(head)}…" for head in cut) + rest

    def found(self, s: str, hide: Found, first: Callable[[str], str] | None = None) -> str:
        """The text with `hide(name, value)` for what is secret by a name in it or by its form.

        Args:
            s: the text.
            hide: what stands for a value.
            first: done before each look at the names, instead of the search for forms.
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
        before = s.encode("utf-8", "surrogatepass")
        data = self._known.replace(before, self._shown, Budget())
        s = s if data == before else decoded(data)
        return self._by_form(s, lambda name, _: self._shown(name))

    def _by_form(self, s: str, hide: Found) -> str:
        before = s.encode("utf-8", "surrogatepass")
        data = self._forms.hide(before, hide, False, Budget())
        return s if data == before else decoded(data)

    def _parsed(self, s: str, hide: Found) -> str:
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
