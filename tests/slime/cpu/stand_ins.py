"""What stands in for engines, models, devices and packages in slime's job on a CPU."""

from __future__ import annotations

import contextlib
import json
import os
import types
from pathlib import Path

PACKAGES = {"sglang", "sglang_router", "torch_memory_saver", "transformers", "regex", "fastapi"}


class Package(types.ModuleType):
    """A module in which any class that is asked for exists, and does nothing."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (Nothing,), {"__module__": self.__name__})
        setattr(self, name, value)
        return value


class Nothing:
    """Takes any arguments, and any call does nothing."""

    def __init__(self, *args, **options) -> None: ...

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **options: None

    @staticmethod
    def disable():
        return contextlib.nullcontext()

    @staticmethod
    def pop_metrics() -> dict:
        return {}


class ServerArgs(Nothing):
    @staticmethod
    def add_cli_args(parser) -> None:
        for name in ("tp", "dp", "pp", "ep", "moe-dp"):
            parser.add_argument(f"--{name}-size", type=int, default=1)
        parser.add_argument("--mem-fraction-static", type=float, default=0.8)
        parser.add_argument("--enable-metrics", action="store_true")
        parser.add_argument("--api-key")


class RouterArgs(Nothing):
    @staticmethod
    def add_cli_args(parser, use_router_prefix=True, exclude_host_port=True) -> None:
        parser.add_argument("--router-policy")
        parser.add_argument("--router-balance-abs-threshold", type=int, default=10)
        parser.add_argument("--router-balance-rel-threshold", type=float, default=1.2)


class AutoConfig:
    """A checkpoint's `config.json`."""

    @staticmethod
    def from_pretrained(path, **options) -> types.SimpleNamespace:
        return types.SimpleNamespace(**json.loads(Path(path, "config.json").read_text()))


class AutoTokenizer:
    @staticmethod
    def from_pretrained(path, **options) -> types.SimpleNamespace:
        return types.SimpleNamespace(vocab_size=64)


CONTENTS = {
    "megatron.core.transformer.custom_layers.batch_invariant_kernels": {},
    "sglang.srt.constants": {
        f"GPU_MEMORY_TYPE_{name.upper()}": name for name in ("cuda_graph", "kv_cache", "weights")
    },
    "sglang.srt.server_args": {"ServerArgs": ServerArgs},
    "sglang.srt.utils.patch_torch": {"monkey_patch_torch_reductions": lambda: None},
    "sglang_router.launch_router": {"RouterArgs": RouterArgs},
    "torch_memory_saver": {
        "torch_memory_saver": Nothing(),
        "__file__": str(Path(os.environ.get("SLIME_ON_CPU", ""), "site", "__init__.py")),
    },
    "transformers": {"AutoConfig": AutoConfig, "AutoTokenizer": AutoTokenizer},
}


def accelerator(base: type) -> type:
    """slime's contract of a device, for a CPU: one device, nothing to synchronise."""
    import torch

    answers = {
        "is_available": lambda self: True,
        "device": lambda self, index=None: torch.device("cpu"),
        "device_name": lambda self, index=None: "cpu",
        "current_device": lambda self: "cpu",
        "device_count": lambda self: 8,
        "mem_get_info": lambda self, device=None: (1, 2),
        "memory_allocated": lambda self, device=None: 0,
        "memory_reserved": lambda self, device=None: 0,
        "resolve_visible_device_id": lambda self, device: int(device),
        "name": "cpu",
        "device_type": "cpu",
        "communication_backend_name": "gloo",
    }
    silent = dict.fromkeys(base.__abstractmethods__ - set(answers), lambda self, *args: None)
    return type("CpuAccelerator", (base,), {**silent, **answers})


class Backups(Nothing):
    backup_tags = ("actor",)


class Optimizer(Nothing):
    param_groups = ({"lr": 0.0},)


class Scheduler(Nothing):
    def __init__(self, args) -> None:
        self._args = args

    def get_lr(self, group) -> float:
        return self._args.lr


def new_model(args, role="actor"):
    """A model that knows its role and nothing else."""
    import torch

    model = torch.nn.Linear(2, 2)
    model.role, model.config = role, types.SimpleNamespace()
    return [model], Optimizer(), Scheduler(args), -1


def train_one_step(args, rollout_id, step_id, data, model, *rest, **options):
    """The metrics of one step, and the gradient's norm; each known in advance."""
    import torch

    loss = torch.tensor(1.0 / (1 + rollout_id))
    name = "value_loss" if model[0].role == "critic" else "pg_loss"
    return {name: loss}, 0.75


def forward_only(function, args, model, data, num_microbatches, store_prefix="", **options):
    import torch

    lengths = data[0].rollout_data["response_lengths"]
    name = "values" if "values" in function.__name__ else f"{store_prefix}log_probs"
    return {name: [torch.full((length,), -0.5) for length in lengths]}


def compute_advantages_and_returns(args, rollout_data) -> None:
    import torch

    for name, fill in (("advantages", 0.0), ("returns", 1.0)):
        rollout_data[name] = [torch.full((n,), fill) for n in rollout_data["response_lengths"]]
