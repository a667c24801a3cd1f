"""The full-size argument namespace of a validated slime PPO job, 873 names, rebuilt with the types
it had.

Policy: every call gives a namespace of its own, whose lists and mappings nobody else holds. The
names and values were read by running the argument parsers of slime (624b824) and of Megatron-LM
(1dcf0daf, with slime's patch), and its validation, for a PPO job of two ranks;
`data/ppo_namespace.json` holds them, those JSON has no type for by name.
"""

from __future__ import annotations

import enum
import json
import signal
import warnings
from argparse import Namespace
from importlib import resources
from typing import Any

from slime_logging.demo.lean import lean_import


class _AttnBackend(enum.Enum):
    """Stands in for Megatron's enum of the same names where megatron-core is not installed."""

    flash = 1
    fused = 2
    unfused = 3
    local = 4
    auto = 5


def ppo_namespace() -> Namespace:
    """Return the 873 arguments of the PPO job, as slime's driver holds them after validation.

    `attention_backend` is Megatron's own enum where megatron-core is installed, else one of the
    same names.

    Raises:
        ImportError: torch is not installed (five of the values are a `torch.dtype`).
    """
    import torch

    attn_backend = _attention_backends()
    stored = json.loads(
        resources.files("slime_logging.demo").joinpath("data/ppo_namespace.json").read_text("utf-8")
    )
    values: dict[str, Any] = dict(stored["values"])
    values.update((name, getattr(torch, dtype)) for name, dtype in stored["torch.dtype"].items())
    values.update((name, attn_backend[member]) for name, member in stored["AttnBackend"].items())
    values.update((name, signal.Signals[member]) for name, member in stored["signal"].items())
    return Namespace(**dict(sorted(values.items())))


def grpo_namespace() -> Namespace:
    """Return the same job's arguments with GRPO as its advantage estimator: no critic, hence
    nothing of one.

    The names stay the same, since they are the parser's; the critic's counts are 0.
    """
    args = ppo_namespace()
    args.advantage_estimator = "grpo"
    args.use_critic = False
    args.critic_num_nodes = 0
    args.critic_num_gpus_per_node = 0
    args.num_critic_only_steps = 0
    args.wandb_group = "grpo"
    return args


def _attention_backends() -> Any:
    try:
        with warnings.catch_warnings(), lean_import():
            # Megatron warns at import that it found no GPU libraries.
            warnings.simplefilter("ignore")
            from megatron.core.transformer.enums import AttnBackend
    except ImportError:
        return _AttnBackend
    return AttnBackend
