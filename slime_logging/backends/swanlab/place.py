"""SwanLab's place: a directory offline, a server's host and workspace online."""

from __future__ import annotations

import shlex
from pathlib import Path

from slime_logging.backends.place import Address, Environ, Options, Where
from slime_logging.values.run import RunFacts

HOST = "https://api.swanlab.cn"


def mode(options: Options, environ: Environ) -> str:
    """`online` or `offline`."""
    said = str(options.get("swanlab_mode") or environ.get("SWANLAB_MODE") or "offline")
    return "online" if said in ("cloud", "online") else "offline"


def place(options: Options, environ: Environ, directory: Path) -> Where:
    """The directory of its files, or `host/workspace`."""
    if mode(options, environ) == "offline":
        return Where(str(directory / "swanlab"), is_default=True, kind="offline")
    host = (environ.get("SWANLAB_API_HOST") or HOST).rstrip("/")
    workspace = options.get("swanlab_workspace") or ""
    return Where(f"{host}/{workspace}", host == HOST and not workspace, "online")


def address(run: RunFacts, place: str, tools: str) -> Address:
    """The server, or the command that uploads the files, which is how they are looked at."""
    if "://" in place:
        page = place.replace("://api.", "://").rstrip("/")
        return Address(place=f"{page} (project {run.project}, run {run.run_id})")
    return Address(place=place, command=f"{tools}swanlab sync {shlex.quote(place)}/run-*")
