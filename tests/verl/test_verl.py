"""verl's own trainer and Tracking class, with slime_logging among its backends, fills one run."""

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
    "STAND_INS": "transformers,tensordict,datasets,codetiming,torchdata,peft,accelerate,transfer_queue,"
    "hydra,regex,zmq,checkpoint_engine,mathruler,sglang_router",
}

JOB = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
import codetiming
import transfer_queue
from contextlib import nullcontext

codetiming.Timer = lambda **_: nullcontext(SimpleNamespace(last=0.5))
transfer_queue.kv_clear = lambda **_: None

import verl
from omegaconf import OmegaConf
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync


class Trainer(PPOTrainerSync):
    "verl's trainer; its loop and its ways to the loggers are its own. What needs a GPU is replaced."

    def _build_replay_buffer(self):
        self.global_steps, self.steps_per_epoch, self.total_training_steps = 0, 2, 2
        self.checkpoint_manager = SimpleNamespace(update_weights=lambda step: None)

    def _reissue_inflight_prompts(self):
        pass

    def _shutdown_dump_executor(self):
        pass

    def _start_profiling(self):
        pass

    _stop_profiling = _start_profiling

    def _consume_sync_metrics(self):
        return {}

    def step(self, metrics, timing_raw):
        metrics.update({"actor/pg_loss": 0.1, "critic/vf_loss": 0.2})
        return SimpleNamespace(keys=[], partition_id="train")

    def _compute_metrics(self, batch, metrics, timing_raw, global_steps, epoch):
        metrics.update({f"timing_s/{name}": value for name, value in timing_raw.items()})

    def _validate(self):
        self._maybe_log_val_generations(["1+1=", "2+2="], ["2", "5"], [1.0, 0.0])
        return {"val-core/math/reward/mean@1": 0.5}


config = OmegaConf.load(Path(verl.__file__).parent / "trainer/config/_generated_ppo_trainer.yaml")
config.trainer.project_name, config.trainer.experiment_name = "math", "ppo"
config.trainer.logger = ["console", "slime_logging"]
config.trainer.default_local_dir = os.path.abspath("ckpt")
config.trainer.save_freq, config.trainer.test_freq, config.trainer.log_val_generations = 0, 2, 2
config.reward.judge = {"api_key": sys.argv[2]}
config.trainer.slime_logging = {"trackers": sys.argv[1].split(","), "system_metrics": "off"}
trainer = Trainer(config)
trainer.fit(None)
assert "judge" in config.reward and config.critic.optim.lr == 1e-5
trainer.logger.finish(exit_code=int(sys.argv[3]))
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


def test_verl_s_trainer_fills_one_run(tmp_path):
    """By the loop of its own PPO trainer, from validation to the last step."""
    done = start(tmp_path, "trackio,tensorboard")
    assert done.returncode == 0, done.stderr[-3000:]
    run = the_run(tmp_path)
    rows = list(journal_rows(run))
    assert [row.step for row in rows] == [0, 0, 1, 2, 2]  # two validations, with their samples
    assert {"actor/pg_loss", "critic/vf_loss", "timing_s/step"} <= set(rows[2].metrics)
    assert {"val-core/math/reward/mean@1", "actor/pg_loss"} <= set(rows[-1].metrics)
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
    code = (
        "import verl; from verl.utils.tracking import Tracking\n"
        "try: Tracking('p', 'n', 'slime_logging')\n"
        "except AssertionError as error: assert 'slime_logging is not supported' in str(error)\n"
        "else: raise SystemExit('it is open')\n"
        "import slime_logging.verl as door\n"
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
