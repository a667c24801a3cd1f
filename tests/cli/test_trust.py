"""What of a run's own directory is believed by the commands."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slime_logging
from slime_logging.cli.app import app
from slime_logging.cli.trust import trusted_options
from slime_logging.errors import SettingsError
from slime_logging.record.run import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    args = Namespace(
        tracking_dir=str(tmp_path / "tracking"),
        wandb_run_id="job",
        tracking_system_metrics="off",
        wandb_dir=str(tmp_path / "elsewhere"),
    )
    with slime_logging.tracked(args):
        slime_logging.log(args, {"train/step": 1, "train/loss": 1.0}, "train/step")
    return RunDirectory(tmp_path / "tracking" / "job")


def test_a_local_directory_is_not_asked_for_where_only_the_server_matters(
    run: RunDirectory,
) -> None:
    """Online, the client's files go to the run; offline the user has to say the place."""
    told = {"wandb_mode": "online"}
    assert "wandb_dir" not in trusted_options(run, run.read(), told, ["wandb"], is_writing=True)
    with pytest.raises(SettingsError, match=r"-o .*wandb_dir"):
        trusted_options(run, run.read(), {"wandb_mode": "offline"}, ["wandb"], is_writing=True)


@pytest.mark.parametrize(
    ("tracker", "way"), [("trackio", "TRACKIO_DIR="), ("mlflow", "-o mlflow_tracking_uri=")]
)
def test_a_store_that_is_a_link_is_not_written_to(
    run: RunDirectory, tmp_path: Path, tracker: str, way: str
) -> None:
    (tmp_path / "victim").mkdir()
    (run.path.parent / tracker).symlink_to(tmp_path / "victim")
    result = CliRunner().invoke(
        app, ["sync", str(run.path), "--to", tracker], env={"COLUMNS": "300"}
    )
    assert (result.exit_code, list((tmp_path / "victim").iterdir())) == (1, [])
    assert f"is a link to {tmp_path / 'victim'}" in result.output
    assert way in result.output
