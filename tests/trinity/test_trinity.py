"""Trinity-RFT's explorer and trainer, started by Trinity's own code, are one run in each tracker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trinity")
pytest.importorskip("ray")

import slime_logging
from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.verify import journal_config
from slime_logging.errors import SettingsError
from slime_logging.record.run import RunDirectory

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
        "PYTHONPATH": f"{ROOT / 'tests/stand_ins'}:{ROOT}",
        "STAND_INS": "vllm,transformers,openai,datasets,verl,tensordict,aiosqlite,jsonlines,pybase64",
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


@pytest.fixture
def monitor(tmp_path, monkeypatch):
    """Make a monitor as Trinity's explorer and trainer do, in this process."""
    from trinity.common.config import Config, set_if_none
    from trinity.utils.monitor import MONITOR
    from trinity.utils.plugin_loader import load_plugins

    plugin = Path(slime_logging.__file__).parent / "trinity" / "plugin"
    monkeypatch.setenv("TRINITY_PLUGIN_DIRS", str(plugin))
    load_plugins()
    load_plugins()  # Trinity does so in the launcher and in each actor

    def make(mode: str, role: str, **given):
        config = Config(mode=mode, name="math", project="rft")
        config.monitor.monitor_type = "slime_logging"
        config.monitor.cache_dir = str(tmp_path / "monitor")
        config.trainer.trainer_config = {"judge": {"api_key": SECRET, "rate": 2}}
        config.monitor.monitor_args = {"system_metrics": "off"} | given
        cls = MONITOR.get(config.monitor.monitor_type)
        set_if_none(config.monitor, "monitor_args", cls.default_args())
        return cls(
            project=config.project, group=config.group, name=config.name, role=role, config=config
        )

    return make


def runs(tmp_path: Path) -> list[RunDirectory]:
    return [
        RunDirectory(p.parent) for p in sorted(tmp_path.glob("monitor/slime_logging/*/run.json"))
    ]


@pytest.mark.parametrize("mode", ["explore", "train"])
def test_a_role_alone_is_a_run_of_its_own(monitor, tmp_path, mode):
    made = [monitor(mode, role) for role in ("explorer", "trainer")]
    for each in made:
        each.log({"time/total": 1.5}, 2, commit=True)
        each.close()
        each.close()
    assert {run.read().name for run in runs(tmp_path)} == {"math_explorer", "math_trainer"}
    assert [set(logged(run)) for run in runs(tmp_path)].count({"trainer/step"}) == 1


def test_a_job_that_starts_again_in_its_checkpoint_directory_goes_on_in_its_run(monitor, tmp_path):
    for start in range(2):
        explorer, trainer = monitor("both", "explorer"), monitor("both", "trainer")
        explorer.log({"rollout/accuracy": 0.1}, start)
        trainer.log({"actor/loss": 0.1}, start)
        explorer.close()
        del trainer  # Trinity's monitors close themselves when they go
    (run,) = runs(tmp_path)
    assert run.read().num_starts == 2
    assert len(list(journal_rows(run))) == 4
    assert journal_config(run, ()).values["trainer/trainer.trainer_config.judge.rate"] == 2
    assert SECRET not in "".join(path.read_text() for path in run.path.rglob("*.json*"))


def test_experiences_are_a_table(monitor, tmp_path):
    import pandas

    trainer = monitor("train", "trainer")
    frame = pandas.DataFrame([{"prompt": "1+1=", "response": "2", "reward": 1.0}])
    trainer.log_table("rollout_examples", frame, 4)
    trainer.close()
    (row,) = journal_rows(runs(tmp_path)[0])
    assert (row.step_key, row.step) == ("trainer/step", 4)
    assert next(iter(row.metrics)).startswith("trainer/")


def test_a_mistake_in_monitor_args_is_told_at_the_start(monitor):
    with pytest.raises(SettingsError, match="did you mean 'tags'"):
        monitor("both", "explorer", tag=["a"])
