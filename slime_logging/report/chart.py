"""A chart as the numbers that an SVG needs: lines in a box of `WIDTH` by `HEIGHT` units, and the
marks of its axes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slime_logging.report.course import Course, Point

WIDTH, HEIGHT = 320, 120
NUM_MARKS = 5


@dataclass(frozen=True, slots=True)
class Mark:
    """A value of an axis: where it is, in units of the box from its upper left corner, and its
    text.
    """

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One role's course: the `d` of an SVG path, its single points as (x, y), and its last value as
    text.
    """

    role: str
    number: int
    path: str
    dots: tuple[tuple[float, float], ...]
    last: str
    num_points: int
    num_gaps: int


@dataclass(frozen=True, slots=True)
class Chart:
    """One metric: a line for each role that logged it."""

    title: str
    axis: str
    lines: tuple[Line, ...]
    x_marks: tuple[Mark, ...]
    y_marks: tuple[Mark, ...]


def chart(
    title: str, axis: str, courses: Mapping[str, Course], role_numbers: Mapping[str, int]
) -> Chart:
    """Draw the courses of a metric over one pair of axes.

    Args:
        title: the metric. axis: its step key. courses: role -> its course, with a point at least in
        one of them.
        role_numbers: role -> the number of its colour, the same in all charts.
    """
    drawn = [course for course in courses.values() if course.last is not None]
    steps = [step for course in drawn for line in course.lines() for step, _ in line]
    x_from, x_to = _range(min(steps), max(steps))
    y_from, y_to = _range(min(course.low for course in drawn), max(course.high for course in drawn))

    def place(point: Point) -> tuple[float, float]:
        return (
            round(_share(point[0], x_from, x_to) * WIDTH, 1),
            round((1 - _share(point[1], y_from, y_to)) * HEIGHT, 1),
        )

    lines = []
    for role, course in courses.items():
        placed = [[place(point) for point in line] for line in course.lines()]
        lines.append(
            Line(
                role=role,
                number=role_numbers[role],
                path=" ".join(_path(points) for points in placed if len(points) > 1),
                dots=tuple(points[0] for points in placed if len(points) == 1),
                last="-" if course.last is None else number_text(course.last[1]),
                num_points=course.num_points,
                num_gaps=course.num_gaps,
            )
        )
    return Chart(
        title,
        axis,
        tuple(lines),
        x_marks=tuple(
            Mark(_share(x, x_from, x_to) * WIDTH, number_text(x)) for x in marks(x_from, x_to)
        ),
        y_marks=tuple(
            Mark((1 - _share(y, y_from, y_to)) * HEIGHT, number_text(y))
            for y in marks(y_from, y_to)
        ),
    )


def marks(low: float, high: float) -> list[float]:
    """Round values from `low` to `high`, `NUM_MARKS` at the most: steps of 1, 2 or 5 times a power
    of ten.
    """
    width = high - low
    if not sys.float_info.min < width < math.inf:
        return [low, high]
    size = 10.0 ** math.floor(math.log10(width))
    for factor in (0.2, 0.5, 1.0, 2.0, 5.0, 10.0):
        step = size * factor
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < NUM_MARKS:
            return [number * step for number in range(first, last + 1)]
    return [low, high]


def number_text(value: float) -> str:
    """A number in at most four significant digits; whole numbers below a million in all of
    theirs.
    """
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def _range(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis: a single value gets some room around it, so that it does not lie on the
    edge.
    """
    if low < high:
        return low, high
    room = abs(low) * 0.1 or 1.0
    return max(-sys.float_info.max, low - room), min(sys.float_info.max, high + room)


def _share(value: float, low: float, high: float) -> float:
    """How far a value is on the way from `low` to `high`, also where their difference is too large
    or small.
    """
    width = high / 2 - low / 2
    return (value / 2 - low / 2) / width if width else 0.5


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in points)
