"""Flags and environment -> one frozen `Settings`.

Policy: slime's flags keep slime's names, defaults and meaning; ours stand beside them. A namespace
that lacks any of them works: what is missing has its default. A value that cannot work raises
`SettingsError` with the fix, at start, never later.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Mapping
from dataclasses import dataclass, field
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any, Literal, cast, get_args

from slime_logging.errors import SettingsError

WriterPolicy = Literal["auto", "single", "shared"]

TRACKERS = ("wandb", "trackio", "tensorboard", "mlflow", "swanlab", "memory")
"""Every tracker in the order in which it is reported; `use_<name>` switches it on."""

DEFAULT_DIRECTORY = "tracking"
DEFAULT_FINISH_TIMEOUT_S = 60.0
DEFAULT_SYSTEM_METRICS_S = 15.0
DEFAULT_ENV_VARS = ("SLURM_JOB_ID",)
WANDB_MODES = ("online", "offline", "disabled")

Flag = tuple[str, dict[str, Any]]

SLIME_FLAGS: tuple[Flag, ...] = (
    ("--use-wandb", {"action": "store_true", "help": "Track the job with Weights & Biases."}),
    (
        "--wandb-mode",
        {
            "choices": WANDB_MODES,
            "help": "Default: WANDB_MODE, else online if a key is known, else offline.",
        },
    ),
    (
        "--wandb-dir",
        {"help": "Where W&B keeps its local files. Default: inside the run's directory."},
    ),
    (
        "--wandb-key",
        {
            "help": (
                "API key. It never reaches a file, a tracker or a log; WANDB_API_KEY is the safer"
                " way."
            )
        },
    ),
    ("--wandb-host", {"help": "Base URL of a W&B server of your own."}),
    ("--wandb-team", {"help": "W&B entity."}),
    ("--wandb-group", {"help": "Group of the run, and the start of its name."}),
    ("--wandb-project", {"help": "Project of the run."}),
    (
        "--disable-wandb-random-suffix",
        {
            "action": "store_false",
            "dest": "wandb_random_suffix",
            "help": "Name the run exactly like its group.",
        },
    ),
    (
        "--wandb-always-use-train-step",
        {"action": "store_true", "help": "Read by slime: count rollouts in train steps."},
    ),
    ("--wandb-run-id", {"help": "Continue the run with this id, or create it."}),
    ("--use-tensorboard", {"action": "store_true", "help": "Track the job with TensorBoard."}),
    (
        "--tb-project-name",
        {"help": "Folder of the TensorBoard project. Default: the project's name."},
    ),
    ("--tb-experiment-name", {"help": "Folder of the TensorBoard run. Default: the run's name."}),
)

OUR_FLAGS: tuple[Flag, ...] = (
    (
        "--use-trackio",
        {"action": "store_true", "help": "Track the job with Trackio (local, no account)."},
    ),
    ("--use-mlflow", {"action": "store_true", "help": "Track the job with MLflow."}),
    (
        "--mlflow-tracking-uri",
        {"help": "Default: MLFLOW_TRACKING_URI, else a SQLite file in the run's directory."},
    ),
    ("--mlflow-experiment", {"help": "Default: MLFLOW_EXPERIMENT_NAME, else the project's name."}),
    ("--use-swanlab", {"action": "store_true", "help": "Track the job with SwanLab."}),
    (
        "--swanlab-mode",
        {"choices": ("cloud", "offline"), "help": "Default: SWANLAB_MODE, else offline."},
    ),
    ("--swanlab-project", {"help": "Default: the project's name."}),
    ("--swanlab-workspace", {"help": "SwanLab workspace."}),
    (
        "--tracking-dir",
        {"help": f"Where runs are kept. Default: SLIME_LOGGING_DIR, else ./{DEFAULT_DIRECTORY}."},
    ),
    (
        "--tracking-writer",
        {
            "choices": get_args(WriterPolicy),
            "default": "auto",
            "help": (
                "Who delivers: the primary for all it can see (auto, single), or each process for"
                " itself (shared)."
            ),
        },
    ),
    (
        "--tracking-resume",
        {
            "action": BooleanOptionalAction,
            "default": False,
            "help": "Continue the newest run of --tracking-dir.",
        },
    ),
    (
        "--tracking-finish-timeout",
        {
            "type": float,
            "default": DEFAULT_FINISH_TIMEOUT_S,
            "metavar": "SECONDS",
            "help": "How long the end of the job waits for slow trackers (default 60).",
        },
    ),
    (
        "--tracking-hide",
        {
            "nargs": "*",
            "metavar": "NAME",
            "help": "More names or patterns whose values are secret.",
        },
    ),
    (
        "--tracking-show",
        {"nargs": "*", "metavar": "KEY", "help": "Exact keys that are not secret after all."},
    ),
    (
        "--tracking-env",
        {
            "nargs": "*",
            "metavar": "NAME",
            "help": "More environment variables to log under env_vars.",
        },
    ),
    (
        "--tracking-system-metrics",
        {
            "metavar": "SECONDS|off",
            "help": "Sampling interval of the hosts' CPU, memory and GPUs (default 15), or off.",
        },
    ),
)

BACKEND_OPTIONS = (
    *(
        "wandb_mode",
        "wandb_dir",
        "wandb_key",
        "wandb_host",
        "wandb_team",
        "wandb_project",
        "wandb_group",
    ),
    *("tb_project_name", "tb_experiment_name", "mlflow_tracking_uri", "mlflow_experiment"),
    *("swanlab_mode", "swanlab_project", "swanlab_workspace", "tracking_system_metrics"),
)
"""The dest names that a backend may read from `RunFacts.options`."""

SHOWN_OPTIONS = (
    *(
        "wandb_team",
        "wandb_project",
        "wandb_group",
        "tb_project_name",
        "tb_experiment_name",
        "mlflow_experiment",
    ),
    *("swanlab_project", "swanlab_workspace", "wandb_tags", "wandb_notes", "wandb_job_type"),
)
"""Options whose texts the trackers show: to be redacted before a tracker gets them. The others are
keys and places.
"""

PLACE_OPTIONS = {
    "wandb_host": "WANDB_BASE_URL",
    "wandb_dir": "",
    "mlflow_tracking_uri": "MLFLOW_TRACKING_URI",
}
"""Options that say where data go, and the variables that say the same; a run's directory is not
believed in them.
"""

ENVIRONMENT_OPTIONS = {
    "wandb_tags": "WANDB_TAGS",
    "wandb_notes": "WANDB_NOTES",
    "wandb_job_type": "WANDB_JOB_TYPE",
    "mlflow_experiment": "MLFLOW_EXPERIMENT_NAME",
    "swanlab_project": "SWANLAB_PROJ_NAME",
}
"""Options that a vendor's client would read from the environment by itself, past redaction, where
no flag sets them.
"""

SECRET_OPTIONS = frozenset({"wandb_key"})
"""Those of `BACKEND_OPTIONS` that must reach no file."""


def add_tracking_arguments(parser: ArgumentParser) -> ArgumentParser:
    """Add slime's tracking flags and ours to a parser; a flag that it already has is left as it is.

    Args:
        parser: any parser, slime's own included.

    Returns:
        The same parser.
    """
    group = parser.add_argument_group(
        "tracking", "One run for the whole job; nothing happens unless a tracker is switched on."
    )
    known = set(parser._option_string_actions)
    for flag, keywords in (*SLIME_FLAGS, *OUR_FLAGS):
        if flag not in known:
            group.add_argument(flag, **keywords)
    return parser


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the flags and the environment of this process ask for. Times are in seconds.

    `trackers` holds the names of those switched on (W&B in mode `disabled` is not on). `options`
    holds the trackers' own options, the secret ones included; they are kept out of the repr.
    """

    trackers: tuple[str, ...]
    directory: Path
    has_directory: bool
    writer: WriterPolicy
    run_id: str | None
    is_resuming_newest: bool
    finish_timeout_s: float
    project: str
    group: str | None
    has_suffix: bool
    hide: tuple[str, ...]
    show: tuple[str, ...]
    env_vars: tuple[str, ...]
    system_metrics_s: float | None
    options: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, args: object, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings out of a namespace, the environment filling what it leaves open.

        Raises:
            SettingsError: a value cannot work; the message names the flag and the fix.
        """
        options = {name: getattr(args, name, None) for name in BACKEND_OPTIONS}
        for name, variable in ENVIRONMENT_OPTIONS.items():
            options[name] = options.get(name) or environ.get(variable)
        system_metrics_s = _system_metrics(args)
        if options["tracking_system_metrics"] is not None:
            options["tracking_system_metrics"] = system_metrics_s or "off"
        trackers = tuple(name for name in TRACKERS if _flag(args, f"use_{name}"))
        if "wandb" in trackers:
            options["wandb_mode"] = _wandb_mode(options, environ)
            if options["wandb_mode"] == "disabled":
                trackers = tuple(name for name in trackers if name != "wandb")
        directory = getattr(args, "tracking_dir", None) or environ.get("SLIME_LOGGING_DIR")
        return cls(
            trackers=trackers,
            directory=Path(os.fspath(directory or DEFAULT_DIRECTORY)).expanduser().absolute(),
            has_directory=bool(directory),
            writer=_writer(args),
            run_id=_text(args, "wandb_run_id")
            or environ.get("SLIME_LOGGING_RUN_ID")
            or environ.get("WANDB_RUN_ID"),
            is_resuming_newest=_flag(args, "tracking_resume"),
            finish_timeout_s=_seconds(args, "tracking_finish_timeout", DEFAULT_FINISH_TIMEOUT_S),
            project=_text(args, "wandb_project")
            or environ.get("WANDB_PROJECT")
            or _text(args, "tb_project_name")
            or "slime",
            group=_text(args, "wandb_group") or environ.get("WANDB_RUN_GROUP"),
            has_suffix=bool(getattr(args, "wandb_random_suffix", True)),
            hide=_names(args, "tracking_hide"),
            show=_names(args, "tracking_show"),
            env_vars=(*DEFAULT_ENV_VARS, *_names(args, "tracking_env")),
            system_metrics_s=system_metrics_s,
            options=options,
        )

    @property
    def is_on(self) -> bool:
        """Whether anything is to be tracked at all: a tracker is on, or a directory for journals
        was named.
        """
        return bool(self.trackers) or self.has_directory

    @property
    def is_wandb_online(self) -> bool:
        """Whether W&B is on and talks to a server."""
        return "wandb" in self.trackers and self.options["wandb_mode"] == "online"

    def logged_environment(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Those of the environment variables to log that are set."""
        return {name: environ[name] for name in self.env_vars if name in environ}

    def public_options(self) -> dict[str, Any]:
        """The trackers' options that are set, without the secret ones: safe to keep in
        `run.json`.
        """
        return {k: v for k, v in self.options.items() if v is not None and k not in SECRET_OPTIONS}


def _flag(args: object, name: str) -> bool:
    return bool(getattr(args, name, False))


def _text(args: object, name: str) -> str | None:
    value = getattr(args, name, None)
    return str(value) if value not in (None, "") else None


def _names(args: object, name: str) -> tuple[str, ...]:
    value = getattr(args, name, None) or ()
    return (
        tuple(value.replace(",", " ").split())
        if isinstance(value, str)
        else tuple(str(item) for item in value)
    )


def _writer(args: object) -> WriterPolicy:
    value = getattr(args, "tracking_writer", None) or "auto"
    if value not in get_args(WriterPolicy):
        raise SettingsError(
            f"--tracking-writer {value!r}: must be one of {', '.join(get_args(WriterPolicy))}."
        )
    return cast(WriterPolicy, value)


def _seconds(args: object, name: str, default: float) -> float:
    value = getattr(args, name, None)
    try:
        seconds = default if value is None else float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < 1e7:
        raise SettingsError(
            f"--{name.replace('_', '-')} {value!r}: must be a number of seconds, 0 or more."
        )
    return seconds


def _system_metrics(args: object) -> float | None:
    value = getattr(args, "tracking_system_metrics", None)
    if value is None:
        return DEFAULT_SYSTEM_METRICS_S
    if str(value).lower() in ("off", "0", "false", "no", "none"):
        return None
    return _seconds(args, "tracking_system_metrics", DEFAULT_SYSTEM_METRICS_S)


def _wandb_mode(options: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """The mode asked for; without one, online where a key is known and offline where none is."""
    has_key = _has_wandb_key(options, environ)
    mode = options["wandb_mode"] or environ.get("WANDB_MODE")
    if mode is None:
        return "online" if has_key else "offline"
    if mode == "dryrun":  # the client's old name of it, still seen in job scripts
        return "offline"
    if mode not in (*WANDB_MODES, "shared"):
        raise SettingsError(f"--wandb-mode {mode!r}: must be one of {', '.join(WANDB_MODES)}.")
    if mode in ("online", "shared") and not has_key:
        raise SettingsError(
            "--wandb-mode online, but no W&B API key was found in --wandb-key, WANDB_API_KEY or the"
            " netrc file. Set WANDB_API_KEY, or use --wandb-mode offline."
        )
    return "online" if mode == "shared" else str(mode)


def _has_wandb_key(options: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    if (
        options["wandb_key"]
        or environ.get("WANDB_API_KEY")
        or environ.get("WANDB_IDENTITY_TOKEN_FILE")
    ):
        return True
    host = str(options["wandb_host"] or environ.get("WANDB_BASE_URL") or "https://api.wandb.ai")
    host = host.split("://", 1)[-1].split("/", 1)[0].split(":", 1)[0]
    path = Path(environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        return netrc(str(path)).authenticators(host) is not None
    except (OSError, NetrcParseError):
        return False
