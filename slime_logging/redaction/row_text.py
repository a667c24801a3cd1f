"""Secrets in the texts of a row, which are data: values that look random and are assigned to a
secret's name (`token=...`, `"api_key": "..."`, `--api-key ...`), known secrets, tokens, and nothing
else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from slime_logging.redaction import search
from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.search import Budget, Found, Replacement
from slime_logging.redaction.secret_forms import ANY_TOKEN, FormRules
from slime_logging.redaction.secret_names import Judge, Verdict
from slime_logging.redaction.secret_words import HINT

MAX_REPLACED, MAX_LOOKED_AT = 2_000, 1_000
"""In one row: each costs 5 to 18 microseconds."""

_HEAD = (
    rf"(?i:{HINT})(?:[\w.\x80-\xfe-]{{0,48}}(?:\\{{0,8}}[\"'`]|\*\*)?\]?[ \t]{{0,4}}"
    r"(?:=>|:=|==?|\||:(?:\*\*|[ \t]?[>|][+-]?\r?\n)?)[ \t]{0,8}(?:(?:&\w{1,32}|!!str) )?|"
    r"[\w.-]{0,48}(?:%2[27])?(?:%3[Dd]|%3[Aa](?:%20|\+)?)(?:%2[27])?)"
    r"(?:\\{0,8}[\"'`]|[bBrRuUfF]{1,2}[\"'])?"
)
_FLAG_HEAD = rf"--[\w-]{{0,48}}(?i:{HINT})[\w-]{{0,48}}[ \t]{{1,4}}[\"']?"
_RANDOM = r"[^\s\"'`<>(){}\[\],;&|\\=:\x00\x7f-\xff]{16,}={0,2}"
_HEADS = re.compile(f"{_FLAG_HEAD}|{_HEAD}".encode())
_NAME_BYTES = re.compile(rb"[\w.\-/%\x80-\xfe]*")


_ASSIGNMENT = f"(?:{_FLAG_HEAD}|{_HEAD})(?:{_RANDOM})"


def hide_random(data: bytes, judge: Judge, hide: Found, budget: Budget) -> bytes:
    """The UTF-8 of a row's text with every value that looks random and is assigned to a secret name
    replaced by `hide(name, value)`.
    """

    def decide(start: int, end: int) -> Replacement | None:
        head = _HEADS.match(data, start, end)
        if head is None:
            return None
        before = _NAME_BYTES.match(data[max(0, start - 64) : start][::-1])
        written = (before.group()[::-1] if before else b"") + data[start : head.end()]
        name = re.match(r"[\w./-]*", written.decode(errors="replace").rpartition("%3F")[2])
        value = data[head.end() : end].decode(errors="replace")
        found = name.group().strip("-") if name else ""
        if not found or judge(found) is Verdict.SHOWN or not looks_random(value):
            return None
        return head.end(), end, hide(found, value)

    return search.replaced(data, search.lasting(_ASSIGNMENT), decide, budget, is_doubtful=True)


class RowTexts:
    """Hides what is secret in the texts of one row after the other."""

    def __init__(
        self, known: KnownSecrets, forms: FormRules, judge: Judge, shown: Callable[..., str]
    ) -> None:
        """`shown(name)` stands for a value, which may be given too."""
        self._known, self._forms, self._judge, self._shown = known, forms, judge, shown
        self._suspects: tuple[int, Any] = (-1, None)

    def changed(self, texts: Sequence[bytes]) -> dict[int, str]:
        """What is to stand for the texts of a row, by their places; of most rows none."""
        suspects = search.holding(texts, self._suspect())
        if not suspects:
            return {}
        after = self.hidden(b"\xff".join(texts[at] for at in suspects)).split(b"\xff")
        pairs = zip(suspects, after, strict=True)
        return {at: search.decoded(new) for at, new in pairs if new != texts[at]}

    def hidden(self, data: bytes) -> bytes:
        """The UTF-8 of texts, parted by bytes of 255, without secrets."""
        budget = Budget(MAX_REPLACED, MAX_LOOKED_AT)
        data = self._known.replace(data, self._shown, budget)
        data = self._forms.hide(data, self._shown, True, budget)
        return hide_random(data, self._judge, self._shown, budget)

    def overwritten(self, data: bytes) -> bytes:
        """Any bytes, with known secrets and tokens replaced by as many `x`."""

        def decide(start: int, end: int) -> Replacement:
            start += not data[start : start + 1].isalnum()  # what stands before a token
            return start, end, "x" * (end - start)

        data = self._known.overwritten(data)
        return search.replaced(data, search.lasting(ANY_TOKEN), decide, Budget())

    def _suspect(self) -> Any:
        """Finds whatever `hidden` could replace, in one pass."""
        size, pattern = self._suspects
        if size != len(self._known):
            size = len(self._known)
            rules = (self._known.source, self._forms.source, _ASSIGNMENT)
            pattern = search.engine("|".join(f"(?:{rule})" for rule in rules if rule))
            self._suspects = (size, pattern)
        return pattern
