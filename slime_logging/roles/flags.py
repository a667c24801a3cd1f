"""The arguments that a job's flags give, from the option table alone: no Megatron-LM, no slime
needed.

For checking a role file before the job is queued, on a machine that has neither. Flags are parsed
by argparse with the table's types; then what validation derives is computed by the rules of
`derive.py`. What only a running job knows (checkpoints found, tokenizers) stays at its default.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slime_logging.roles.dtypes import dtype_named
from slime_logging.roles.megatron import patterns
from slime_logging.roles.megatron.derive import fill
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.megatron.options import OptionTable

DELETED = (
    "batch_size",
    "warmup",
    "model_parallel_size",
    "checkpoint_activations",
    "recompute_activations",
    "offload",
)
"""Options that validation takes out of the arguments."""

VALIDATED: Mapping[str, Any] = {
    "consumed_train_samples": 0,
    "consumed_valid_samples": 0,
    "skipped_train_samples": 0,
    "debug_rollout_only": False,
    "debug_train_only": False,
    "load_debug_rollout_data": None,
    "eval_datasets": (),
    "rank": 0,
    "rollout_external": False,
    "train_backend": "megatron",
    "use_dist_ckpt": None,
    "use_distributed_optimizer": True,
    "variable_seq_lengths": True,
    "virtual_pipeline_model_parallel_size": None,
}
"""Arguments that are no options, or that slime sets whatever the flag said."""


def _switch(text: str) -> bool:
    return bool(text)  # what argparse's `type=bool` really does


def _layers(text: str) -> Any:
    return patterns.evaluate(text) if "[" in text else int(text)


def _int_tuple(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip("()").split(","))


CONVERTERS: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": _switch,
    "json": json.loads,
    "pattern": _layers,
    "int_tuple": _int_tuple,
}
"""Kind of value -> what the real parsers' `type=` does; kinds that are not here stay text."""


def parser_of(table: OptionTable) -> ArgumentParser:
    """A parser with the options of a table."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for option in table.values():
        # argparse adds the --no- form of each flag by itself
        flags = option.flags[::2] if option.action == "boolean_optional" else option.flags
        parser.add_argument(*flags, dest=option.name, default=option.default, **_keywords(option))
    return parser


def _keywords(option: Option) -> dict[str, Any]:
    if option.action in ("store_true", "store_false"):
        return {"action": option.action}
    if option.action == "boolean_optional":
        return {"action": argparse.BooleanOptionalAction}
    convert = _signal if option.name == "exit_signal" else CONVERTERS.get(option.kind, str)
    choices = None if option.kind == "enum" else option.choices
    return {"action": option.action, "nargs": option.nargs, "type": convert, "choices": choices}


def _signal(text: str) -> signal.Signals:
    return signal.Signals[text]


def arguments_of_flags(
    flags: Sequence[str], *, has_dtypes: bool = True
) -> tuple[Namespace, list[str]]:
    """The arguments of a job started with these flags, and the words that are no flag of the
    table's.

    Args:
        flags: The job's command line, without the program.
        has_dtypes: Whether `params_dtype` is computed, which imports torch (seconds); else it is
            left None.

    Raises:
        ValueError: A flag has a value that it does not take; the message is argparse's.
    """
    parser = parser_of(OptionTable.shipped())
    said: list[str] = []
    parser.error = said.append  # type: ignore[assignment,method-assign]  # instead of ending the process
    args, unknown = parser.parse_known_args(list(flags))
    if said:
        raise ValueError(said[0])
    values = vars(args)
    for name in DELETED:
        values.pop(name, None)
    values.update(VALIDATED)
    _lay_out(values)
    if has_dtypes:
        values["params_dtype"] = None
    fill(values)
    values.setdefault("params_dtype", None)
    return args, unknown


def _lay_out(values: dict[str, Any]) -> None:
    """What slime and Megatron-LM set before anything else: the world, the roles, the precision."""
    values["world_size"] = values["actor_num_nodes"] * values["actor_num_gpus_per_node"]
    values["critic_num_nodes"] = values["actor_num_nodes"]
    values["critic_num_gpus_per_node"] = values["actor_num_gpus_per_node"]
    values["use_critic"] = values["advantage_estimator"] == "ppo"
    values["offload_train"] = bool(
        values["offload_train"] or values["colocate"] or values["use_critic"]
    )
    values["offload_rollout"] = bool(values["offload_rollout"] or values["colocate"])
    values["disable_grad_buffers_cpu_backup"] = values["offload_train"]
    values["disable_param_buffers_cpu_backup"] = values["offload_train"]
    values["bf16"] = not values["fp16"]
    values["transformer_pipeline_model_parallel_size"] = values["pipeline_model_parallel_size"]
    sizes = (
        values[f"{kind}_parallel_size"] for kind in ("tensor_model", "pipeline_model", "context")
    )
    values["data_parallel_size"] = values["world_size"] // max(1, math.prod(sizes))
    if values["expert_tensor_parallel_size"] is None:
        values["expert_tensor_parallel_size"] = values["tensor_model_parallel_size"]


def arguments_of_json(content: bytes, *, has_dtypes: bool = True) -> Namespace:
    """The arguments in a JSON mapping of names to values, as `json.dumps(vars(args), default=str)`
    writes it.

    `"torch.bfloat16"` becomes the dtype where `has_dtypes` and torch is installed, and
    `"Signals.SIGTERM"` the signal.

    Raises:
        ValueError: The text is no JSON mapping.
    """
    values = json.loads(content)
    if not isinstance(values, dict):
        raise ValueError(
            f"the arguments are a JSON mapping of names to values, not a {type(values).__name__}"
        )
    for name, value in values.items():
        if isinstance(value, str) and value.startswith("torch.") and has_dtypes:
            values[name] = _dtype(value)
        elif isinstance(value, str) and name == "exit_signal":
            values[name] = signal.Signals.__members__.get(value.removeprefix("Signals."), value)
    return Namespace(**values)


def _dtype(name: str) -> Any:
    try:
        return dtype_named(name) or name
    except ImportError:
        return name
