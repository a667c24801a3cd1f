"""The course of a metric over its steps in bounded memory: the lowest and highest value of each
stretch of points.

Policy: the extremes of a metric are never smoothed away, because they are what one looks for; a
course holds the same amount whether the run has a hundred rows or a million.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

MAX_STRETCHES = 256
"""A course is halved when it has as many: between half of it and all of it are drawn, some two
pixels each.
"""

Point = tuple[float, float]
"""(step, value), both finite."""


@dataclass(slots=True)
class Stretch:
    """Points that follow each other: the lowest and the highest of them, each with its number among
    all points.
    """

    low: Point
    high: Point
    low_number: int
    high_number: int
    is_start: bool

    def take(self, point: Point, number: int) -> None:
        """One more point."""
        if point[1] < self.low[1]:
            self.low, self.low_number = point, number
        elif point[1] > self.high[1]:
            self.high, self.high_number = point, number

    def join(self, later: Stretch) -> None:
        """All points of the next stretch."""
        if later.low[1] < self.low[1]:
            self.low, self.low_number = later.low, later.low_number
        if later.high[1] > self.high[1]:
            self.high, self.high_number = later.high, later.high_number

    @property
    def points(self) -> list[Point]:
        """One point or two, in their order."""
        if self.low_number == self.high_number:
            return [self.low]
        return (
            [self.low, self.high] if self.low_number < self.high_number else [self.high, self.low]
        )


@dataclass(slots=True)
class Course:
    """One metric of one role. Points come in the order of their rows; `begin_line` says that a new
    line begins there.

    `num_gaps` counts values that are not finite: they interrupt the line.
    """

    num_points: int = 0
    num_gaps: int = 0
    last: Point | None = None
    low: float = math.inf
    high: float = -math.inf
    _stretches: list[Stretch] = field(default_factory=list)
    _per_stretch: int = 1
    _num_in_last: int = 0
    _begins: bool = True

    def begin_line(self) -> None:
        """The next point does not follow from the one before: another process, or a start of the
        run.
        """
        self._begins = True

    def add(self, step: float, value: float) -> None:
        """Take in a point. A step below the last one begins a new line: the run went back to a
        checkpoint.
        """
        if not (math.isfinite(value) and math.isfinite(step)):
            self.num_gaps += 1
            self._begins = True
            return
        self._begins |= self.last is not None and step < self.last[0]
        point = (step, value)
        self.num_points += 1
        self.last = point
        if self._begins or self._num_in_last >= self._per_stretch:
            self._stretches.append(
                Stretch(point, point, self.num_points, self.num_points, self._begins)
            )
            self._num_in_last = 1
            self._begins = False
        else:
            self._stretches[-1].take(point, self.num_points)
            self._num_in_last += 1
        self.low, self.high = min(self.low, value), max(self.high, value)
        if len(self._stretches) >= MAX_STRETCHES:
            self._halve()

    def lines(self) -> list[list[Point]]:
        """The points to draw, line by line."""
        lines: list[list[Point]] = []
        for stretch in self._stretches:
            if stretch.is_start or not lines:
                lines.append([])
            lines[-1] += stretch.points
        return lines

    def _halve(self) -> None:
        """Join the stretches by pairs; across the beginnings of lines only where there are too many
        of those.
        """
        self._stretches = _joined(self._stretches, is_across_lines=False)
        if len(self._stretches) > MAX_STRETCHES * 3 // 4:
            self._stretches = _joined(self._stretches, is_across_lines=True)
        self._per_stretch *= 2
        self._num_in_last = self._per_stretch


def _joined(stretches: list[Stretch], *, is_across_lines: bool) -> list[Stretch]:
    joined: list[Stretch] = []
    can_join = False
    for stretch in stretches:
        can_join = can_join and (is_across_lines or not stretch.is_start)
        if can_join:
            joined[-1].join(stretch)
        else:
            joined.append(stretch)
        can_join = not can_join
    return joined
