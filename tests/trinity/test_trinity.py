"""Trinity-RFT's explorer and trainer, started by Trinity's own code, are one run in each tracker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trinity")
pytest.importorskip("ray")

from slime_logging.delivery.status import journal_rows  # noqa: E402
from slime_logging.delivery.verify import journal_config  # noqa: E402
from slime_logging.record.run import RunDirectory  # noqa: E402

ROOT = Path(__file__).parents[2]
SECRET = "a9f3c1d7e5b2046881f0d3b7c6e4a2958d1f7c3b"
TRACKERS = ("wandb", "trackio", "tensorboard", "mlflow", "swanlab")

pytestmark = pytest.mark.xdist_group("trinity")


def start(folder: Path, mode: str, trackers: tuple[str, ...]) -> list[RunDirectory]:
    """Run a job of Trinity's, and return the runs that its checkpoint directory holds."""
    path = folder / "job.yaml"
    path.write_text(
        f"mode: {mode}\nproject: rft\nname: math\ncheckpoint_root_dir: {folder / 'ckpt'}\n"
        "model:\n  model_path: /models/x\n"
        f"monitor:\n  monitor_type: slime_logging\n  monitor_args:\n"
        f"    trackers: [{', '.join(trackers)}]\n    system_metrics: 'off'\n"
        f"    tags: [test]\n"
    )
    plugin = subprocess.check_output([sys.executable, "-m", "slime_logging.trinity"], text=True)
    environ = os.environ | {
        "PYTHONPATH": f"{ROOT / 'tests/trinity/stand_ins'}:{ROOT}",
        "OPENAI_API_KEY": SECRET,
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from tests.trinity.job import main; main({str(path)!r}, {plugin.strip()!r})",
        ],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = (folder / "ckpt").glob("rft/**/slime_logging/*/run.json")
    return [RunDirectory(file.parent) for file in sorted(found)]


def logged(run: RunDirectory) -> dict[str, set[str]]:
    """Step key -> the names of the metrics over it."""
    found: dict[str, set[str]] = {}
    for row in journal_rows(run):
        found.setdefault(row.step_key, set()).update(row.metrics)
    return found


def test_explorer_and_trainer_are_one_run_in_every_tracker(tmp_path):
    (run,) = start(tmp_path, "both", TRACKERS)
    names = logged(run)
    assert {"explorer/rollout/accuracy/mean", "explorer/eval/math/accuracy"} <= names[
        "explorer/step"
    ]
    assert {"trainer/actor/loss", "trainer/sample/time"} <= names["trainer/step"]
    assert set(names) == {"explorer/step", "trainer/step"}
    assert all(name.startswith(f"{key.partition('/')[0]}/") for key in names for name in names[key])
    config = journal_config(run, ()).values
    assert config["explorer/model.model_path"] == config["trainer/model.model_path"] == "/models/x"
    verify = Path(sys.executable).with_name("slime-logging")
    done = subprocess.run([verify, "verify", run.path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(tracker in done.stdout for tracker in TRACKERS)
    # the same job, started again in its checkpoint directory, goes on in the same run
    (again,) = start(tmp_path, "both", ("tensorboard",))
    assert again.path == run.path
    assert again.read().num_starts == 2


def test_a_trainer_alone_is_a_run_of_its_own(tmp_path):
    (run,) = start(tmp_path, "train", ("tensorboard",))
    assert set(logged(run)) == {"trainer/step"}
    assert run.read().name == "math_trainer"
