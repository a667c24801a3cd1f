"""One tracked run for a whole RL job on Megatron: every role as it was configured, no row lost, no
key leaked.
"""

from slime_logging._version import __version__
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
from slime_logging.roles.roles import parse_megatron_role_args
from slime_logging.run import Run, join
from slime_logging.settings.flags import add_tracking_arguments
from slime_logging.tracking import (
    finish_tracking,
    init_tracking,
    init_wandb_primary,
    init_wandb_secondary,
    log,
    log_config,
    log_samples,
    tracked,
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
]
