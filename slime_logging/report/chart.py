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

LEFT, RIGHT = 104, 28
"""Room beside the box, for the marks of the axes."""

MARK_GAP, CHAR_WIDTH = 12, 13
"""Units between the box and a mark of the value axis, and at most for a character of a mark."""

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

    @property
    def squeezed(self) -> int | None:
        """The width that is left for a mark of the value axis, where its text may be wider."""
        room = LEFT - MARK_GAP - 2
        return room if len(self.text) * CHAR_WIDTH > room else None


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
        """The marks of the step axis: each in the middle of its text, as far as there is room."""
        marks = _marks(self.steps, lambda share: round(share * WIDTH))
        most = [round(WIDTH + RIGHT - len(mark.text) * CHAR_WIDTH / 2) for mark in marks]
        return tuple(Mark(min(m.place, end), m.text) for m, end in zip(marks, most, strict=True))

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
        x = steps.shares([each.step for each in line])
        means = scale.shares([each.mean for each in line])
        (paths if len(line) > 1 else dots).append(_path(_places(x, means)))
        if is_exact:
            data.append(_encoded(x, means))
            continue
        lows = scale.shares([each.low for each in line])
        highs = scale.shares([each.high for each in line])
        band.append(_path(_places(x, highs) + _places(x, lows)[::-1]) + "z")
        data.append(_encoded(x, lows, means, highs))
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


def _places(x: Sequence[float], y: Sequence[float]) -> list[_Place]:
    return [
        (round(of_x * WIDTH), round((1 - of_y) * HEIGHT)) for of_x, of_y in zip(x, y, strict=True)
    ]


def _path(points: Sequence[_Place]) -> str:
    """Through all points, relative and without spaces that are not needed: a page has thousands."""
    (x, y), *others = points
    moves = []
    for next_x, next_y in others:
        moves.append(f"{next_x - x} {next_y - y}")
        x, y = next_x, next_y
    rest = "l" + " ".join(moves).replace(" -", "-") if moves else "h0"
    return f"M{points[0][0]} {points[0][1]}{rest}"


def _encoded(steps: Sequence[float], *values: Sequence[float]) -> str:
    """Stretches, each number as `Line.data` has it."""
    texts = [[_PAIRS[n >> 12] + _PAIRS[n & 4095] for n in _whole(steps, 2**24 - 1)]]
    for shares in values:
        texts.append([_PAIRS[n >> 6] + _DIGITS[n & 63] for n in _whole(shares, 2**18 - 1)])
    return "".join(map("".join, zip(*texts, strict=True)))


def _whole(shares: Sequence[float], most: int) -> list[int]:
    return [min(most, max(0, round(share * most))) for share in shares]


def _marks(scale: Scale, place: Callable[[float], int]) -> tuple[Mark, ...]:
    return tuple(Mark(place(scale.share(value)), number_text(value)) for value in scale.marks)
