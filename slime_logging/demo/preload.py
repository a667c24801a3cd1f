"""What the server that forks the job's processes imports once, so that none of them has to: torch
and megatron-core.

Policy: importing this pins torch to one thread, because a fork follows, and quiets what Megatron
says at import about GPU libraries that a CPU has no use for. What Megatron would import only for
compiled functions and for W&B, neither used here, is left out: that was half of the time.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from slime_logging.demo import cpu

cpu.pin_to_one_thread()
logging.getLogger("megatron").setLevel(logging.ERROR)
# Megatron and the torch it was written for warn about GPU libraries, environment variables and
# renamed functions.
warnings.filterwarnings("ignore", module=r"megatron\.|torch\.distributed")


def _uncompiled(function: Any = None, **_: Any) -> Callable[..., Any]:
    """Stands for `torch.compile`, as function and as decorator with options."""
    return function if function is not None else _uncompiled


_compile, torch.compile = torch.compile, _uncompiled
_wandb = sys.modules.get("wandb")
sys.modules["wandb"] = None  # type: ignore[assignment]

import megatron.core.distributed  # noqa: E402
import megatron.core.models.gpt  # noqa: E402
import megatron.core.optimizer  # noqa: E402
import megatron.core.pipeline_parallel  # noqa: E402, F401

torch.compile = _compile
del sys.modules["wandb"]
if _wandb is not None:
    sys.modules["wandb"] = _wandb
