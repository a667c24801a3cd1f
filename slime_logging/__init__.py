"""One tracked run for a whole RL job on Megatron: every role as it was configured, no row lost, no
key leaked.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from slime_logging._version import __version__

if TYPE_CHECKING:
    from slime_logging.errors import (
        BackendError,
        MissingBackendError,
        RoleConfigError,
        RunConflictError,
        RunNotFoundError,
        SettingsError,
        TrackingError,
        TryAgain,
        WillNeverWork,
    )
    from slime_logging.joining import join
    from slime_logging.roles.roles import parse_megatron_role_args
    from slime_logging.run import Run
    from slime_logging.settings.flags import add_tracking_arguments
    from slime_logging.slime.wandb_run import wandb_run
    from slime_logging.tracking import (
        define_step_key_metric_group,
        finish_tracking,
        init_tracking,
        init_wandb_primary,
        init_wandb_secondary,
        log,
        log_config,
        log_samples,
        tracked,
        update_tracking_open_metrics,
    )

__all__ = [
    "BackendError",
    "MissingBackendError",
    "RoleConfigError",
    "Run",
    "RunConflictError",
    "RunNotFoundError",
    "SettingsError",
    "TrackingError",
    "TryAgain",
    "WillNeverWork",
    "__version__",
    "add_tracking_arguments",
    "define_step_key_metric_group",
    "finish_tracking",
    "init_tracking",
    "init_wandb_primary",
    "init_wandb_secondary",
    "join",
    "log",
    "log_config",
    "log_samples",
    "parse_megatron_role_args",
    "tracked",
    "update_tracking_open_metrics",
    "wandb_run",
]

_ROOMS = {
    "errors": (
        "BackendError",
        "MissingBackendError",
        "RoleConfigError",
        "RunConflictError",
        "RunNotFoundError",
        "SettingsError",
        "TrackingError",
        "TryAgain",
        "WillNeverWork",
    ),
    "roles.roles": ("parse_megatron_role_args",),
    "joining": ("join",),
    "run": ("Run",),
    "settings.flags": ("add_tracking_arguments",),
    "slime.wandb_run": ("wandb_run",),
    "tracking": (
        "define_step_key_metric_group",
        "finish_tracking",
        "init_tracking",
        "init_wandb_primary",
        "init_wandb_secondary",
        "log",
        "log_config",
        "log_samples",
        "tracked",
        "update_tracking_open_metrics",
    ),
}
"""Where each public name is found when it is first asked for: importing this package is quick."""


def __getattr__(name: str) -> object:
    for room, names in _ROOMS.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{room}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
