"""Combinations of arguments that validation would refuse on the command line, checked again for a
role.

The role file is applied after validation, so without this a combination that the command line
refuses would start and fail late, in a worker, or train something else. Sources as in `derive.py`;
the schedule's bounds are those of Megatron-LM's `OptimizerParamScheduler`.

Policy: a rule is looked at only where the role file sets one of its arguments. A rule whose inputs
an older or newer Megatron lacks holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.megatron.model_requirements import MODEL_REQUIREMENTS
from slime_logging.roles.megatron.requirement import Requirement, Values
from slime_logging.roles.megatron.training_requirements import TRAINING_REQUIREMENTS

REQUIREMENTS = (*TRAINING_REQUIREMENTS, *MODEL_REQUIREMENTS)


@dataclass(frozen=True, slots=True)
class Advice:
    """`when(values)` is worth a warning: `text`."""

    keys: tuple[str, ...]
    when: Callable[[Values], Any]
    text: str


ADVICE: tuple[Advice, ...] = (
    Advice(("lr_warmup_iters",), lambda v: v["lr_warmup_fraction"] is not None and v["lr_warmup_iters"],
           "lr_warmup_iters has no effect, because lr_warmup_fraction is set and goes first"),
    Advice(("params_dtype",), lambda v: str(v["params_dtype"]) != (
        "torch.float16" if v["fp16"] else "torch.bfloat16" if v["bf16"] else "torch.float32"),
           "params_dtype differs from what bf16 and fp16 say; override bf16 or fp16, and it follows"),
    Advice(("save",), lambda v: v["save"] is None and v["save_interval"] is not None,
           "save is null, so nothing of this role is saved, although save_interval is set"),
    Advice(("fp16",), lambda v: v["fp16"] and v["accumulate_allreduce_grads_in_fp32"],
           "accumulate_allreduce_grads_in_fp32 stays true; for bf16 validation sets it, for fp16 only its flag does"),
)  # fmt: skip


def broken(values: Values, written: Values) -> list[tuple[str, Requirement]]:
    """The requirements that a role's arguments break, each with the argument of the role file to
    blame.
    """
    flags = {key: value for key, value in written.items() if value is not None}
    return [
        (_first(rule.keys, written), rule)
        for rule in REQUIREMENTS
        if _applies(rule.keys, rule.is_broken, values, flags if rule.is_of_flags else written)
    ]


def late(values: Values, written: Values) -> list[Requirement]:
    """The requirements broken that validation lets pass."""
    return [rule for _, rule in broken(values, written) if rule.is_late]


def advice(values: Values, written: Values) -> list[str]:
    """What is worth a warning in a role's arguments."""
    return [rule.text for rule in ADVICE if _applies(rule.keys, rule.when, values, written)]


def _first(keys: tuple[str, ...], written: Values) -> str:
    return next(key for key in keys if key in written)


def _applies(
    keys: tuple[str, ...], test: Callable[[Values], Any], values: Values, written: Values
) -> bool:
    if not any(key in written for key in keys):
        return False
    try:
        return bool(test(values))
    except (LookupError, TypeError, ArithmeticError, OSError, ValueError):
        return False
