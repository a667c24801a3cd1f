"""Charts: everything is in the box, and what the script reads says the same as what is drawn."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.report.chart import _DIGITS, HEIGHT, WIDTH, Chart, Line, chart
from slime_logging.report.course import Course

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def chart_of(*courses: list[tuple[float, float]], num_stretches: int = 100) -> Chart:
    made = []
    for number, points in enumerate(courses):
        course = Course()
        course.add_all([step for step, _ in points], [value for _, value in points])
        made.append((number, f"role{number}", course))
    ends = min(c.step_from for *_, c in made), max(c.step_to for *_, c in made)
    return chart("train/loss", "train/step", made, ends, num_stretches)


def places(path: str) -> list[list[tuple[int, int]]]:
    """The points of each piece of a path with relative coordinates."""
    pieces = []
    for piece in re.findall(r"M[^M]+", path.replace("z", "")):
        numbers = [int(n) for n in re.findall(r"-?\d+", piece.replace("h0", ""))]
        x, y = numbers[:2]
        found = [(x, y)]
        for dx, dy in zip(numbers[2::2], numbers[3::2], strict=True):
            x, y = x + dx, y + dy
            found.append((x, y))
        pieces.append(found)
    return pieces


def shares(line: Line) -> list[list[tuple[float, ...]]]:
    """What the script reads."""
    size = 7 if line.is_exact else 13
    pieces = []
    for text in line.data.split("."):
        stretches = []
        for at in range(0, len(text), size):
            ends = [at, *range(at + 4, at + size + 1, 3)]
            words = [text[a:b] for a, b in pairwise(ends)]
            wholes = [sum(_DIGITS.index(c) * 64**i for i, c in enumerate(w[::-1])) for w in words]
            stretches.append(
                tuple(n / (64 ** len(w) - 1) for n, w in zip(wholes, words, strict=True))
            )
        pieces.append(stretches)
    return pieces


def test_the_corners_are_the_extremes() -> None:
    """The first step on the left, the highest value on top."""
    (line,) = chart_of([(0, 1.0), (5, 3.0), (10, 2.0)]).lines
    assert places(line.path) == [[(0, HEIGHT), (WIDTH // 2, 0), (WIDTH, HEIGHT // 2)]]
    assert [figure.text for figure in line.figures] == ["1", "1", "3", "2"]
    assert (line.dots, line.band, line.is_exact) == ("", "", True)


def test_roles_share_the_axes() -> None:
    actor, critic = chart_of([(0, 0.0), (10, 10.0)], [(0, 10.0), (20, 20.0)]).lines
    assert places(actor.path) == [[(0, HEIGHT), (WIDTH // 2, HEIGHT // 2)]]
    assert places(critic.path) == [[(0, HEIGHT // 2), (WIDTH, 0)]]
    assert (actor.number, critic.number) == (0, 1)


def test_charts_of_a_section_show_the_same_steps() -> None:
    course = Course()
    course.add_all([50, 60], [1.0, 2.0])
    drawn = chart("m", "s", [(0, "actor", course)], (0, 100), 10)
    assert [x for x, _ in places(drawn.lines[0].path)[0]] == [WIDTH // 2, WIDTH * 6 // 10]
    assert [mark.text for mark in drawn.x_marks] == ["0", "50", "100"]


def test_a_single_point_is_a_dot_in_the_middle() -> None:
    (line,) = chart_of([(3, 7.0)]).lines
    assert (line.path, places(line.dots)) == ("", [[(WIDTH // 2, HEIGHT // 2)]])


def test_a_role_without_a_finite_value_has_no_line_and_says_so() -> None:
    _, critic = chart_of([(0, 1.0)], [(0, math.nan)]).lines
    assert (critic.path, critic.dots, critic.data, critic.num_gaps) == ("", "", "", 1)
    assert [figure.text for figure in critic.figures] == ["-"] * 4


def test_numbers_of_the_legend_are_whole_somewhere() -> None:
    (line,) = chart_of([(0, 0.123456789), (1, 2.0)]).lines
    assert [(f.text, f.full) for f in line.figures[2:]] == [("2", ""), ("2", "")]
    assert (line.figures[0].text, line.figures[0].full) == ("0.1235", "0.123456789")


def test_a_long_course_is_a_mean_in_a_band() -> None:
    """1,000 values that go up and down: the mean stays in the middle, the band shows how far."""
    (line,) = chart_of([(n, float(n % 2)) for n in range(1_000)], num_stretches=50).lines
    assert not line.is_exact
    (mean,), (band,) = places(line.path), places(line.band)
    assert {y for _, y in mean[1:-1]} <= set(range(HEIGHT // 2 - 12, HEIGHT // 2 + 13))
    assert {y for _, y in band[1:-2]} >= {0, HEIGHT}
    assert (mean[0], mean[-1]) == ((0, HEIGHT), (WIDTH, 0))


def test_one_spike_makes_the_scale_logarithmic_and_the_rest_visible() -> None:
    values = [0.5 + 0.4 * math.sin(n) for n in range(100)]
    spiked = chart_of([(n, v) for n, v in enumerate(values)] + [(100, 1e6)])
    assert spiked.is_log
    (piece,) = places(spiked.lines[0].path)
    ys = [y for _, y in piece[:-1]]
    assert max(ys) - min(ys) > HEIGHT / 20
    assert piece[-1][1] == 0
    assert not chart_of(list(enumerate(values))).is_log


@pytest.mark.parametrize("spike", [0.0, 1e6])
def test_what_the_script_reads_are_the_values(spike: float) -> None:
    """Within a hundred-thousandth of what can be seen."""
    points = [(n, 1 / (n + 1)) for n in range(60)] + [(60, spike)]
    drawn = chart_of(points)
    scale = drawn.log if drawn.is_log else drawn.linear
    (piece,) = shares(drawn.lines[0])
    for (step, value), (x, y) in zip(points, piece, strict=True):
        assert x * 60 == pytest.approx(step, abs=1e-5)
        assert y == pytest.approx(scale.share(value), abs=1e-5)


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=60), st.integers(2, 30))
def test_whatever_the_numbers_everything_is_in_the_box(points, num_stretches) -> None:
    drawn = chart_of(points, num_stretches=num_stretches)
    (line,) = drawn.lines
    for path in (line.path, line.dots, line.band):
        for x, y in (place for piece in places(path) for place in piece):
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    for _, marks in drawn.y_marks:
        assert all(0 <= mark.place <= HEIGHT for mark in marks)
    assert all(0 <= mark.place <= WIDTH for mark in drawn.x_marks)
