"""Trackio's place: a directory of databases."""

from __future__ import annotations

import shlex
from pathlib import Path

from slime_logging.backends.local_store import local_store
from slime_logging.backends.place import Address, Environ, Options, Where
from slime_logging.values.run import RunFacts


def place(options: Options, environ: Environ, directory: Path) -> Where:
    """TRACKIO_DIR, else the tracking directory's own store."""
    del options
    chosen = environ.get("TRACKIO_DIR")
    own = local_store(directory, "trackio")
    return Where(str(Path(chosen).expanduser().absolute() if chosen else own), not chosen)


def address(run: RunFacts, place: str, tools: str) -> Address:
    """The command that shows the project."""
    command = f"{tools}trackio show --project {shlex.quote(run.project)}"
    return Address(place=place, command=f"TRACKIO_DIR={shlex.quote(place)} {command}")
