"""One Trackio and one MLflow store for a tracking directory: four jobs at once, each whole, all of them shown together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slime_logging.delivery.status import delivery_statuses
from slime_logging.record.run import RunDirectory

NUM_JOBS, NUM_ROWS = 4, 30
JOB = """
import sys
from argparse import Namespace
import slime_logging

args = Namespace(lr=1e-6, use_critic=False, wandb_run_id=sys.argv[1], use_trackio=True, use_mlflow=True,
                 tracking_dir=sys.argv[2], tracking_system_metrics="off", tracking_finish_timeout=200.0)
with slime_logging.tracked(args):
    print("started", flush=True)
    sys.stdin.readline()
    for step in range(int(sys.argv[3])):
        slime_logging.log(args, {"train/step": step, "train/loss": 1 / (step + 1), "train/note": "n"}, "train/step")
"""
SHOWN = """
import json, sys
from trackio.sqlite_storage import SQLiteStorage
from mlflow import MlflowClient

client = MlflowClient("sqlite:///" + sys.argv[1])
(experiment,) = client.search_experiments(filter_string="name = 'slime'")
held = {}
for run in client.search_runs([experiment.experiment_id]):
    points = client.get_metric_history(run.info.run_id, "train/loss")
    notes = client.list_artifacts(run.info.run_id, "rows")
    held[run.data.tags["slime_logging.run_id"]] = [
        run.info.status, sorted(point.step for point in points), bool(notes), run.data.params["lr"],
        sorted(row["train/step"] for row in SQLiteStorage.get_logs("slime", "slime-" + run.data.tags["slime_logging.run_id"])
               if "train/step" in row),
    ]
print(json.dumps(held))
"""


@pytest.mark.slow
def test_four_jobs_at_once(tmp_path: Path) -> None:
    """All are started before any of them may log, on stores that do not exist yet."""
    tracking = tmp_path / "tracking"
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", JOB, f"job{number}", str(tracking), str(NUM_ROWS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(NUM_JOBS)
    ]
    for job in jobs:
        assert job.stdout.readline() == "started\n"
    for job in jobs:
        job.stdin.write("go\n")
        job.stdin.flush()
    for job in jobs:
        _, errors = job.communicate(timeout=240)
        assert job.returncode == 0, errors
    shown = subprocess.run(
        [sys.executable, "-c", SHOWN, str(tracking / "mlflow" / "mlflow.db")],
        env=os.environ | {"TRACKIO_DIR": str(tracking / "trackio")},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    steps = list(range(NUM_ROWS))
    assert json.loads(shown.stdout) == {
        f"job{number}": ["FINISHED", steps, True, "1e-06", steps] for number in range(NUM_JOBS)
    }
    for number in range(NUM_JOBS):
        run = tracking / f"job{number}"
        assert not {path.name for path in run.iterdir()} & {"trackio", "mlflow"}
        status = delivery_statuses(RunDirectory(run), NUM_ROWS)
        assert [delivery.num_left for delivery in status] == [0, 0]
