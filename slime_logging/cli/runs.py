"""What the commands that take a run share: finding it, the options of its trackers, and one way to end with an error.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from slime_logging.backends.base import RunFacts
from slime_logging.config.redact import escape_terminal
from slime_logging.errors import TrackingError
from slime_logging.record.run import RunDirectory, RunFile, find_run
from slime_logging.session import run_facts
from slime_logging.settings import Settings

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's directory, or its id below --tracking-dir.")]
DirectoryOption = Annotated[
    Path | None,
    typer.Option("--tracking-dir", help="Where runs are kept. Default: SLIME_LOGGING_DIR, else ./tracking."),
]


def open_run(where: str, tracking_dir: Path | None) -> RunDirectory:
    """The run that a person names."""
    return find_run(where, Settings.of(Namespace(tracking_dir=tracking_dir)).directory)


def facts_of(directory: RunDirectory, run: RunFile, overrides: dict[str, object]) -> RunFacts:
    """The run's facts with the options that its job had, the environment's secrets, and what was said on this command
    line.
    """
    return run_facts(run, directory, {**run.options, **{k: v for k, v in overrides.items() if v is not None}})


def plain(text: object) -> Text:
    """Text of a run for a terminal: no markup, no control characters."""
    return Text(escape_terminal(str(text)))


@contextmanager
def told_plainly() -> Iterator[None]:
    """End the command with exit code 1 and one readable message instead of a traceback."""
    try:
        yield
    except (TrackingError, OSError) as error:
        Console(stderr=True).print(Text("error: ", style="bold red") + plain(error))
        raise typer.Exit(1) from error
