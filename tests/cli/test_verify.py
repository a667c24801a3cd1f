"""`slime-logging verify` of a job that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import slime_logging
from slime_logging.cli.app import app
from tests.cli.jobs import tensorboard_job


def test_a_running_job_is_said_to_run(tmp_path: Path) -> None:
    """What is on its way is missing, not wrong; nothing is told as unknown."""
    args = tensorboard_job(tmp_path)
    with slime_logging.tracked(args):
        for step in range(3000):
            slime_logging.log(args, {"train/step": step, "train/loss": 1.0}, "train/step")
        result = CliRunner().invoke(app, ["verify", str(tmp_path / "job")], env={"COLUMNS": "120"})
        told = result.output
    assert "The run is still running" in told
    assert "NOT EQUAL" not in told
    assert "unknown:" not in told
    assert result.exit_code == (0 if ": equal" in told else 1)
    result = CliRunner().invoke(app, ["verify", str(tmp_path / "job")], env={"COLUMNS": "120"})
    assert "still running" not in result.output


def test_samples_are_compared(tmp_path: Path) -> None:
    """By what the tracker holds, not by the row that refers to them."""
    args = tensorboard_job(tmp_path)
    with slime_logging.tracked(args):
        rows: list[dict[str, Any]] = [{"rollout/step": 1, "prompt": "p", "completion": "whole"}]
        slime_logging.log_samples(args, rows, "rollout/step")
    command = ["verify", str(tmp_path / "job")]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "120"})
    assert (result.exit_code, ", 1 samples or images: equal" in result.output) == (0, True)
    (file,) = (tmp_path / "job" / "media").glob("*.jsonl")
    file.write_text(file.read_text().replace("whole", "other"))
    result = CliRunner().invoke(app, command, env={"COLUMNS": "120"})
    assert (
        "media: rollout/samples (rollout/step = 1): is not there as it was logged" in result.output
    )
    assert "NOT EQUAL" in result.output
    assert result.exit_code == 1


def test_a_run_without_a_tracker_says_so(tmp_path: Path) -> None:
    """Nothing printed would read as: equal."""
    with slime_logging.join(id="job", directory=tmp_path) as run:
        run.log({"loss": 1.0})
    result = CliRunner().invoke(app, ["verify", str(tmp_path / "job")])
    assert (result.exit_code, "no tracker: there is nothing to compare" in result.output) == (
        0,
        True,
    )
