"""Every flag that says how a job is tracked: one row each, with whatever else can say the same.

Policy: slime's flags keep slime's names, defaults and meaning; ours stand beside them, and each of
ours has an environment variable, because an unchanged slime lets no new flag through its parser. A
flag wins over its variable, and our variable over a vendor's.
"""

from __future__ import annotations

from argparse import BooleanOptionalAction
from typing import Literal, get_args

from slime_logging.settings.option import (
    NAMES,
    PREFIX,
    SWITCH,
    TRACKERS_VARIABLE,
    Option,
    ours,
    slimes,
)

WriterPolicy = Literal["auto", "single", "shared"]
DeliveryPolicy = Literal["auto", "off"]
RunIdSource = Literal["auto", "slurm", "torchelastic", "ray", "checkpoint", "none"]
RewindPolicy = Literal["keep", "mark", "drop"]

TRACKERS = ("wandb", "trackio", "tensorboard", "mlflow", "swanlab", "memory")
"""Every tracker in the order in which it is reported; `use_<name>` switches it on."""

EVERY_TRACKER = "*"
WANDB_MODES = ("online", "offline", "disabled")
DEFAULT_DIRECTORY = "tracking"


OPTIONS: tuple[Option, ...] = (
    slimes("--use-wandb", "Track the job with Weights & Biases.", SWITCH),
    slimes(
        "--wandb-mode",
        "Default: WANDB_MODE, else online if a key is known, else offline.",
        {"choices": WANDB_MODES},
        tracker="wandb",
        env=("WANDB_MODE",),
    ),
    slimes(
        "--wandb-dir",
        "Where W&B keeps its local files. Default: WANDB_DIR, else inside the run's directory.",
        tracker="wandb",
        env=("WANDB_DIR",),
        is_place=True,
    ),
    slimes(
        "--wandb-key",
        "API key. It never reaches a file, a tracker or a log; WANDB_API_KEY is the safer way.",
        tracker="wandb",
        env=("WANDB_API_KEY",),
        is_secret=True,
    ),
    slimes(
        "--wandb-host",
        "Base URL of a W&B server of your own.",
        tracker="wandb",
        env=("WANDB_BASE_URL",),
        is_place=True,
    ),
    slimes("--wandb-team", "W&B entity.", tracker="wandb", env=("WANDB_ENTITY",), is_shown=True),
    slimes(
        "--wandb-group",
        "Group of the run, and the start of its name.",
        tracker="wandb",
        env=("WANDB_RUN_GROUP",),
        is_shown=True,
    ),
    slimes(
        "--wandb-project",
        "Project of the run.",
        tracker="wandb",
        env=("WANDB_PROJECT",),
        is_shown=True,
    ),
    slimes(
        "--disable-wandb-random-suffix",
        "Name the run exactly like its group.",
        {"action": "store_false", "dest": "wandb_random_suffix"},
    ),
    slimes(
        "--wandb-always-use-train-step", "Read by slime: count rollouts in train steps.", SWITCH
    ),
    slimes(
        "--wandb-run-id",
        "Continue the run with this id, or create it.",
        env=(f"{PREFIX}RUN_ID", "WANDB_RUN_ID"),
    ),
    slimes("--use-tensorboard", "Track the job with TensorBoard.", SWITCH),
    slimes(
        "--tb-project-name",
        "Folder of the TensorBoard project. Default: the project's name.",
        tracker="tensorboard",
        is_shown=True,
    ),
    slimes(
        "--tb-experiment-name",
        "Folder of the TensorBoard run. Default: the run's name.",
        tracker="tensorboard",
        is_shown=True,
    ),
    ours("--use-trackio", "Track the job with Trackio (local, no account).", SWITCH),
    ours("--use-mlflow", "Track the job with MLflow.", SWITCH),
    ours(
        "--mlflow-tracking-uri",
        "Default: MLFLOW_TRACKING_URI, else a SQLite file in the tracking directory.",
        tracker="mlflow",
        env=("MLFLOW_TRACKING_URI",),
        is_place=True,
    ),
    ours(
        "--mlflow-experiment",
        "Default: MLFLOW_EXPERIMENT_NAME, else the project's name.",
        tracker="mlflow",
        env=("MLFLOW_EXPERIMENT_NAME",),
        is_shown=True,
    ),
    ours("--use-swanlab", "Track the job with SwanLab.", SWITCH),
    ours(
        "--swanlab-mode",
        "Default: SWANLAB_MODE, else offline.",
        {"choices": ("cloud", "offline")},
        tracker="swanlab",
        env=("SWANLAB_MODE",),
    ),
    ours(
        "--swanlab-project",
        "Default: SWANLAB_PROJ_NAME, else the project's name.",
        tracker="swanlab",
        env=("SWANLAB_PROJ_NAME",),
        is_shown=True,
    ),
    ours("--swanlab-workspace", "SwanLab workspace.", tracker="swanlab", is_shown=True),
    ours(
        "--tracking-name",
        "Name of the run. Default: WANDB_NAME, else the group or project with the run's id.",
        env=("WANDB_NAME",),
    ),
    ours(
        "--tracking-tags",
        "Tags of the run. Default: WANDB_TAGS.",
        {"nargs": "*", "metavar": "TAG"},
        tracker=EVERY_TRACKER,
        env=("WANDB_TAGS",),
        is_shown=True,
    ),
    ours(
        "--tracking-notes",
        "What the run is about. Default: WANDB_NOTES.",
        {"metavar": "TEXT"},
        tracker=EVERY_TRACKER,
        env=("WANDB_NOTES",),
        is_shown=True,
    ),
    ours(
        "--tracking-job-type",
        "What kind of job it is, such as train. Default: WANDB_JOB_TYPE.",
        tracker=EVERY_TRACKER,
        env=("WANDB_JOB_TYPE",),
        is_shown=True,
    ),
    ours("--tracking-dir", f"Where runs are kept. Default: ./{DEFAULT_DIRECTORY}."),
    ours(
        "--tracking-writer",
        "Who delivers: the primary for all it can see (auto, single), or each process for itself"
        " (shared). Default: auto.",
        {"choices": get_args(WriterPolicy)},
    ),
    ours(
        "--tracking-delivery",
        "off: the job keeps journals only, and `slime-logging sync --follow` delivers them from"
        " where there is internet. Default: auto.",
        {"choices": get_args(DeliveryPolicy)},
    ),
    ours(
        "--tracking-run-id-from",
        "What makes a restarted job the same run: its SLURM allocation and array task, its"
        " torchrun, its Ray job, or the directory of its checkpoints. Default: auto.",
        {"choices": get_args(RunIdSource)},
    ),
    ours(
        "--tracking-resume",
        "Continue the newest run of --tracking-dir that has the same project and group.",
        {"action": BooleanOptionalAction},
    ),
    ours(
        "--tracking-rewind",
        "Where a continued run goes back to a step that it had: keep all rows, mark them with the"
        " number of the attempt, or drop the earlier ones where the tracker can. Default: keep.",
        {"choices": get_args(RewindPolicy)},
    ),
    ours(
        "--tracking-finish-timeout",
        "How long the end of the job waits for slow trackers (default 60).",
        {"type": float, "metavar": "SECONDS"},
    ),
    ours("--tracking-hide", "More names or patterns whose values are secret.", NAMES),
    ours("--tracking-show", "Exact keys that are not secret after all.", NAMES),
    ours("--tracking-env", "More environment variables to log under env_vars.", NAMES),
    ours(
        "--tracking-system-metrics",
        "Sampling interval of the hosts' CPU, memory and GPUs (default 15), or off.",
        {"metavar": "SECONDS|off"},
        tracker=EVERY_TRACKER,
    ),
)

BY_NAME = {option.name: option for option in OPTIONS}
TRACKER_OPTIONS = tuple(option for option in OPTIONS if option.tracker is not None)
"""Those that a backend may read from `RunFacts.options`."""

OTHER_VARIABLES = {
    TRACKERS_VARIABLE: "Trackers to switch on, by name: trackio,mlflow.",
    f"{PREFIX}RUN": "The run to join, as one token: ID@DIRECTORY.",
    f"{PREFIX}PATCH": "1: slime's own calls of its tracking come here.",
}
"""Our variables that stand for no single flag."""
