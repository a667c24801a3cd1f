"""What a demo shows while it runs."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from slime_logging.demo.screen import Progress, Screen, sparkline


def progress(done: int, total: int = 30) -> Progress:
    """A job that is `done` of `total` on its way."""
    return Progress(
        done=done,
        total=total,
        label="rollout",
        course_name="reward",
        course=[0.125] * done,
        numbers=(("actor loss", 0.5),),
        num_rows=4 * done,
    )


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([0.5], "▁"),
        ([0.0, 1.0], "▁█"),
        ([1.0, 1.0], "▁▁"),
        ([0.0, 0.5, 1.0], "▁▅█"),
        ([math.nan, math.inf], ""),
        ([-1.0, math.nan, 1.0], "▁█"),
    ],
    ids=["nothing", "one", "two", "flat", "three", "not finite", "a hole"],
)
def test_sparkline_spans_from_the_smallest_to_the_largest(values: list[float], line: str) -> None:
    """The lowest bar is the smallest value; a flat course is low."""
    assert sparkline(values).replace("▄", "▅") == line


def test_sparkline_fits_its_width() -> None:
    """A long course is averaged into the width."""
    assert len(sparkline([float(i) for i in range(1000)], width=30)) == 30


def test_without_a_terminal_a_job_prints_a_few_plain_lines() -> None:
    """A log file gets some lines, not one a rollout, and no control characters."""
    file = io.StringIO()
    with Screen(Console(file=file, width=200)) as screen:
        for done in range(1, 31):
            screen.show(progress(done))
    lines = file.getvalue().splitlines()
    assert 3 <= len(lines) <= 8
    assert "rollout 1/30: reward 0.125, actor loss 0.5, 4 rows" in lines[0]
    assert "\x1b" not in file.getvalue()


def test_on_a_terminal_the_last_state_stays() -> None:
    """The live line ends with the end of the job."""
    file = io.StringIO()
    with Screen(Console(file=file, width=120, force_terminal=True)) as screen:
        for done in (1, 30):
            screen.show(progress(done))
    assert "rollout 30/30" in file.getvalue()
