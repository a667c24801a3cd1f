"""The scales of a chart: which part of its height a value takes, and the round values at its side.

Policy: both ends of a scale are marks, so that no value lies beyond the outermost. A value that
dwarfs the others (one spike among small numbers) makes the scale logarithmic by default.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NUM_STEP_MARKS, NUM_MARKS = 5, 7
"""How many marks the axis of steps and that of values have at the most."""

FLATTENED = 50
"""The scale is logarithmic where nine of ten values lie within such a part of their range."""

DECADES = 12
"""A logarithmic scale shows as many powers of ten at the most."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high`; `bend` is 0 for a linear scale.

    A logarithmic one is linear near zero: magnitudes below `bend` lie close together, negative
    values below.
    """

    low: float
    high: float
    marks: tuple[float, ...]
    bend: float = 0.0

    def share(self, value: float) -> float:
        """How far a value is on the way from `low` to `high`."""
        return self.shares([value])[0]

    def shares(self, values: Sequence[float]) -> list[float]:
        """How far each is; also where the ends differ too much or too little for a double."""
        if self.bend:
            low, high = self._bent(self.low), self._bent(self.high)
            places = [self._bent(value) for value in values]
        else:
            low, high = self.low / 2, self.high / 2
            places = [value / 2 for value in values]
        width = high - low
        return [(place - low) / width for place in places] if width > 0 else [0.5] * len(places)

    def _bent(self, value: float) -> float:
        return math.asinh(value / self.bend / 2)


def steps_scale(low: float, high: float) -> Scale:
    """From the first step to the last, exactly."""
    low, high = _range(low, high)
    return Scale(low, high, tuple(marks(low, high, NUM_STEP_MARKS)))


def linear_scale(low: float, high: float) -> Scale:
    """From the round value below `low` to the one above `high`."""
    low, high = _range(low, high)
    found = marks(low, high, NUM_MARKS, is_around=True)
    return Scale(min(found[0], low), max(found[-1], high), tuple(found))


def log_scale(low: float, high: float, values: Sequence[float]) -> Scale:
    """From the power of ten below `low` to the one above `high`.

    Args:
        low: the lowest of all values. high: the highest.
        values: what is drawn, by which small values are told from nothing.
    """
    sizes = sorted(abs(value) for value in values if value) or [1.0]
    place = 0 if low > 0 or high < 0 else len(sizes) // 10
    most = max(abs(low), abs(high)) or 1.0
    bend = max(sizes[place], most / 10.0**DECADES, sys.float_info.min)
    first = math.floor(math.log10(bend))
    factors = (1.0,) if most / bend >= 100 else (1.0, 2.0, 5.0)
    sizes = [
        factor * 10.0**power
        for power in range(first, min(first + DECADES + 2, 309))
        for factor in factors
        if factor * 10.0**power < math.inf
    ]
    known = [-size for size in reversed(sizes)] + [0.0] + sizes
    begin = max((i for i, mark in enumerate(known) if mark <= low), default=0)
    end = min((i for i, mark in enumerate(known) if mark >= high), default=len(known) - 1)
    if begin == end:
        begin, end = max(0, begin - 1), min(len(known) - 1, end + 1)
    found = known[begin : end + 1]
    every = -(-(len(found) - 1) // (NUM_MARKS - 1))
    return Scale(min(found[0], low), max(found[-1], high), tuple(found[::-1][::every][::-1]), bend)


def is_flattened(values: Sequence[float]) -> bool:
    """Whether a few values are so large that a linear scale would show the others as a flat
    line.
    """
    ordered = sorted(values)
    cut = max(1, len(ordered) // 20)
    if len(ordered) < 3 * cut:
        return False
    middle = ordered[-cut - 1] / 2 - ordered[cut] / 2
    return 0 < middle * FLATTENED < ordered[-1] / 2 - ordered[0] / 2


def marks(low: float, high: float, at_most: int, *, is_around: bool = False) -> list[float]:
    """Round values: steps of 1, 2 or 5 times a power of ten.

    Args:
        low: where they begin. high: where they end. at_most: how many.
        is_around: the outermost are `low` and `high` or beyond, instead of between.
    """
    width = high - low
    if not sys.float_info.min * 1e3 < width < math.inf:
        return [low, high]
    down, up = (math.floor, math.ceil) if is_around else (math.ceil, math.floor)
    size = 10.0 ** math.floor(math.log10(width))
    for factor in (0.2, 0.5, 1.0, 2.0, 5.0, 10.0):
        step = size * factor
        first, last = _whole(low / step, down), _whole(high / step, up)
        found = [number * step for number in range(first, min(last, first + at_most) + 1)]
        if is_around < len(found) <= at_most and all(map(math.isfinite, found)):
            return found
    return [low, high]


def number_text(value: float) -> str:
    """A number in at most four significant digits; below a million its whole part stands in
    full.
    """
    if abs(value) < 1e6 and (value == int(value) or abs(value) >= 1e4):
        return str(round(value))
    return f"{value:.4g}"


def _whole(value: float, rounded: Callable[[float], int]) -> int:
    """Rounded that way, unless it is whole but for the rounding of doubles."""
    near = round(value)
    return near if abs(value - near) < 1e-9 * max(1.0, abs(value)) else rounded(value)


def _range(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis: a single value gets some room around it, so that it does not lie on the
    edge.
    """
    if low < high:
        return low, high
    room = abs(low) * 0.1 or 1.0
    return max(-sys.float_info.max, low - room), min(sys.float_info.max, high + room)
