"""Where a person looks at a run in each tracker: its page, or the place and the command that shows
it.

Policy: said from the run's description alone, without a connection. Nothing of an address is
secret: user and password of a server's are left out.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from slime_logging.backends.place import place_of
from slime_logging.values.run import RunFacts


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
    if made is None:
        return None
    options = {**run.options, "run_name": run.name}
    return made(run, place_of(tracker, options, environ, run.directory).address, tools)


def _wandb(run: RunFacts, place: str, tools: str) -> Address:
    if "://" in place:
        host, _, team = _without_userinfo(place).rpartition("/")
        page = host.replace("://api.wandb.ai", "://wandb.ai")
        if not team:
            return Address(place=f"{page} (project {run.project}, run {run.run_id})")
        path = "/".join(quote(part, safe="") for part in (team, run.project, "runs", run.run_id))
        return Address(place=f"{page}/{path}")
    root = Path(place, "wandb")
    files = sorted(root.glob(f"offline-run-*/run-{glob.escape(run.run_id)}.wandb"))
    shown = files[0].parent if files else root
    return Address(place=str(shown), command=f"{tools}wandb leet run {shlex.quote(str(shown))}")


def _trackio(run: RunFacts, place: str, tools: str) -> Address:
    command = f"{tools}trackio show --project {shlex.quote(run.project)}"
    return Address(place=place, command=f"TRACKIO_DIR={shlex.quote(place)} {command}")


def _tensorboard(run: RunFacts, place: str, tools: str) -> Address:
    del run
    command = f"{tools}tensorboard --load_fast=false --logdir {shlex.quote(place)}"
    return Address(place=place, command=command)


def _mlflow(run: RunFacts, place: str, tools: str) -> Address:
    del run
    uri = _without_userinfo(place)
    if not uri.startswith("sqlite:"):
        return Address(place=uri)
    command = f"{tools}mlflow ui --backend-store-uri {shlex.quote(uri)}"
    return Address(
        place=str(Path(uri.removeprefix("sqlite:///")).parent),
        command=f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {command}",
    )


def _swanlab(run: RunFacts, place: str, tools: str) -> Address:
    if "://" in place:
        page = _without_userinfo(place).replace("://api.", "://").rstrip("/")
        return Address(place=f"{page} (project {run.project}, run {run.run_id})")
    return Address(place=place, command=f"{tools}swanlab sync {shlex.quote(place)}/run-*")


_ADDRESSES = {
    "wandb": _wandb,
    "trackio": _trackio,
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "swanlab": _swanlab,
}


def _without_userinfo(url: str) -> str:
    return re.sub(r"(?<=://)[^/?#]*@|[?#].*", "", url)
