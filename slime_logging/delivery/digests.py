"""Points as 64-bit digests, so that a million of them are compared in a few megabytes.

Policy: equal points have equal digests. Two different ones share one once in 2**64 pairs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from slime_logging.values.row import Point

_MASK = 2**64 - 1


def digest_of(point: Point) -> int:
    """The digest of a point, the same in this process as long as it lives."""
    return hash(_distinct(point)) & _MASK


def digests_of(points: Iterable[Point]) -> array[int]:
    """The digests of many points, 8 bytes each."""
    return array("Q", (digest_of(point) for point in points))


def difference(one: array[int], other: array[int]) -> tuple[set[int], set[int]]:
    """The digests that are in `one` more often than in `other`, and the other way round."""
    mine, theirs = sorted(one), sorted(other)
    if mine == theirs:
        return set(), set()
    more: tuple[set[int], set[int]] = (set(), set())
    i = j = 0
    while i < len(mine) or j < len(theirs):
        if j == len(theirs) or (i < len(mine) and mine[i] < theirs[j]):
            more[0].add(mine[i])
            i += 1
        elif i == len(mine) or theirs[j] < mine[i]:
            more[1].add(theirs[j])
            j += 1
        else:
            i, j = i + 1, j + 1
    return more


def _distinct(value: Any) -> Any:
    """The value without -1, whose hash Python makes that of -2."""
    if isinstance(value, tuple):
        return tuple(map(_distinct, value))
    return "-1" if value == -1 and not isinstance(value, str) else value
