"""W&B's place: a directory offline, a server's host and team online."""

from __future__ import annotations

import glob
import shlex
from pathlib import Path
from urllib.parse import quote

from slime_logging.backends.place import Address, Environ, Options, Where
from slime_logging.values.run import RunFacts

HOST = "https://api.wandb.ai"


def mode(options: Options, environ: Environ) -> str:
    """`online` or `offline`; a run whose mode nobody said is offline."""
    said = str(options.get("wandb_mode") or environ.get("WANDB_MODE") or "offline")
    return "online" if said in ("online", "shared", "run") else "offline"


def place(options: Options, environ: Environ, directory: Path) -> Where:
    """The directory that holds the client's own `wandb`, or `host/team`."""
    if mode(options, environ) == "offline":
        chosen = options.get("wandb_dir")
        root = Path(chosen).expanduser().absolute() if chosen else directory
        return Where(str(root), not chosen, "offline")
    host = str(options.get("wandb_host") or environ.get("WANDB_BASE_URL") or HOST).rstrip("/")
    team = options.get("wandb_team") or environ.get("WANDB_ENTITY") or ""
    return Where(f"{host}/{team}", host == HOST and not team, "online")


def address(run: RunFacts, place: str, tools: str) -> Address:
    """The run's page, or the command that shows its files."""
    if "://" in place:
        host, _, team = place.rpartition("/")
        page = host.replace("://api.wandb.ai", "://wandb.ai")
        if not team:
            return Address(place=f"{page} (project {run.project}, run {run.run_id})")
        path = "/".join(quote(part, safe="") for part in (team, run.project, "runs", run.run_id))
        return Address(place=f"{page}/{path}")
    root = Path(place, "wandb")
    files = sorted(root.glob(f"offline-run-*/run-{glob.escape(run.run_id)}.wandb"))
    shown = files[0].parent if files else root
    return Address(place=str(shown), command=f"{tools}wandb leet run {shlex.quote(str(shown))}")
