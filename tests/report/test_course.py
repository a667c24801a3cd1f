"""A course keeps its extremes, its ends and its breaks, however many points it gets."""

from __future__ import annotations

import math
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.report.course import MAX_STRETCHES, Course, Stretch

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def course_of(points: list[tuple[float, float]], at_once: int = 10**6) -> Course:
    course = Course()
    for begin in range(0, len(points), at_once):
        part = points[begin : begin + at_once]
        course.add_all([step for step, _ in part], [value for _, value in part])
    return course


def exact(lines: list[list[Stretch]]) -> list[list[tuple[float, float]]]:
    assert all(stretch.num == 1 for line in lines for stretch in line)
    return [[(stretch.step, stretch.mean) for stretch in line] for line in lines]


def test_few_points_are_drawn_as_they_are() -> None:
    points = [(float(step), math.sin(step)) for step in range(100)]
    assert exact(course_of(points).lines()) == [points]


@given(st.lists(FINITE, min_size=1, max_size=3 * MAX_STRETCHES), st.integers(1, 1_000), st.data())
def test_no_extreme_and_no_end_is_lost_and_the_amount_is_bounded(values, at_once, data) -> None:
    """Whatever comes at once. The order of steps stays, and means lie between extremes."""
    points = [(float(step), value) for step, value in enumerate(values)]
    course = course_of(points, at_once)
    at_most = data.draw(st.integers(2, MAX_STRETCHES))
    (line,) = course.lines(at_most)
    assert min(stretch.low for stretch in line) == min(values) == course.low
    assert max(stretch.high for stretch in line) == max(values) == course.high
    assert [(s.step, s.mean) for s in (line[0], line[-1])] == [points[0], points[-1]]
    assert (course.first, course.last) == (points[0], points[-1])
    steps = [stretch.step for stretch in line]
    assert steps == sorted(steps)
    assert all(stretch.low <= stretch.mean <= stretch.high for stretch in line)
    assert len(line) <= at_most + 2
    assert course.num_points == len(values)
    assert (course.step_from, course.step_to) == (0, len(values) - 1)


def test_a_million_points_take_the_memory_of_a_thousand() -> None:
    chance = random.Random(0)
    course = Course()
    tracemalloc.start()
    for begin in range(0, 200_000, 1_000):
        steps = range(begin, begin + 1_000)
        course.add_all(steps, [1.0 if n == 123_457 else chance.random() / 2 for n in steps])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (line,) = course.lines()
    assert max(stretch.high for stretch in line) == 1.0
    assert MAX_STRETCHES / 2 <= len(line) <= MAX_STRETCHES + 1
    assert sum(stretch.num for stretch in line) - 1 == 200_000
    assert peak < 500_000


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_a_run_that_went_back_to_an_older_step_is_two_lines(at_once: int) -> None:
    course = course_of([(0, 1.0), (1, 2.0), (2, 3.0), (1, 7.0), (2, 8.0)], at_once)
    assert exact(course.lines()) == [[(0, 1.0), (1, 2.0), (2, 3.0)], [(1, 7.0), (2, 8.0)]]


def test_another_process_begins_a_line() -> None:
    course = course_of([(0, 1.0), (1, 2.0)])
    course.begin_line()
    course.add_all([2], [3.0])
    assert exact(course.lines()) == [[(0, 1.0), (1, 2.0)], [(2, 3.0)]]


@pytest.mark.parametrize("at_once", [1, 2, 6])
def test_values_that_are_not_finite_interrupt_the_line(at_once: int) -> None:
    points = [(0, 1.0), (1, math.nan), (2, 3.0), (3, math.inf), (math.inf, 5.0), (6, 7.0)]
    course = course_of(points, at_once)
    assert exact(course.lines()) == [[(0, 1.0)], [(2, 3.0)], [(6, 7.0)]]
    assert (course.num_points, course.num_gaps) == (3, 3)


def test_whole_numbers_beyond_all_doubles_interrupt_it_too() -> None:
    course = course_of([(0, 1.0), (1, 10**400), (2, 3.0), (3, -(10**400)), (10**400, 5.0)])
    assert exact(course.lines()) == [[(0, 1.0)], [(2, 3.0)]]
    assert (course.num_points, course.num_gaps) == (2, 3)


def test_lines_survive_being_thinned_out() -> None:
    """Four starts of 10,000 steps: four lines, each with its first point."""
    course = Course()
    for start in range(4):
        course.add_all(range(10_000), [step * (start + 1) for step in range(10_000)])
    lines = course.lines(20)
    assert [(line[0].step, line[0].mean) for line in lines] == [(0, 0)] * 4
    assert [(line[-1].last, line[-1].high) for line in lines] == [
        (9_999, 9_999 * (start + 1)) for start in range(4)
    ]


@given(st.lists(st.tuples(FINITE, st.floats()), max_size=1_000), st.integers(1, 300))
def test_steps_in_any_order_are_bounded_too(points, at_once) -> None:
    course = course_of(points, at_once)
    assert sum(map(len, course.lines())) <= MAX_STRETCHES + 1
    assert sum(map(len, course.lines(50))) <= 102
    assert course.num_points + course.num_gaps == len(points)
