"""Which arguments a role may have of its own, and which values a role always has.

Policy: an override that could not take effect, or would take effect in one place of the job and not
in another, is refused with the reason; the two resource keys that slime documents as ignored are
ignored with a warning. Sources: slime's role configuration guide and the places where slime reads
each argument.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

TOPOLOGY: tuple[str, ...] = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "sequence_parallel",
    "virtual_pipeline_model_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "pipeline_model_parallel_layout",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "transformer_pipeline_model_parallel_size",
    "hierarchical_context_parallel_sizes",
    "use_tp_pp_dp_mapping",
)
"""Equal in all roles and on the command line, from which the world is laid out; repeating the value
is fine.
"""

IGNORED: Mapping[str, str] = {
    "num_nodes": "the nodes of the job follow --actor-num-nodes",
    "num_gpus_per_node": "the GPUs of the job follow --actor-num-gpus-per-node",
}
"""Accepted and without effect, as slime documents; each is warned about."""

_WORLD = "the whole job has one value of it, which follows from the command line"
_PLACEMENT = "where processes and memory go is decided once for the whole job"
_ROLLOUT = "the rollout makes one batch for all roles, from the command line's value"
_TRACKING = "there is one run for all roles, opened with the command line's value"
_ALGORITHM = "the driver decides by the command line's value which roles exist"
_ROLE_FILE = "it is what the command line says the role file is"

REJECTED: Mapping[str, str] = {
    **dict.fromkeys(
        ("world_size", "data_parallel_size", "rank", "local_rank", "inprocess_active_world_size"),
        _WORLD,
    ),
    **dict.fromkeys(("distributed_backend", "train_backend"), _WORLD),
    **dict.fromkeys(
        ("colocate", "offload", "offload_train", "offload_rollout", "release_train"), _PLACEMENT
    ),
    **dict.fromkeys(("actor_num_nodes", "actor_num_gpus_per_node", "critic_num_nodes"), _PLACEMENT),
    **dict.fromkeys(
        ("critic_num_gpus_per_node", "rollout_num_gpus", "rollout_num_gpus_per_engine"), _PLACEMENT
    ),
    **dict.fromkeys(("debug_rollout_only", "debug_train_only"), _PLACEMENT),
    **dict.fromkeys(
        (
            "rollout_batch_size",
            "n_samples_per_prompt",
            "num_steps_per_rollout",
            "global_batch_size",
        ),
        _ROLLOUT,
    ),
    **dict.fromkeys(
        ("over_sampling_batch_size", "num_rollout", "num_epoch", "start_rollout_id"), _ROLLOUT
    ),
    **dict.fromkeys(("num_critic_only_steps",), _ALGORITHM),
    **dict.fromkeys(("advantage_estimator", "use_critic"), _ALGORITHM),
    **dict.fromkeys(("megatron_config_path", "custom_config_path"), _ROLE_FILE),
    **dict.fromkeys(
        ("use_wandb", "use_tensorboard", "use_mlflow", "use_swanlab", "use_trackio"), _TRACKING
    ),
    **dict.fromkeys(("tensorboard_dir", "enable_one_logger"), _TRACKING),
}
"""Never a role's own -> why."""

REJECTED_PREFIXES: Mapping[str, str] = {
    **dict.fromkeys(
        ("wandb_", "tb_", "tracking_", "mlflow_", "swanlab_", "trackio_", "one_logger_"), _TRACKING
    ),
    "sglang_": "the rollout engines are started once, with the command line's value",
}

FORCED: Mapping[str, Mapping[str, Any]] = {
    "critic": {
        "kl_coef": 0.0,
        "use_opd": False,
        "custom_advantage_function_path": None,
        "untie_embeddings_and_output_weights": True,
    }
}
"""Values that always hold for a role, whatever its entry says."""

PRESET: Mapping[str, Mapping[str, Any]] = {"critic": {"disable_param_buffers_cpu_backup": False}}
"""Values that hold for a role unless its entry says otherwise."""

ROLLOUT_PREFIXES = ("rollout_", "eval_", "router_", "worker_urls", "prefill_num_servers")
"""Read by the rollout alone, from the command line: a role's value is set, changes nothing, and is
warned about.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleValues:
    """What a role has of its own: `forced` always, `preset` unless its entry says otherwise."""

    forced: Mapping[str, Any] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, role: str, names: Collection[str]) -> RoleValues:
        """The role's own values among the arguments that the job has (`names`): slime's own where
        it is loaded, else `FORCED` and `PRESET`.
        """
        forced, preset = _slimes_values(role) or (FORCED.get(role, {}), PRESET.get(role, {}))
        return cls(
            forced={key: value for key, value in forced.items() if key in names},
            preset={key: value for key, value in preset.items() if key in names},
        )


def _slimes_values(role: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What the loaded slime sets for a role, asked with arguments of no meaning; None where no
    slime is loaded. One that knows no role files sets nothing.
    """
    slime = sys.modules.get("slime.utils.arguments")
    if not callable(getattr(slime, "parse_args", None)):
        return None
    apply = getattr(slime, "_apply_megatron_role_overrides", None)
    if apply is None:
        return {}, {}
    try:
        always = vars(apply(Namespace(), {}, role))
        marks = dict.fromkeys(always, "of the entry")
        said = vars(apply(Namespace(**dict.fromkeys(always)), marks, role))
    except Exception:  # another version's function may take other arguments
        return None
    preset = {key: value for key, value in always.items() if said[key] == "of the entry"}
    forced = {key: value for key, value in always.items() if key not in preset}
    known = FORCED.get(role, {})
    same_number = {key: known[key] for key, value in forced.items() if known.get(key) == value}
    return {**forced, **same_number}, preset


def rejection(name: str) -> str | None:
    """Why no role may have this argument of its own, or None where it may."""
    reason = REJECTED.get(name)
    if reason is not None:
        return reason
    return next(
        (reason for prefix, reason in REJECTED_PREFIXES.items() if name.startswith(prefix)), None
    )


def topology_differences(roles: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The topology that is not the same in all roles: key -> role -> value. `roles` are the
    resolved arguments.
    """
    found = {}
    for key in TOPOLOGY:
        values = {role: arguments.get(key) for role, arguments in roles.items()}
        first, *others = values.values()
        if any(other != first for other in others):
            found[key] = values
    return found
