"""slime's own job on this machine's CPU, from the archives in ../shared/peers: unpacked, started, read back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(os.environ.get("PEERS", ROOT / "../shared/peers"))
CPU = Path(__file__).with_name("cpu")
VERSIONS = ("v0.2.0", "v0.2.2", "v0.2.4", "v0.3.0", "v0.3.1", "624b824")
NEWEST = VERSIONS[-1]
ONE_LINE = "from slime_logging import finish_tracking, init_tracking, log\n"

needs_peers = pytest.mark.skipif(not PEERS.is_dir(), reason="../shared/peers is absent")

MODEL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
    "tie_word_embeddings": False,
    "vocab_size": 64,
    "model_type": "qwen2",
}
FLAGS = [
    "--swiglu",
    "--num-layers",
    "2",
    "--hidden-size",
    "64",
    "--ffn-hidden-size",
    "128",
    "--num-attention-heads",
    "4",
    "--use-rotary-position-embeddings",
    "--disable-bias-linear",
    "--add-qkv-bias",
    "--normalization",
    "RMSNorm",
    "--norm-epsilon",
    "1e-6",
    "--rotary-base",
    "10000",
    "--group-query-attention",
    "--num-query-groups",
    "2",
    "--vocab-size",
    "64",
    "--untie-embeddings-and-output-weights",
    "--transformer-impl",
    "local",
    "--no-gradient-accumulation-fusion",
    "--no-rope-fusion",
    "--attention-backend",
    "flash",
    "--attention-dropout",
    "0",
    "--hidden-dropout",
    "0",
    "--optimizer",
    "adam",
    "--lr",
    "1e-6",
    "--lr-decay-style",
    "constant",
    "--weight-decay",
    "0.1",
    "--num-rollout",
    "3",
    "--rollout-batch-size",
    "4",
    "--n-samples-per-prompt",
    "2",
    "--global-batch-size",
    "8",
    "--micro-batch-size",
    "1",
    "--rollout-max-response-len",
    "16",
    "--eval-interval",
    "2",
    "--eval-prompt-data",
    "toy",
    "none.jsonl",
    "--n-samples-per-eval-prompt",
    "1",
    "--rollout-function-path",
    "toy_rollout.generate",
    "--data-source-path",
    "toy_rollout.Source",
    "--actor-num-nodes",
    "1",
    "--actor-num-gpus-per-node",
    "1",
    "--num-gpus-per-node",
    "8",
    "--rollout-num-gpus",
    "1",
    "--rollout-num-gpus-per-engine",
    "1",
]
PPO = ["--advantage-estimator", "ppo", "--critic-num-nodes", "1", "--critic-num-gpus-per-node", "1"]
GRPO = ["--advantage-estimator", "grpo"]
RAY = {
    "num_cpus": 12,
    "num_gpus": 8,
    "include_dashboard": False,
    "object_store_memory": 100_000_000,
}
"""The cluster; its GPUs are pretended."""

DRIVER = """
import os, runpy, sys
import ray
ray.init(**{ray!r})
sys.argv[:1] = []
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def unpack(folder: Path, name: str) -> Path:
    """One archive of peers, unpacked below the folder."""
    with tarfile.open(PEERS / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name


def logging_module(slime: Path) -> Path:
    """The file in which this version of slime keeps its calls of tracking."""
    names = ("observability/logging_utils", "utils/tracking_utils", "utils/logging_utils")
    return next(path for name in names if (path := slime / f"slime/{name}.py").exists())


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where jobs run: unpacked trees, and a checkpoint's configuration."""

    folder: Path
    slime: Path
    megatron: Path

    @classmethod
    def make(cls, folder: Path) -> Place:
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "config.json").write_text(json.dumps(MODEL))
        # slime preloads this library into its actors, and looks for it; the loader skips an empty one.
        (folder / "torch_memory_saver_hook_mode_preload_cu13.abi3.so").touch()
        slime = unpack(folder, f"slime-{NEWEST}")
        return cls(folder=folder, slime=slime, megatron=unpack(folder, "megatron-lm-1dcf0daf"))

    def with_the_line(self) -> Place:
        """The same with the documented line at the end of slime's own module."""
        copy = self.folder / "with-the-line"
        shutil.copytree(self.slime, copy)
        with logging_module(copy).open("a") as file:
            file.write(ONE_LINE)
        return Place(folder=self.folder, slime=copy, megatron=self.megatron)

    @property
    def model(self) -> list[str]:
        """The flags of the checkpoint."""
        return ["--hf-checkpoint", str(self.folder / "model")]

    def environment(self) -> dict[str, str]:
        """That of a process in which slime and Megatron-LM are installed."""
        outside = {
            name: text for name, text in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"
        }
        return outside | {
            "PYTHONPATH": os.pathsep.join(map(str, [CPU, self.slime, self.megatron])),
            "PYTHONWARNINGS": "ignore",
            "SLIME_ACCELERATOR": "cpu",
            "SLIME_ON_CPU": str(self.folder),
            "OMP_NUM_THREADS": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        }

    def run(
        self, script: str, flags: Sequence[str], environment: Mapping[str, str], cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        """Start slime's script with our flags behind those of a small job, and wait for its end."""
        cwd.mkdir(parents=True, exist_ok=True)
        driver = cwd / "driver.py"
        driver.write_text(DRIVER.format(ray=RAY))
        return subprocess.run(
            [sys.executable, driver, self.slime / script, *FLAGS, *self.model, *flags],
            cwd=cwd,
            env={**self.environment(), **environment},
            capture_output=True,
            text=True,
            timeout=240,
        )
