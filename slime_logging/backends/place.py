"""Where a tracker's rows go: the one answer, for the client that opens it and for the cursor.

Policy: an option comes before the vendor's own variable, a variable before our default. Whoever
needs an address (a backend that opens or reads, a delivery that names its cursor, a command that
tells it) asks here, with the options and the environment that it has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

from slime_logging.backends.local_store import local_store
from slime_logging.values.run import RunFacts

WANDB_HOST = "https://api.wandb.ai"
SWANLAB_HOST = "https://api.swanlab.cn"

MLFLOW_DATABASE = "mlflow.db?timeout=30"
"""Several jobs write one file: each waits so many seconds for the others."""

Options = Mapping[str, Any]
Environ = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the rows of a run go in one tracker.

    `address` is what its client opens: a path, a URI, or host, workspace and project. `key` names
    the cursor: the same for the same address of the same run, and fit to be a file's name.
    """

    address: str
    key: str


def place_of(tracker: str, options: Options, environ: Environ, directory: Path) -> Place:
    """Where a tracker's rows go.

    Args:
        tracker: its name in `BACKENDS`.
        options: the run's, by their dest names.
        environ: of the process that asks.
        directory: the run's.
    """
    find = _FINDERS.get(tracker)
    address, is_default, kind = find(options, environ, directory) if find else ("", True, "")
    name = f"{tracker}-{kind}" if kind else tracker
    mark = "" if is_default else f"-{crc32(_without_userinfo(address).encode()):08x}"
    return Place(address=address, key=name + mark)


def run_place(tracker: str, run: RunFacts) -> Place:
    """Where a tracker's rows go, asked by a process that has the run's facts."""
    options = {**run.options, "run_name": run.name}
    return place_of(tracker, options, os.environ, run.directory)


def wandb_mode(options: Options, environ: Environ) -> str:
    """`online` or `offline`; a run whose mode nobody said is offline."""
    mode = str(options.get("wandb_mode") or environ.get("WANDB_MODE") or "offline")
    return "online" if mode in ("online", "shared", "run") else "offline"


def swanlab_mode(options: Options, environ: Environ) -> str:
    """`online` or `offline`."""
    mode = str(options.get("swanlab_mode") or environ.get("SWANLAB_MODE") or "offline")
    return "online" if mode in ("cloud", "online") else "offline"


def _wandb(options: Options, environ: Environ, directory: Path) -> tuple[str, bool, str]:
    if wandb_mode(options, environ) == "offline":
        chosen = options.get("wandb_dir")
        root = Path(chosen).expanduser().absolute() if chosen else directory
        return str(root), not chosen, "offline"
    host = str(options.get("wandb_host") or environ.get("WANDB_BASE_URL") or WANDB_HOST)
    team = options.get("wandb_team") or environ.get("WANDB_ENTITY") or ""
    return f"{host.rstrip('/')}/{team}", host.rstrip("/") == WANDB_HOST and not team, "online"


def _trackio(_: Options, environ: Environ, directory: Path) -> tuple[str, bool, str]:
    chosen = environ.get("TRACKIO_DIR")
    own = local_store(directory, "trackio")
    return str(Path(chosen).expanduser().absolute() if chosen else own), not chosen, ""


def _mlflow(options: Options, environ: Environ, directory: Path) -> tuple[str, bool, str]:
    chosen = options.get("mlflow_tracking_uri") or environ.get("MLFLOW_TRACKING_URI")
    own = f"sqlite:///{local_store(directory, 'mlflow') / MLFLOW_DATABASE}"
    return str(chosen or own), not chosen, ""


def _tensorboard(options: Options, environ: Environ, directory: Path) -> tuple[str, bool, str]:
    """Where an earlier writer put them, else as the environment says, the flags, or we."""
    own = directory / "tensorboard"
    project, experiment = options.get("tb_project_name"), options.get("tb_experiment_name")
    name = experiment or options.get("run_name") or directory.name
    if own.exists():
        place = own.resolve()
        return str(place), place == own.parent.resolve() / own.name, ""
    if environ.get("TENSORBOARD_DIR"):
        root = Path(environ["TENSORBOARD_DIR"]).expanduser().absolute()
        return str(root / quote(str(name), safe=" -_.~")), False, ""
    if project:
        return str(Path("tensorboard_log", project, str(name)).absolute()), False, ""
    return str(own), True, ""


def _swanlab(options: Options, environ: Environ, directory: Path) -> tuple[str, bool, str]:
    if swanlab_mode(options, environ) == "offline":
        return str(directory / "swanlab"), True, "offline"
    host = environ.get("SWANLAB_API_HOST") or SWANLAB_HOST
    workspace = options.get("swanlab_workspace") or ""
    is_default = host.rstrip("/") == SWANLAB_HOST and not workspace
    return f"{host.rstrip('/')}/{workspace}", is_default, "online"


_FINDERS: Mapping[str, Callable[[Options, Environ, Path], tuple[str, bool, str]]] = {
    "wandb": _wandb,
    "trackio": _trackio,
    "mlflow": _mlflow,
    "tensorboard": _tensorboard,
    "swanlab": _swanlab,
}


def _without_userinfo(uri: str) -> str:
    """An address without user, password and query: a checksum would tell whether a guess is
    right.
    """
    return re.sub(r"(?<=://)[^/?#]*@|\?[^#]*", "", uri)
