"""A course keeps its extremes, its ends and its breaks, however many points it gets."""

from __future__ import annotations

import math
import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from slime_logging.report.course import MAX_STRETCHES, Course

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def course_of(points: list[tuple[float, float]]) -> Course:
    course = Course()
    for step, value in points:
        course.add(step, value)
    return course


def test_few_points_are_drawn_as_they_are() -> None:
    points = [(float(step), math.sin(step)) for step in range(100)]
    assert course_of(points).lines() == [points]


@given(st.lists(FINITE, min_size=1, max_size=3 * MAX_STRETCHES))
def test_no_extreme_is_lost_and_the_amount_is_bounded(values: list[float]) -> None:
    """Also the order of steps stays, and each drawn point is one that there was."""
    points = [(float(step), value) for step, value in enumerate(values)]
    course = course_of(points)
    (line,) = course.lines()
    assert {min(values), max(values)} <= {value for _, value in line}
    assert set(line) <= set(points)
    assert [step for step, _ in line] == sorted(step for step, _ in line)
    assert len(line) <= 2 * MAX_STRETCHES
    assert (course.low, course.high, course.num_points) == (min(values), max(values), len(values))


def test_a_million_points_take_the_memory_of_a_thousand() -> None:
    chance = random.Random(0)
    course = Course()
    tracemalloc.start()
    for step in range(200_000):
        course.add(step, 1.0 if step == 123_457 else chance.random() / 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (line,) = course.lines()
    assert (123_457, 1.0) in line
    assert MAX_STRETCHES / 2 <= len(line) <= 2 * MAX_STRETCHES
    assert peak < 500_000


def test_a_run_that_went_back_to_an_older_step_is_two_lines() -> None:
    lines = course_of([(0, 1.0), (1, 2.0), (2, 3.0), (1, 7.0), (2, 8.0)]).lines()
    assert lines == [[(0, 1.0), (1, 2.0), (2, 3.0)], [(1, 7.0), (2, 8.0)]]


def test_another_process_begins_a_line() -> None:
    course = course_of([(0, 1.0), (1, 2.0)])
    course.begin_line()
    course.add(2, 3.0)
    assert course.lines() == [[(0, 1.0), (1, 2.0)], [(2, 3.0)]]


def test_values_that_are_not_finite_interrupt_the_line() -> None:
    course = course_of(
        [(0, 1.0), (1, math.nan), (2, 3.0), (3, math.inf), (math.inf, 5.0), (6, 7.0)]
    )
    assert course.lines() == [[(0, 1.0)], [(2, 3.0)], [(6, 7.0)]]
    assert (course.num_points, course.num_gaps) == (3, 3)


def test_lines_survive_being_thinned_out() -> None:
    """Four starts of 10,000 steps: four lines."""
    course = Course()
    for start in range(4):
        for step in range(10_000):
            course.add(step, step * (start + 1))
    assert [line[0][0] for line in course.lines()] == [0, 0, 0, 0]
    assert [line[-1] for line in course.lines()] == [
        (9_999, 9_999 * (start + 1)) for start in range(4)
    ]


@given(st.lists(st.tuples(FINITE, st.floats()), max_size=2_000))
def test_steps_in_any_order_are_bounded_too(points: list[tuple[float, float]]) -> None:
    course = course_of(points)
    assert sum(map(len, course.lines())) <= 2 * MAX_STRETCHES
    assert course.num_points + course.num_gaps == len(points)
