"""verl's own Tracking class, with slime_logging among its backends, fills one run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("verl") is None:
    pytest.skip("verl is not installed", allow_module_level=True)

from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.verify import journal_config
from slime_logging.layout.diff import logged_differences
from slime_logging.record.run import RunDirectory

ROOT = Path(__file__).parents[2]
SECRET = "a9f3c1d7e5b2046881f0d3b7c6e4a2958d1f7c3b"

STAND_INS = {
    "PYTHONPATH": f"{ROOT / 'tests/stand_ins'}:{ROOT}",
    "STAND_INS": "transformers,tensordict,datasets,codetiming,torchdata,peft,accelerate",
}

JOB = """
import importlib.util, os, sys
from pathlib import Path
import verl
from omegaconf import OmegaConf
from verl.utils.tracking import Tracking, ValidationGenerationsLogger

config = OmegaConf.load(Path(verl.__file__).parent / "trainer/config/_generated_ppo_trainer.yaml")
config.trainer.project_name, config.trainer.experiment_name = "math", "ppo"
config.trainer.logger = ["console", "slime_logging"]
config.trainer.default_local_dir = os.path.abspath("ckpt")
config.reward.judge = {"api_key": sys.argv[2]}
config.trainer.slime_logging = {"trackers": sys.argv[1].split(","), "system_metrics": "off"}
plain = OmegaConf.to_container(config, resolve=True)
logger = Tracking("math", "ppo", default_backend=config.trainer.logger, config=plain)
generations = ValidationGenerationsLogger(project_name="math", experiment_name="ppo")
for step in range(3):
    logger.log(data={"actor/pg_loss": 0.1, "critic/vf_loss": 0.2, "training/global_step": step}, step=step)
generations.log(config.trainer.logger, [("1+1=", "2", 1.0), ("2+2=", "5", 0.0)], 2)
assert "judge" in plain["reward"] and plain["critic"]["optim"]["lr"] == 1e-5
logger.finish(exit_code=int(sys.argv[3]))
"""


def start(folder: Path, trackers: str, *, exit_code: int = 0, **variables: str):
    environ = os.environ | {"VERL_USE_EXTERNAL_MODULES": "slime_logging.verl"} | variables
    return subprocess.run(
        [sys.executable, "-c", JOB, trackers, SECRET, str(exit_code)],
        cwd=folder,
        env=environ | STAND_INS,
        capture_output=True,
        text=True,
        timeout=200,
    )


def the_run(folder: Path) -> RunDirectory:
    (file,) = (folder / "ckpt" / "slime_logging").glob("*/run.json")
    return RunDirectory(file.parent)


def test_a_trainer_of_verl_s_fills_one_run(tmp_path):
    done = start(tmp_path, "trackio,tensorboard")
    assert done.returncode == 0, done.stderr[-3000:]
    run = the_run(tmp_path)
    rows = list(journal_rows(run))
    assert [row.step for row in rows] == [0, 1, 2, 2]
    assert {"actor/pg_loss", "critic/vf_loss"} <= set(rows[0].metrics)
    config = journal_config(run, ())
    assert config.values["actor/optim.lr"] == 1e-6
    assert config.values["critic/optim.lr"] == 1e-5
    assert config.values["rollout/name"] and config.values["trainer.project_name"] == "math"
    roles, found = logged_differences(config)
    assert {"actor", "critic", "rollout"} <= set(roles)
    (lr,) = (item for item in found if item.key == "optim.lr")
    assert (lr.values["actor"], lr.values["critic"]) == (1e-6, 1e-5)
    assert SECRET not in "".join(path.read_text() for path in run.path.rglob("*.json*"))
    verify = Path(sys.executable).with_name("slime-logging")
    done = subprocess.run([verify, "verify", run.path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_the_import_verl_s_list_is_closed_and_with_it_nothing_else_changes(tmp_path):
    done = start(tmp_path, "tensorboard", VERL_USE_EXTERNAL_MODULES="")
    assert "slime_logging is not supported" in done.stderr
    code = (
        "import verl; from verl.utils.tracking import Tracking; import slime_logging.verl as door\n"
        "door.install(); t = Tracking('p', 'n', 'console'); t.log({'x': 1}, 1); t.finish()\n"
        "assert list(t.logger) == ['console'] and Tracking.supported_backend.count('slime_logging') == 1"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | STAND_INS,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not (tmp_path / "tracking").exists()
