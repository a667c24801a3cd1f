"""Charts: everything is in the box, marks are round numbers, and no size of a number breaks it."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.report.chart import HEIGHT, NUM_MARKS, WIDTH, Chart, chart, marks, number_text
from slime_logging.report.course import Course

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def chart_of(*points: tuple[float, float], **others: list[tuple[float, float]]) -> Chart:
    courses = {}
    for role, of_role in {"actor": list(points), **others}.items():
        courses[role] = Course()
        for step, value in of_role:
            courses[role].add(step, value)
    return chart(
        "train/loss", "train/step", courses, {role: number for number, role in enumerate(courses)}
    )


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([-\d.e+]+),([-\d.e+]+)", path)]


def test_the_corners_are_the_extremes() -> None:
    """The first step on the left, the highest value on top."""
    (line,) = chart_of((0, 1.0), (5, 3.0), (10, 2.0)).lines
    assert places(line.path) == [(0, HEIGHT), (WIDTH / 2, 0), (WIDTH, HEIGHT / 2)]
    assert (line.last, line.dots) == ("2", ())


def test_roles_share_the_axes() -> None:
    actor, critic = chart_of((0, 0.0), (10, 10.0), critic=[(0, 10.0), (20, 20.0)]).lines
    assert places(actor.path) == [(0, HEIGHT), (WIDTH / 2, HEIGHT / 2)]
    assert places(critic.path) == [(0, HEIGHT / 2), (WIDTH, 0)]
    assert (actor.number, critic.number) == (0, 1)


def test_a_single_point_is_a_dot_in_the_middle() -> None:
    (line,) = chart_of((3, 7.0)).lines
    assert (line.path, line.dots) == ("", ((WIDTH / 2, HEIGHT / 2),))


def test_a_role_without_a_finite_value_has_no_line_and_says_so() -> None:
    _, critic = chart_of((0, 1.0), critic=[(0, math.nan)]).lines
    assert (critic.path, critic.dots, critic.last, critic.num_gaps) == ("", (), "-", 1)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 5, 10]),
        (0.1, 0.93, [0.2, 0.4, 0.6, 0.8]),
        (-3.2, 4.1, [-2, 0, 2, 4]),
        (1e-7, 9e-7, [2e-7, 4e-7, 6e-7, 8e-7]),
        (0, 49, [0, 10, 20, 30, 40]),
    ],
)
def test_marks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert marks(low, high) == pytest.approx(expected)


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=30))
def test_whatever_the_numbers_everything_is_in_the_box(points: list[tuple[float, float]]) -> None:
    drawn = chart_of(*points)
    (line,) = drawn.lines
    for x, y in (*places(line.path), *line.dots):
        assert -0.1 <= x <= WIDTH + 0.1
        assert -0.1 <= y <= HEIGHT + 0.1
    for axis, length in ((drawn.x_marks, WIDTH), (drawn.y_marks, HEIGHT)):
        assert len(axis) <= NUM_MARKS
        assert all(-0.1 <= mark.place <= length + 0.1 for mark in axis)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (12345.0, "12345"), (1e-6, "1e-06"), (0.92746, "0.9275"), (2.0**60, "1.153e+18")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number_text(value) == text
