"""The quick way through long texts that models wrote: only where something stands that could be a
secret is a text looked at closely.

Policy: what `Redactor.row` hides is hidden here too. A secret has a mark that costs next to nothing
to find: a run of 16 or more letters and digits that is no plain word (tokens, keys, random values),
an `@` behind a colon, a known text, or one of `FRAMES`. The neighbourhood of the first two is
given to the redactor, and a text with one of the others as a whole. A megabyte without
any takes some 4 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from slime_logging.redaction.redact import Redactor

RUN_CHARS = 16
NEAR_CHARS = 160
"""How far before a value its name may stand."""

FRAMES = {
    "-----BEGIN": re.compile(r"-----BEGIN"),
    "asic": re.compile(r"(?i:basic)\s+(?=[A-Za-z0-9+/]*[0-9A-Z+/=])[A-Za-z0-9+/]{8}"),
    "sshp": re.compile(r"sshpass"),
    "curl": re.compile(r"curl\s[^\n]{0,500}?(?:-u|--user|--proxy-user)[ =]?\S"),
    "machin": re.compile(r"machine\s+\S+\s+(?:login|account|password)\s"),
}
"""What frames secrets that may be shorter than a run (keys in blocks, logins, command lines): a
text that is quick to look for, since its last letter is no blank, and what it must be part of.
"""
MAX_WORDS = 200
LONG_RUN_CHARS = 2_048
"""A longer run is data; a known secret inside of it is still looked for."""
_MAX_STEP_CHARS = 512

_RUN = b"x" * RUN_CHARS
_IN_RUN = frozenset(b"_-+/=%~")


def _kind(code: int) -> bytes:
    char = chr(code)
    if code > 0x7F or not (char.isalnum() or code in _IN_RUN):
        return b" "
    return b"0" if char.isdigit() else b"A" if char.isupper() else b"a" if char.islower() else b"-"


_KINDS = b"".join(map(_kind, range(256)))
_TABLE = bytes(0x20 if kind == 0x20 else 0x78 for kind in _KINDS)


class Skimmer:
    """Hides a redactor's secrets in long texts; knows as many as the redactor did at the last
    `refresh`.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._words: tuple[str, ...] = ()
        self._others: tuple[str, ...] = ()
        self._num_known = -1
        self._must_look = redactor.has_own_forms

    def refresh(self) -> None:
        """Take in what the redactor has learned since."""
        if self._num_known == self._redactor.num_known:
            return
        self._num_known = self._redactor.num_known
        # Most forms of a secret are found as a run; the others must be looked for by themselves.
        short = {
            form
            for form in self._redactor.known_forms
            if len(form.split()) > 1 or not _has_run(form)
        }
        self._words = tuple(sorted(short, key=len))
        self._others = tuple(set(self._redactor.known_forms) - short)
        self._must_look |= len(self._words) > MAX_WORDS

    def hide(self, column: str, text: str) -> str:
        """The text without secrets; `column` is its name."""
        if self._must_look or _is_framed(text) or any(word in text for word in self._words):
            return self._closely(column, text)
        runs = sorted((*_runs(text), *_logins(text)))
        is_data = any(end - start > LONG_RUN_CHARS for start, end in runs)
        if is_data and any(form in text for form in self._others):
            return self._closely(column, text)
        pieces: list[str] = []
        done = 0
        for start, end in _windows(text, runs):
            seen = text[start:end]
            pieces += [text[done:start], self._closely(column, seen)]
            done = end
        return "".join(pieces) + text[done:] if pieces else text

    def _closely(self, column: str, text: str) -> str:
        return str(next(iter(self._redactor.row({column: text}).values())))


def _is_framed(text: str) -> bool:
    return any(word in text and frame.search(text) for word, frame in FRAMES.items())


def _logins(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each `...:...@`, as in an address with a password."""
    at = text.find("@")
    while at >= 0:
        start = _space_before(text, at)
        if ":" in text[start:at] or "%3" in text[start:at]:
            yield start, at + 1
        at = text.find("@", at + 1)


def _has_run(text: str) -> bool:
    return next(_runs(text), None) is not None


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each run that is no plain word, in order."""
    data = text.encode("latin-1", "replace")
    marks = data.translate(_TABLE)
    at = marks.find(_RUN)
    while at >= 0:
        end = marks.find(b" ", at)
        end = len(marks) if end < 0 else end
        kinds = data[at:end].translate(_KINDS)
        if (b"0" in kinds and (b"a" in kinds or b"A" in kinds)) or (
            b"a" in kinds and b"A" in kinds
        ):
            yield at, end
        at = marks.find(_RUN, end)


def _windows(text: str, runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What to look at closely: each run with what stands before it, cut between words; of a run
    that is longer than any token, the ends. Windows that touch are one.
    """
    start = end = -1
    for first, last in _ends(runs):
        from_ = _space_before(text, max(0, first - NEAR_CHARS))
        to = _space_behind(text, last)
        if end >= from_:
            end = max(end, to)
            continue
        if end >= 0:
            yield start, end
        start, end = from_, to
    if end >= 0:
        yield start, end


def _ends(runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for first, last in runs:
        if last - first > LONG_RUN_CHARS:
            yield first, first + _MAX_STEP_CHARS
            yield last - _MAX_STEP_CHARS, last
        else:
            yield first, last


def _space_before(text: str, at: int) -> int:
    found = max(
        text.rfind(" ", max(0, at - _MAX_STEP_CHARS), at),
        text.rfind("\n", max(0, at - _MAX_STEP_CHARS), at),
    )
    return found + 1 if found >= 0 else max(0, at - _MAX_STEP_CHARS)


def _space_behind(text: str, at: int) -> int:
    ends = [
        i
        for i in (
            text.find(" ", at, at + _MAX_STEP_CHARS),
            text.find("\n", at, at + _MAX_STEP_CHARS),
        )
        if i >= 0
    ]
    return min(ends) if ends else min(len(text), at + _MAX_STEP_CHARS)
