"""Where a person looks at a run in each tracker: its page, or the place and the command that shows
it.

Policy: said from the run's description alone, without a connection. Nothing of an address is
secret: user and password of a server's are left out.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from slime_logging.backends.local_store import local_store
from slime_logging.values.run import RunFacts

HOSTED = "https://api.wandb.ai"


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """`place` is a page's address or a path; `command` shows what is there, "" for a page."""

    place: str
    command: str = ""


def address_of(
    tracker: str, run: RunFacts, environ: Mapping[str, str] = os.environ, tools: str = ""
) -> Address | None:
    """Where this tracker shows the run; None for one that shows nothing.

    Args:
        tracker: its name.
        run: what a backend is told.
        environ: the environment that the tracker is opened with.
        tools: the folder of the trackers' commands with a slash behind it, "" where the shell
            finds them.
    """
    made = _ADDRESSES.get(tracker)
    return made(run, environ, tools) if made else None


def _wandb(run: RunFacts, environ: Mapping[str, str], tools: str) -> Address:
    if run.options.get("wandb_mode") == "online":
        host = str(run.options.get("wandb_host") or environ.get("WANDB_BASE_URL") or HOSTED)
        host = _without_userinfo(host).rstrip("/").replace("://api.wandb.ai", "://wandb.ai")
        team = run.options.get("wandb_team") or environ.get("WANDB_ENTITY")
        if not team:
            return Address(place=f"{host} (project {run.project}, run {run.run_id})")
        path = "/".join(quote(str(part), safe="") for part in (team, run.project))
        return Address(place=f"{host}/{path}/runs/{quote(run.run_id, safe='')}")
    root = Path(str(run.options.get("wandb_dir") or run.directory)) / "wandb"
    files = sorted(root.glob(f"offline-run-*/run-{run.run_id}.wandb")) if root.is_dir() else []
    place = files[0].parent if files else root
    return Address(place=str(place), command=f"{tools}wandb leet run {_quoted(place)}")


def _trackio(run: RunFacts, environ: Mapping[str, str], tools: str) -> Address:
    chosen = environ.get("TRACKIO_DIR")
    place = Path(chosen).expanduser().absolute() if chosen else local_store(run, "trackio")
    command = f"{tools}trackio show --project {shlex.quote(run.project)}"
    return Address(place=str(place), command=f"TRACKIO_DIR={_quoted(place)} {command}")


def _tensorboard(run: RunFacts, environ: Mapping[str, str], tools: str) -> Address:
    del environ
    place = run.directory / "tensorboard"
    command = f"{tools}tensorboard --load_fast=false --logdir {_quoted(place)}"
    return Address(place=str(place), command=command)


def _mlflow(run: RunFacts, environ: Mapping[str, str], tools: str) -> Address:
    server = run.options.get("mlflow_tracking_uri") or environ.get("MLFLOW_TRACKING_URI")
    if server:
        return Address(place=_without_userinfo(str(server)))
    place = local_store(run, "mlflow")
    store = shlex.quote(f"sqlite:///{place}/mlflow.db")
    command = f"{tools}mlflow ui --backend-store-uri {store}"
    return Address(place=str(place), command=f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {command}")


def _swanlab(run: RunFacts, environ: Mapping[str, str], tools: str) -> Address:
    mode = run.options.get("swanlab_mode") or environ.get("SWANLAB_MODE") or "offline"
    if mode in ("cloud", "online"):
        host = _without_userinfo(environ.get("SWANLAB_WEB_HOST") or "https://swanlab.cn")
        return Address(place=f"{host} (project {run.project}, run {run.run_id})")
    place = run.directory / "swanlab"
    return Address(place=str(place), command=f"{tools}swanlab sync {_quoted(place)}/run-*")


_ADDRESSES = {
    "wandb": _wandb,
    "trackio": _trackio,
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "swanlab": _swanlab,
}


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _without_userinfo(url: str) -> str:
    return re.sub(r"(?<=://)[^/?#]*@|[?#].*", "", url)
