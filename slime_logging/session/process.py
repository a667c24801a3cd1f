"""What this process is: the facts that are logged of it beside its role's configuration.

Policy: only what is loaded already is asked; nothing is imported, and no device is touched that is
not in use.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from argparse import Namespace

from slime_logging.values.json_value import Json


def process_facts(args: Namespace) -> dict[str, Json]:
    """Host, pid, rank, world size, device, and the versions of what is loaded; nothing is imported
    for it.
    """
    loaded = {
        name: getattr(sys.modules.get(name), "__version__", None)
        for name in ("torch", "megatron.core", "wandb")
    }
    facts: dict[str, Json] = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "python": platform.python_version(),
        "rank": rank_of(args),
        "world_size": _int_or_none(getattr(args, "world_size", None)),
        "device": _device(),
    }
    return facts | {f"version_{name}": str(version) for name, version in loaded.items() if version}


def rank_of(args: Namespace) -> int | None:
    """The rank in this process's own `torch.distributed` world where it has one, else what the
    arguments say.
    """
    rank = world_rank()
    return _int_or_none(getattr(args, "rank", None)) if rank is None else rank


def world_rank() -> int | None:
    """The rank in this process's own `torch.distributed` world; None where it is in none."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return None


def calling_module() -> str:
    """What a process without a role is called: the module outside of this package that had it join,
    such as `rollout` for slime's `slime.ray.rollout`.
    """
    frame = sys._getframe()
    while frame.f_back is not None and _is_passed_over(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    name = str(frame.f_globals.get("__name__", "")).rpartition(".")[2].strip("_")
    return name or "main"


def _is_passed_over(module: str) -> bool:
    """Whether it only passes a call on; the demo is a job like any other."""
    package, _, rest = module.partition(".")
    return package == "contextlib" or (
        package == "slime_logging" and rest.partition(".")[0] != "demo"
    )


def _device() -> str:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return "cpu"
    return str(torch.cuda.get_device_name())


def _int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
