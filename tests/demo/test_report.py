"""The end screen: its chart, and the commands that it gives."""

from __future__ import annotations

import math
import shlex
from argparse import Namespace
from pathlib import Path

import pytest

from slime_logging.demo.report import CHART_HEIGHT, chart, where_to_look


def test_the_chart_is_as_high_as_the_value() -> None:
    """Half of the top fills half of the lines."""
    lines = chart([0.0, 0.5, 1.0]).plain.splitlines()
    bars = [line[6:] for line in lines]
    assert len(lines) == CHART_HEIGHT
    assert [
        bars[-1][0],
        bars[CHART_HEIGHT // 2][3],
        bars[CHART_HEIGHT // 2 - 1][3],
        bars[0][6],
    ] == [" ", "█", " ", "█"]


@pytest.mark.parametrize(
    ("course", "columns"),
    [
        ([-1.0, -0.5, 0.0], [0, 4, 8]),
        ([-4.0, 4.0, 0.0], [0, 8, 4]),
        ([-12345.5], [0]),
        ([math.nan, 1.0, math.inf], [0, 8, 0]),
    ],
    ids=["negative", "both", "far below", "not finite"],
)
def test_values_below_0_and_those_that_are_no_numbers(
    course: list[float], columns: list[int]
) -> None:
    """The chart begins at the lowest value, and leaves empty what it cannot draw."""
    lines = chart(course).plain.splitlines()
    margin = lines[0].index(" ", len(lines[0]) - len(lines[0].lstrip())) + 1
    heights = [
        sum(line[margin + 3 * i : margin + 3 * i + 1] == "█" for line in lines)
        for i in range(len(course))
    ]
    assert heights == columns
    assert {len(line) for line in lines} == {margin + 3 * len(course)}


def test_the_chart_of_a_long_course_stays_narrow() -> None:
    """Two thousand values fit into a line of a terminal."""
    assert (
        max(len(line) for line in chart([0.001 * i for i in range(2000)]).plain.splitlines()) <= 80
    )


def places(tmp_path: Path, **trackers: bool) -> dict[str, tuple[str, str]]:
    """Tracker -> place and command."""
    args = Namespace(
        tracking_run_dir=str(tmp_path / "my run"),
        wandb_project="slime-demo",
        wandb_mode="offline",
        **trackers,
    )
    return {tracker: (place, command) for tracker, place, command in where_to_look(args)}


def test_only_trackers_that_are_on_are_named(tmp_path: Path) -> None:
    """The journals, and the page that can be made of them, are always there."""
    assert set(places(tmp_path, use_trackio=True, use_mlflow=False)) == {
        "journals",
        "web page",
        "trackio",
    }


@pytest.mark.parametrize("tracker", ["wandb", "trackio", "tensorboard", "mlflow", "swanlab"])
def test_a_command_survives_a_space_in_the_path(tmp_path: Path, tracker: str) -> None:
    """The shell sees the place as one word."""
    _, command = places(tmp_path, **{f"use_{tracker}": True})[tracker]
    where = tmp_path if tracker in ("trackio", "mlflow") else tmp_path / "my run"
    assert any(str(where) in word for word in shlex.split(command))


def test_what_is_not_there_is_not_named(tmp_path: Path) -> None:
    """The page is made by its command; until then there is no file."""
    place, command = places(tmp_path)["web page"]
    assert "report.html" not in place
    assert "slime-logging report" in command


def test_paths_below_the_working_directory_are_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a person pastes is no longer than needed."""
    monkeypatch.chdir(tmp_path)
    place, _ = places(tmp_path)["journals"]
    assert place == "my run/journals"


def test_outside_an_activated_environment_commands_have_their_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make demo` does not activate its environment, and its commands work all the same."""
    monkeypatch.setattr("sys.prefix", "/some/venv")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    _, command = places(tmp_path)["journals"]
    assert command.split()[0].endswith("/bin/slime-logging")
    monkeypatch.setenv("VIRTUAL_ENV", "/some/venv")
    _, command = places(tmp_path)["journals"]
    assert command.split()[0] == "slime-logging"
