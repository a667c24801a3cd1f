"""Trinity's own launcher, explorer and trainer, in Ray actors of their own; only what needs a GPU
(models, weights, data) is replaced.

    from tests.trinity.job import main; main(CONFIG, PLUGIN_DIR)

Imported, not run: Ray then sends the classes by their names.
"""

from __future__ import annotations

import os

import ray
from trinity.cli import launcher
from trinity.common.config import load_config
from trinity.common.config_validator import MonitorConfigValidator
from trinity.common.constants import SyncMethod
from trinity.explorer import explorer as explorers
from trinity.trainer import trainer as trainers
from trinity.utils.plugin_loader import load_plugins

NUM_STEPS = 3


@ray.remote(num_cpus=0)
class Rollouts:
    """Stands for the rollout coordinator."""

    async def finalize_train_batch(self, step):
        return {"metrics": {"rollout/accuracy/mean": step / 10}, "finished_task_count": 2}

    async def finalize_eval_batch(self, batch):
        return {"metrics": {"eval/math/accuracy": 0.5}}

    async def shutdown(self):
        return None


class CpuExplorer(explorers.Explorer):
    """Trinity's explorer without models; its way to the monitor is its own."""

    def __init__(self, config):
        explorers.get_taskset_scheduler = lambda **_: None
        super().__init__(config)

    async def prepare(self):
        self.rollout_coordinator = Rollouts.remote()

    async def sync_weight(self):
        return None

    async def explore(self):
        self.explore_step_num = NUM_STEPS
        self.pending_eval_tasks.append((2, "math"))
        await self.finish_current_steps()
        return self.config.explorer.name


class Engine:
    """Stands for the training engine."""

    def __init__(self, config):
        self.train_step_num = 0

    async def prepare(self):
        return None

    async def train_step(self, exps):
        self.train_step_num += 1
        return {"actor/loss": 1 / self.train_step_num}

    async def save_checkpoint(self, **_):
        return None


class Samples:
    """Stands for the experiences that were explored."""

    def __init__(self, **_):
        pass

    async def sample(self, step):
        if step > NUM_STEPS:
            raise StopAsyncIteration
        example = {"prompt": f"{step}+1=", "response": str(step + 1), "reward": 1.0}
        return [], {"sample/time": 0.1}, [example]

    def load_state_dict(self, state):
        pass

    def state_dict(self):
        return {}


class CpuTrainer(trainers.Trainer):
    """Trinity's trainer without a model; its loop and its way to the monitor are its own."""

    def __init__(self, config):
        trainers.get_trainer_wrapper = Engine
        trainers.SAMPLE_STRATEGY = {config.algorithm.sample_strategy: Samples}
        super().__init__(config)

    async def sync_weight(self):
        return {}

    async def need_sync(self):
        return False


def main(path: str, plugin_dir: str) -> None:
    os.environ["TRINITY_PLUGIN_DIRS"] = plugin_dir
    load_plugins()
    config = load_config(path)
    config.checkpoint_job_dir = config.get_checkpoint_job_dir()
    config.ray_namespace = config.synchronizer.ray_namespace = "test"
    config.synchronizer.sync_method = SyncMethod.CHECKPOINT
    config.trainer.enable_preview = True
    config.algorithm.sample_strategy_args = {}
    MonitorConfigValidator().validate(config)
    explorers.Explorer, trainers.Trainer = CpuExplorer, CpuTrainer
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        namespace="test",
        runtime_env={"env_vars": config.get_envs()},
    )
    status = launcher.MODE_MAP[config.mode](config)
    ray.shutdown()
    assert status.success, status
