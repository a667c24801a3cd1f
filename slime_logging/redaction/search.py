"""Searching texts in linear time: RE2 over UTF-8, and what is found replaced where it stands.

Policy: RE2 finds, whatever the text; Python only looks at what was found. A placeholder
is one piece: nothing is found inside of it.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from slime_logging.errors import SettingsError
from slime_logging.redaction.placeholder import MAX_NAME_CHARS, placeholder

Replacement: TypeAlias = tuple[int, int, str]
"""Where it starts, where it ends, and the text that stands there from now on."""


Found: TypeAlias = Callable[[str, str], str]
"""(label or name, secret) -> what stands for it."""


class Budget:
    """How much may still be replaced and looked at in a row; without limit for other texts."""

    def __init__(self, num_replaced: float = float("inf"), num_looked_at: float = float("inf")):
        self.num_replaced = num_replaced
        self.num_looked_at = num_looked_at


def engine(pattern: str, *, is_longest: bool = False) -> Any:
    """A pattern over the bytes of UTF-8, compiled by RE2.

    Raises:
        SettingsError: RE2 cannot read it: it has no look-around and no references back.
    """
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # so that halves of surrogates can be searched
    options.max_mem, options.log_errors, options.longest_match = 1 << 28, False, is_longest
    try:
        return re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        raise SettingsError(f"RE2 cannot read {pattern[:200]!r}: {error}") from None


def replaced(
    data: bytes,
    finder: Any,
    decide: Callable[[int, int], Replacement | None],
    budget: Budget,
    hint: bytes = b"",
) -> bytes:
    """The data with what is found replaced as `decide(start, end)` says; placeholders stay.

    Where the budget for replacing ends, the rest of the data up to its next byte of 255 is replaced
    as a whole; where that for looking ends, the rest stays. Each find begins with `hint`, or with
    it behind one other byte.
    """
    pieces: list[bytes] = []
    done = 0
    for start, end in _found(data, finder, hint):
        if start < done or _is_in_placeholder(data, start):
            continue
        budget.num_looked_at -= 1
        if budget.num_looked_at < 0:
            break
        replacement = decide(max(start, done), end)
        if replacement is None:
            continue
        start, end, text = replacement
        budget.num_replaced -= 1
        if budget.num_replaced < 0:
            rest = data[start:]
            pieces += [data[done:start], b"\xff".join([_REST] * (rest.count(b"\xff") + 1))]
            return b"".join(pieces)
        pieces += [data[done:start], text.encode("utf-8", "surrogatepass")]
        done = end
    return b"".join([*pieces, data[done:]]) if pieces else data


def holding(texts: Sequence[bytes], finder: Any) -> list[int]:
    """The places of the texts in which something is found, in one pass over all of them."""
    data = b"\xff".join(texts)
    ends = list(itertools.accumulate(len(text) + 1 for text in texts))
    found: list[int] = []
    at = 0
    while at < len(data) and (match := finder.search(data, at)):
        start = match.start()
        found.append(bisect.bisect_right(ends, start + data.startswith(b"\xff", start)))
        at = ends[found[-1]] - 1
    return found


def _found(data: bytes, finder: Any, hint: bytes) -> Iterator[tuple[int, int]]:
    """Where something is found; a rare hint is quicker looked for by itself."""
    if not hint or data.count(hint) > MAX_HINTS:
        yield from (match.span() for match in finder.finditer(data))
        return
    at = data.find(hint)
    while at >= 0:
        match = finder.match(data, max(0, at - 1))
        if match:
            yield match.span()
        at = data.find(hint, match.end() if match else at + len(hint))


def decoded(data: bytes) -> str:
    """The text of UTF-8 bytes, halves of surrogates included; never raises."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def _is_in_placeholder(data: bytes, at: int) -> bool:
    opened = data.rfind(b"<hidden: ", max(0, at - MAX_PLACEHOLDER_BYTES), at + 8)
    return 0 <= opened < at and data.find(b">", opened, at) < 0


MAX_HINTS = 100
"""Looked at one by one, about 1 microsecond each; more are searched for in one go."""
MAX_PLACEHOLDER_BYTES = 4 * MAX_NAME_CHARS + 10
_REST = placeholder("rest of a row with too many secrets").encode()
