"""Searching texts in linear time: RE2 over UTF-8, and what is found replaced where it stands.

Policy: RE2 finds, whatever the text; Python only looks at what was found. A placeholder
is one piece: nothing is found inside of it.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from slime_logging.errors import SettingsError
from slime_logging.redaction.placeholder import MAX_NAME_CHARS, placeholder

Replacement: TypeAlias = tuple[int, int, str]
"""Where it starts, where it ends, and the text that stands there from now on."""

Found: TypeAlias = Callable[[str, str], str]
"""(label or name, secret) -> what stands for it."""


@dataclass
class Budget:
    """How much may still be replaced, and of the doubtful looked at, in a row; without limit for
    other texts.
    """

    num_replaced: float = float("inf")
    num_looked_at: float = float("inf")


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
        return re2.compile(encoded(pattern), options)
    except re2.error as error:
        raise SettingsError(f"RE2 cannot read {pattern[:200]!r}: {error}") from None


@functools.cache
def lasting(pattern: str) -> Any:
    """The same for a pattern of ours, compiled once, when it is needed."""
    return engine(pattern)


def replaced(
    data: bytes,
    finder: Any,
    decide: Callable[[int, int], Replacement | None],
    budget: Budget,
    *,
    is_doubtful: bool = False,
    is_token: bool = False,
) -> bytes:
    """The data with what is found replaced as `decide(start, end)` says; placeholders stay, but for
    tokens written in the shape of one.

    Where the budget for replacing ends, the rest of the data up to its next byte of 255 is replaced
    as a whole; where that for looking at what is doubtful ends, the rest stays.
    """
    pieces: list[bytes] = []
    done = 0
    for start, end in (match.span() for match in finder.finditer(data)):
        budget.num_looked_at -= is_doubtful
        if is_doubtful and budget.num_looked_at < 0:
            break
        if start < done or (not is_token and _is_in_placeholder(data, start)):
            continue
        replacement = decide(start, end)
        if replacement is None:
            continue
        start, end, text = replacement
        budget.num_replaced -= 1
        if budget.num_replaced < 0:
            rests = [_REST] * (data.count(b"\xff", start) + 1)
            return b"".join([*pieces, data[done:start], b"\xff".join(rests)])
        pieces += [data[done:start], encoded(text)]
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


def encoded(text: str) -> bytes:
    """The UTF-8 of a text, halves of surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> str:
    """The text of UTF-8 bytes, halves of surrogates included; never raises."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def _is_in_placeholder(data: bytes, at: int) -> bool:
    opened = data.rfind(b"<hidden: ", max(0, at - 4 * MAX_NAME_CHARS - 10), at + 8)
    found = _PLACEHOLDER.match(data, opened) if 0 <= opened < at else None
    return found is not None and found.end() > at


_PLACEHOLDER = re.compile(rb"<hidden: [^<>]{0,400}>")
_REST = placeholder("rest of a row with too many secrets").encode()
