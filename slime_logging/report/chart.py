"""A chart as an SVG needs it: for each process a line of means over a band from the lowest to the
highest values, in a box of `WIDTH` by `HEIGHT` units.

Policy: nothing is outside of the box. What is drawn also stands beside it as numbers, for the
page's script: it shows them under the pointer, and draws the same on the other scale.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slime_logging.report.course import Course, Stretch
from slime_logging.report.scale import (
    Scale,
    is_flattened,
    linear_scale,
    log_scale,
    number_text,
    steps_scale,
)

WIDTH, HEIGHT = 640, 240

_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]

_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """A value of an axis: where it is, in units of the box from its upper left corner, and its
    text.
    """

    place: int
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the legend: short, and in full."""

    text: str
    full: str


@dataclass(frozen=True, slots=True)
class Line:
    """One process's course: the `d` of SVG paths, and its first, lowest, highest and last value.

    `data` is what the paths show, line by line: each stretch as its step, lowest, mean and highest
    value, or as step and value where `is_exact`. Each is a share of its scale: a whole number, of
    which all its digits are 1; steps in four characters of six bits, values in three.
    """

    number: int
    label: str
    band: str
    path: str
    dots: str
    figures: tuple[Figure, ...]
    num_points: int
    num_gaps: int
    is_exact: bool
    data: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One metric: a line for each process that logged it; drawn on the scale that suits it."""

    title: str
    axis: str
    lines: tuple[Line, ...]
    steps: Scale
    linear: Scale
    log: Scale
    is_log: bool

    @property
    def x_marks(self) -> tuple[Mark, ...]:
        """The marks of the step axis."""
        return _marks(self.steps, lambda share: round(share * WIDTH))

    @property
    def y_marks(self) -> tuple[tuple[str, tuple[Mark, ...]], ...]:
        """The marks of the value axis, of each scale by its name."""
        return tuple(
            (name, _marks(scale, lambda share: round((1 - share) * HEIGHT)))
            for name, scale in (("linear", self.linear), ("log", self.log))
        )


def chart(
    title: str,
    axis: str,
    courses: Sequence[tuple[int, str, Course]],
    step_ends: tuple[float, float],
    num_stretches: int,
) -> Chart:
    """Draw the courses of a metric over one pair of axes.

    Args:
        title: the metric.
        axis: its step key.
        courses: a process's number, its label and its course; one of them has a point.
        step_ends: the first and last step that the axis shows.
        num_stretches: into how many stretches a line is cut at the most.
    """
    drawn = [course.lines(num_stretches) for _, _, course in courses]
    stretches = [stretch for lines in drawn for line in lines for stretch in line]
    low = min(course.low for _, _, course in courses)
    high = max(course.high for _, _, course in courses)
    values = [value for each in stretches for value in (each.low, each.mean, each.high)]
    linear, log = linear_scale(low, high), log_scale(low, high, [each.mean for each in stretches])
    is_log = is_flattened(values)
    steps = steps_scale(*step_ends)
    scale = log if is_log else linear
    lines = tuple(
        _line(course, of_course, steps, scale)
        for course, of_course in zip(courses, drawn, strict=True)
    )
    return Chart(title, axis, lines, steps, linear, log, is_log)


def _line(
    of: tuple[int, str, Course], drawn: Sequence[Sequence[Stretch]], steps: Scale, scale: Scale
) -> Line:
    number, label, course = of
    is_exact = all(stretch.num == 1 for line in drawn for stretch in line)
    band: list[str] = []
    paths: list[str] = []
    dots: list[str] = []
    data: list[str] = []
    for line in drawn:
        shares = [
            (steps.share(each.step), *map(scale.share, (each.low, each.mean, each.high)))
            for each in line
        ]
        means = [_place(x, mean) for x, _, mean, _ in shares]
        (paths if len(line) > 1 else dots).append(_path(means))
        if not is_exact:
            lows = [_place(x, low) for x, low, _, _ in shares]
            band.append(_path([_place(x, high) for x, _, _, high in shares] + lows[::-1]) + "z")
            data.append("".join(_encoded(*each) for each in shares))
        else:
            data.append("".join(_encoded(x, mean) for x, _, mean, _ in shares))
    ends = (
        (None, None, None, None)
        if course.first is None or course.last is None
        else (course.first[1], course.low, course.high, course.last[1])
    )
    return Line(
        number=number,
        label=label,
        band="".join(band),
        path="".join(paths),
        dots="".join(dots),
        figures=tuple(_figure(value) for value in ends),
        num_points=course.num_points,
        num_gaps=course.num_gaps,
        is_exact=is_exact,
        data=".".join(data),
    )


def _figure(value: float | None) -> Figure:
    if value is None:
        return Figure("-", "")
    text, full = number_text(value), repr(value)
    return Figure(text, "" if float(text) == value else full)


def _place(x: float, y: float) -> _Place:
    return round(x * WIDTH), round((1 - y) * HEIGHT)


def _path(points: Sequence[_Place]) -> str:
    """Through all points, relative and without spaces that are not needed: a page has thousands."""
    (x, y), *others = points
    moves = []
    for next_x, next_y in others:
        moves.append(f"{next_x - x} {next_y - y}")
        x, y = next_x, next_y
    rest = "l" + " ".join(moves).replace(" -", "-") if moves else "h0"
    return f"M{points[0][0]} {points[0][1]}{rest}"


def _encoded(step: float, *values: float) -> str:
    """One stretch, each number as `Line.data` has it."""
    whole = _whole(step, 2**24 - 1)
    text = _PAIRS[whole >> 12] + _PAIRS[whole & 4095]
    for value in values:
        whole = _whole(value, 2**18 - 1)
        text += _PAIRS[whole >> 6] + _DIGITS[whole & 63]
    return text


def _whole(share: float, most: int) -> int:
    return min(most, max(0, round(share * most)))


def _marks(scale: Scale, place: Callable[[float], int]) -> tuple[Mark, ...]:
    return tuple(Mark(place(scale.share(value)), number_text(value)) for value in scale.marks)
