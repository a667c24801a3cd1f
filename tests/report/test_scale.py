"""Scales: ends are marks, marks are round, and no size of a number breaks one."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.report.scale import (
    NUM_MARKS,
    Scale,
    is_flattened,
    linear_scale,
    log_scale,
    marks,
    number_text,
    steps_scale,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)


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
    assert marks(low, high, 5) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 0.93, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-0.02, 1.0, [-0.2, 0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (1.5, 96.0, [0, 20, 40, 60, 80, 100]),
        (0.1, 0.3, [0.1, 0.15, 0.2, 0.25, 0.3]),
    ],
)
def test_the_outermost_marks_of_a_linear_scale_hold_all_values(low, high, expected) -> None:
    scale = linear_scale(low, high)
    assert scale.marks == pytest.approx(expected)
    assert (scale.low, scale.high) == pytest.approx((expected[0], expected[-1]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 3.0, 70.0, 1e6], [0.1, 10, 1_000, 1e5, 1e7]),
        ([1e-8, 1e-4, 1.0], [1e-8, 1e-6, 1e-4, 1e-2, 1.0]),
        ([2.0, 3.0, 4.5], [2.0, 5.0]),
        ([-1e3, -1.0], [-1e3, -100, -10, -1]),
    ],
)
def test_the_marks_of_a_logarithmic_scale(values, expected) -> None:
    scale = log_scale(min(values), max(values), values)
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert all(
        math.isclose(abs(mark), 10 ** round(math.log10(abs(mark)))) or mark in (2, 5)
        for mark in scale.marks
    )
    assert len(scale.marks) <= NUM_MARKS
    assert max(scale.marks) >= max(values)
    if values != [0.5, 3.0, 70.0, 1e6]:
        assert set(expected) & set(scale.marks)


def test_a_decade_is_as_high_as_the_next() -> None:
    scale = log_scale(1.0, 1e6, [10.0**power for power in range(7)])
    heights = [scale.share(10.0 ** (power + 1)) - scale.share(10.0**power) for power in range(1, 6)]
    assert heights == pytest.approx([heights[0]] * 5, rel=0.05)


@given(st.lists(FINITE, min_size=1, max_size=30))
def test_whatever_the_values_they_keep_their_order_within_the_scale(values: list[float]) -> None:
    values.sort()
    for scale in (
        linear_scale(values[0], values[-1]),
        log_scale(values[0], values[-1], values),
        steps_scale(values[0], values[-1]),
    ):
        shares = [scale.share(value) for value in values]
        assert all(-1e-9 <= share <= 1 + 1e-9 for share in shares)
        assert all(a <= b + 1e-9 for a, b in pairwise(shares))
        assert 1 <= len(scale.marks) <= NUM_MARKS
        assert all(-1e-9 <= scale.share(mark) <= 1 + 1e-9 for mark in scale.marks)
        assert isinstance(scale, Scale)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0 + n / 100 for n in range(99)] + [1e6], True),
        ([-0.1 * (n % 7) for n in range(99)] + [-5_000.0], True),
        ([float(n) for n in range(100)], False),
        ([0.5] * 99 + [1e6], False),
        ([1.0, 1e6], False),
    ],
)
def test_one_spike_is_told_from_a_course(values: list[float], expected: bool) -> None:
    assert is_flattened(values) is expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (12345.0, "12345"),
        (56910.31, "56910"),
        (1e-6, "1e-06"),
        (0.92746, "0.9275"),
        (2.0**60, "1.153e+18"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number_text(value) == text
