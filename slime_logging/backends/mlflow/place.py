"""MLflow's place: a server, or a database of the tracking directory's own."""

from __future__ import annotations

import shlex
from pathlib import Path

from slime_logging.backends.local_store import local_store
from slime_logging.backends.place import Address, Environ, Options, Where
from slime_logging.values.run import RunFacts

DATABASE = "mlflow.db?timeout=30"
"""Several jobs write one file: each waits so many seconds for the others."""


def place(options: Options, environ: Environ, directory: Path) -> Where:
    """The tracking URI."""
    chosen = options.get("mlflow_tracking_uri") or environ.get("MLFLOW_TRACKING_URI")
    own = f"sqlite:///{local_store(directory, 'mlflow') / DATABASE}"
    return Where(str(chosen or own), not chosen)


def address(run: RunFacts, place: str, tools: str) -> Address:
    """The server, or the command that shows the database."""
    del run
    if not place.startswith("sqlite:"):
        return Address(place=place)
    command = f"{tools}mlflow ui --backend-store-uri {shlex.quote(place)}"
    return Address(
        place=str(Path(place.removeprefix("sqlite:///")).parent),
        command=f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {command}",
    )
