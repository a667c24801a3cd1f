"""Which run a person means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slime_logging.errors import RunNotFoundError
from slime_logging.record.finding import find_run


@pytest.fixture
def tracking(tmp_path: Path) -> Path:
    for number, name in enumerate(("abc1", "abd2", "xyz3")):
        (tmp_path / "tracking" / name).mkdir(parents=True)
        (tmp_path / "tracking" / name / "run.json").write_text("{}")
        os.utime(tmp_path / "tracking" / name / "run.json", (0, 1000 + (number + 1) % 3))
    return tmp_path / "tracking"


@pytest.mark.parametrize(
    ("said", "found"), [("abc1", "abc1"), ("x", "xyz3"), ("abd", "abd2"), ("@newest", "abd2")]
)
def test_by_id_by_its_beginning_or_as_the_newest(tracking: Path, said: str, found: str) -> None:
    assert find_run(said, tracking).path == tracking / found


def test_a_path_is_found_wherever_the_tracking_directory_is(tracking: Path, tmp_path: Path) -> None:
    assert find_run(tracking / "abc1", tmp_path / "elsewhere").path == tracking / "abc1"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ab", r"'ab' begins 2 runs: abc1, abd2"),
        ("abc2", r"no run 'abc2' in .*tracking; did you mean .*abc1"),
        ("qqqq", r"runs there: abc1, abd2, xyz3"),
        ("", r"no run ''"),
        ("./nowhere/at/all", r"no run at nowhere/at/all: there is no such directory; .* is there"),
        ("~nobody-at-all/x", r"no run at"),
    ],
)
def test_a_wrong_name_is_told_with_the_place(tracking: Path, said: str, told: str) -> None:
    with pytest.raises(RunNotFoundError, match=told):
        find_run(said, tracking)


def test_a_wrong_path_is_not_answered_with_runs_of_elsewhere(
    tracking: Path, tmp_path: Path
) -> None:
    """A directory that holds runs is told as what it is."""
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for path, told in (
        (tracking, "it holds 3 runs. Name one"),
        (tmp_path / "file", "it is a file"),
        (tmp_path / "empty", "there is no run.json in it"),
    ):
        with pytest.raises(RunNotFoundError) as caught:
            find_run(path, tracking)
        assert told in str(caught.value)
        assert ("abc1" in str(caught.value)) == (path == tracking)


def test_without_runs_it_is_said_how_to_name_a_place(tmp_path: Path) -> None:
    for said in ("@newest", "abc"):
        with pytest.raises(RunNotFoundError, match=r"there are no runs in .* --tracking-dir"):
            find_run(said, tmp_path / "none")
