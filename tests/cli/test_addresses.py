"""A job with W&B online: the page that its client tells is printed, and shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from slime_logging.cli.app import app
from tests.wandb_server.control import WandbServer

JOB = """
import sys, time
from argparse import Namespace
import slime_logging

args = Namespace(use_wandb=True, wandb_mode="online", wandb_host=sys.argv[1], wandb_key=sys.argv[3], wandb_project="p",
                 wandb_run_id="job", tracking_dir=sys.argv[2], tracking_system_metrics="off")
with slime_logging.tracked(args):
    for step in range(3):
        slime_logging.log(args, {"train/step": step, "train/loss": 1.0 - step}, "train/step")
"""


def test_the_page_is_printed_and_shown(wandb_server: WandbServer, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOB, wandb_server.url, str(tmp_path / "tracking"), wandb_server.key],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (page,) = [word for word in done.stderr.split() if word.endswith("/p/runs/job")]
    assert page.startswith(wandb_server.url)
    told = CliRunner().invoke(
        app, ["show", str(tmp_path / "tracking" / "job")], env={"COLUMNS": "120"}
    )
    assert f"wandb: {page}" in told.output
    run = wandb_server.run("job")
    assert run is not None
    declared = [
        axis for axis in run["config"]["_wandb"]["value"]["m"] if axis.get("2") == "train/*"
    ]
    assert declared, run["config"]["_wandb"]["value"]["m"]
    assert declared[0]["7"], "min, max, mean and last are asked for"
