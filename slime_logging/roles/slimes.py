"""What slime has of its own: its roles, and the arguments that it sets while a job runs."""

from __future__ import annotations

ROLES = ("actor", "critic")
"""The roles that slime has; a role file may name others (reward, reference, teacher)."""

AT_RUN_TIME = (
    *("rank", "local_rank", "world_size", "wandb_run_id", "tracking_run_dir"),
    *("num_rollout", "start_rollout_id", "rollout_num_engines", "rollout_num_gpus"),
    "rollout_external_engine_infos",
)
"""Arguments that the driver sets after the command line was parsed."""


def is_set_at_run_time(name: str) -> bool:
    """Whether slime, or tracking, sets this argument after the command line was parsed."""
    return name in AT_RUN_TIME or name.startswith("sglang_")
