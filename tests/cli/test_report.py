"""`slime-logging report`: a file that a browser opens."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import slime_logging
from slime_logging.cli.app import app


@pytest.fixture
def run(tmp_path: Path) -> Path:
    args = Namespace(lr=1e-6, tracking_dir=str(tmp_path / "tracking"), wandb_run_id="job")
    slime_logging.init_tracking(args)
    slime_logging.log(args, {"train/loss": 0.5, "train/step": 1}, "train/step")
    slime_logging.finish_tracking(args)
    return tmp_path / "tracking" / "job"


def report(*words: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, words)], env={"COLUMNS": "200"})


def test_the_page_stands_in_the_run_for_its_user_alone(run: Path) -> None:
    """Again replaces it; the run is as good as before."""
    for _ in range(2):
        result = report(run)
        assert result.exit_code == 0, result.output
        assert re.fullmatch(rf"{run}/report.html: \d\d KiB. Open it in a browser.\n", result.output)
    page = run / "report.html"
    assert "train/loss" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert CliRunner().invoke(app, ["show", str(run)]).exit_code == 0


def test_another_place_and_an_id(run: Path, tmp_path: Path) -> None:
    result = report("job", "--tracking-dir", run.parent, "-o", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert not (run / "report.html").exists()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "nowhere/page.html",
            "there is no folder {0}/nowhere; make it first: mkdir -p {0}/nowhere",
        ),
        ("", "-o {0} is a folder; name a file in it: {0}/report.html."),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_run_is_read(run, tmp_path, place, said):
    result = report(run, "-o", tmp_path / place)
    assert (result.exit_code, said.format(tmp_path) in result.output) == (1, True)
    assert "Traceback" not in result.output


def test_a_page_goes_to_the_standard_output(run: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = report(run, "-o", "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.endswith("</html>")
    assert not (tmp_path / "-").exists()


def test_several_runs_make_one_page(run: Path, tmp_path: Path) -> None:
    """In the first one's directory, with a line for each; a run that is named twice is there once."""
    args = Namespace(lr=1e-5, tracking_dir=str(run.parent), wandb_run_id="other")
    slime_logging.init_tracking(args)
    slime_logging.log(args, {"train/loss": 0.25, "train/step": 1}, "train/step")
    slime_logging.finish_tracking(args)
    result = report("job", "other", run, "--tracking-dir", run.parent)
    assert result.exit_code == 0, result.output
    page = (run / "report.html").read_text()
    assert page.count("<figcaption><b>train/loss</b>") == 1
    assert page.count("<h2>Processes of ") == 2


def test_a_run_that_is_not_there_is_named(run: Path) -> None:
    result = report("job", "nothing", "--tracking-dir", run.parent)
    assert result.exit_code == 1
    assert "'nothing'" in result.output
    assert not (run / "report.html").exists()
