"""The course of a metric over its steps in bounded memory: the lowest, the highest and the mean
value of each stretch of points.

Policy: the extremes of a metric are never smoothed away, because they are what one looks for; its
first and last point stand alone. A course takes the same memory for a hundred rows and a million.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MAX_STRETCHES = 256
"""A course is thinned out when it would have more."""

Point = tuple[float, float]
"""(step, value), both finite."""


@dataclass(slots=True)
class Stretch:
    """Points that follow each other, from step `first` to step `last`; `is_start` where a line
    begins.
    """

    first: float
    last: float
    low: float
    high: float
    total: float
    num: int
    is_start: bool = False

    @property
    def step(self) -> float:
        """The middle of its steps."""
        return self.first if self.num == 1 else self.first / 2 + self.last / 2

    @property
    def mean(self) -> float:
        """The mean of its values, from `low` to `high`."""
        if self.num == 1:
            return self.low
        mean = self.total / self.num
        if not math.isfinite(mean):  # the sum is beyond all doubles
            return self.low / 2 + self.high / 2
        return min(max(mean, self.low), self.high)

    def joined(self, later: Stretch) -> Stretch:
        """Its points and those of the next stretch, as one."""
        return Stretch(
            self.first,
            later.last,
            self.low if self.low < later.low else later.low,
            self.high if self.high > later.high else later.high,
            self.total + later.total,
            self.num + later.num,
            self.is_start,
        )


@dataclass(slots=True)
class Course:
    """One metric of one process. Points come in the order of their rows.

    `num_gaps` counts values that are not finite: they interrupt the line.
    """

    num_points: int = 0
    num_gaps: int = 0
    first: Point | None = None
    last: Point | None = None
    step_from: float = math.inf
    step_to: float = -math.inf
    _stretches: list[Stretch] = field(default_factory=list)
    _per_stretch: int = 1
    _at_most: int = MAX_STRETCHES
    _begins: bool = True

    @property
    def low(self) -> float:
        """The lowest value, however many are joined; infinite where there is none."""
        return min((each.low for each in self._stretches), default=math.inf)

    @property
    def high(self) -> float:
        """The highest value, likewise."""
        return max((each.high for each in self._stretches), default=-math.inf)

    def begin_line(self) -> None:
        """The next point does not follow from the one before: another process, or a start of the
        run.
        """
        self._begins = True

    def add_all(
        self,
        steps: Sequence[float],
        values: Sequence[float],
        at_most: int = MAX_STRETCHES,
        *,
        is_smooth: bool = False,
    ) -> None:
        """Take in points. A step below the one before begins a new line: the run went back to a
        checkpoint.

        Args:
            steps: of the points.
            values: as many.
            at_most: into how many stretches the course is cut from now on.
            is_smooth: steps and values are known to be finite, and no step to be below the one
                before.
        """
        self._at_most = at_most
        if is_smooth:
            self._add_run(steps, values)
            return
        begin = 0
        for end, is_gap in _breaks(steps, values):
            self._add_run(steps[begin:end], values[begin:end])
            self.num_gaps += is_gap
            self._begins |= is_gap
            begin = end + is_gap

    def lines(self, at_most: int = MAX_STRETCHES) -> list[list[Stretch]]:
        """What to draw, line by line: about `at_most` stretches, the last point by itself."""
        stretches = self._stretches
        if len(stretches) > at_most:
            stretches = _joined(stretches, -(-len(stretches) // at_most), is_across_lines=False)
        if len(stretches) > 2 * at_most:
            stretches = _joined(stretches, -(-len(stretches) // at_most), is_across_lines=True)
        lines: list[list[Stretch]] = []
        for stretch in stretches:
            if stretch.is_start:
                lines.append([])
            lines[-1].append(stretch)
        if self.last is not None and lines[-1][-1].num > 1:
            step, value = self.last
            lines[-1].append(Stretch(step, step, value, value, value, 1))
        return lines

    def _add_run(self, steps: Sequence[float], values: Sequence[float]) -> None:
        """Points whose steps do not fall, all finite."""
        if not values:
            return
        begin, end = 0, len(values)
        if self.last is None:
            self.first = (steps[0], values[0])
        elif steps[0] < self.last[0]:
            self._begins = True
        if self._begins:
            self._stretches += _cut(steps, values, 0, 1, 1)
            self._stretches[-1].is_start = True
            self._begins, begin = False, 1
        self.last = (steps[-1], values[-1])
        self.num_points += end
        self.step_from = min(self.step_from, steps[0])
        self.step_to = max(self.step_to, steps[-1])
        while len(self._stretches) + (end - begin) / self._per_stretch >= self._at_most:
            self._halve()
        room = self._per_stretch - self._stretches[-1].num
        if room > 0 and not self._stretches[-1].is_start and begin < end:
            (later,) = _cut(steps, values, begin, min(end, begin + room), room)
            self._stretches[-1] = self._stretches[-1].joined(later)
            begin += room
        self._stretches += _cut(steps, values, begin, end, self._per_stretch)

    def _halve(self) -> None:
        """Join the stretches by pairs; across the beginnings of lines only where there are too many
        of those.
        """
        self._stretches = _joined(self._stretches, 2, is_across_lines=False)
        if len(self._stretches) > self._at_most * 3 // 4:
            self._stretches = _joined(self._stretches, 2, is_across_lines=True)
        self._per_stretch *= 2


def _cut(
    steps: Sequence[float], values: Sequence[float], begin: int, end: int, size: int
) -> list[Stretch]:
    """The points from `begin` to `end`, `size` a stretch."""
    stretches = []
    for first in range(begin, end, size):
        last = min(first + size, end) - 1
        part = values[first : last + 1]
        of_part = min(part), max(part), _sum(part), len(part)
        stretches.append(Stretch(steps[first], steps[last], *of_part))
    return stretches


def _sum(values: Sequence[float]) -> float:
    """The sum as a double; infinite where whole numbers are beyond them all."""
    try:
        return float(sum(values))
    except OverflowError:
        return math.inf


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond all doubles
        return False


def _breaks(steps: Sequence[float], values: Sequence[float]) -> Iterator[tuple[int, bool]]:
    """Where runs of points end, and whether a value that is not finite ends them."""
    before = -math.inf
    for place, (step, value) in enumerate(zip(steps, values, strict=True)):
        if not (_is_finite(step) and _is_finite(value)):
            yield place, True
            before = -math.inf
        elif step < before:
            yield place, False
            before = step
        else:
            before = step
    yield len(values), False


def _joined(stretches: Sequence[Stretch], size: int, *, is_across_lines: bool) -> list[Stretch]:
    """Stretches that follow each other joined, `size` at a time; the first one stays alone, and the
    first of each line where lines stay apart.
    """
    joined = list(stretches[:1])
    room = 0
    for stretch in stretches[1:]:
        is_alone = stretch.is_start and not is_across_lines
        if room and not is_alone:
            joined[-1] = joined[-1].joined(stretch)
            room -= 1
        else:
            joined.append(stretch)
            room = 0 if is_alone else size - 1
    return joined
