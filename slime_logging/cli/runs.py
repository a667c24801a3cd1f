"""What the commands that take a run share: finding it, the options of its trackers, one way to end
with an error.
"""

from __future__ import annotations

import os
import re
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from slime_logging.backends.table import BACKENDS, require_packages
from slime_logging.cli.trust import (
    check_links,
    check_stores,
    check_tensorboard,
    trusted_options,
)
from slime_logging.errors import BackendError, SettingsError, TrackingError
from slime_logging.record.finding import find_run
from slime_logging.record.run import RunDirectory, RunFile
from slime_logging.redaction.redact import Redactor, escape_terminal
from slime_logging.settings.options import TRACKER_OPTIONS
from slime_logging.settings.settings import Settings
from slime_logging.values.run import RunFacts

PIPED_COLUMNS = 1_000
"""A line stays a line; tables are as wide as what is in them."""

_UNESCAPED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def runs_directory(tracking_dir: Path | None) -> Path:
    """Where runs are kept, as said on the command line or by the environment."""
    return Settings.of(Namespace(tracking_dir=tracking_dir)).directory


def console(*, is_error: bool = False) -> Console:
    """A console for a run's texts; what is piped is not folded, whatever the terminal's width."""
    made = Console(stderr=is_error, highlight=False)
    if not made.is_terminal and not os.environ.get("COLUMNS"):
        made.width = PIPED_COLUMNS
    return made


def open_run(where: str, tracking_dir: Path | None) -> RunDirectory:
    """The run that a person names.

    Raises:
        RunNotFoundError: there is none, or there are links in it.
    """
    directory = find_run(where, runs_directory(tracking_dir))
    check_links(directory)
    return directory


def facts_of(
    directory: RunDirectory,
    run: RunFile,
    said: Mapping[str, object],
    trackers: Sequence[str],
    *,
    is_writing: bool,
) -> RunFacts:
    """The run's facts, with those of its job's options that are believed and what was said on this
    command line.

    Args:
        directory: the run's.
        run: what `run.json` says.
        said: options of this command line; None where nothing was said.
        trackers: which are meant.
        is_writing: whether they are delivered to, instead of read back.

    Raises:
        SettingsError: the run names a place that the user did not name.
    """
    given = {name: value for name, value in said.items() if value is not None}
    options = trusted_options(directory, run, given, trackers, is_writing=is_writing)
    if is_writing:
        chosen = {
            "trackio": os.environ.get("TRACKIO_DIR"),
            "mlflow": options.get("mlflow_tracking_uri") or os.environ.get("MLFLOW_TRACKING_URI"),
        }
        check_stores(directory, [name for name in trackers if not chosen.get(name)])
    if is_writing and "tensorboard" in trackers:
        check_tensorboard(directory, options, os.environ)
    return run.facts(directory.path, options)


def check_trackers(trackers: Sequence[str]) -> None:
    """Refuse a tracker that there is not.

    Raises:
        SettingsError: no tracker has this name.
        MissingBackendError: its package is not installed.
    """
    unknown = [name for name in trackers if name not in BACKENDS]
    if unknown:
        raise SettingsError(f"no tracker {unknown[0]!r}; there are: {', '.join(BACKENDS)}.")
    require_packages(*trackers)


def parse_options(items: Sequence[str]) -> dict[str, object]:
    """`NAME=VALUE` texts as a mapping; `BadParameter` for a name that is none of a tracker's
    options.
    """
    pairs = dict(item.partition("=")[::2] for item in items)
    known = [option.name for option in TRACKER_OPTIONS]
    unknown = sorted(set(pairs) - set(known))
    if unknown:
        raise typer.BadParameter(f"unknown option {unknown[0]!r}; there are: {', '.join(known)}")
    return dict(pairs)


def redactor_of(options: Mapping[str, object]) -> Redactor:
    """What hides the secrets that a command knows: those of its options, command line, environment
    and logins.
    """
    return Redactor.of(options, os.environ, argv=sys.argv)


def plain(text: object) -> Text:
    """One line of a run's texts for a terminal: no markup, no control characters."""
    return Text(one_line(str(text)))


def one_line(text: str) -> str:
    """A text on one line, without control characters."""
    return escape_terminal(text).replace("\n", "\\n").replace("\t", "\\t")


def age(time_s: float) -> str:
    """How long ago it was, for people; empty where there is no time."""
    seconds = time.time() - time_s
    if time_s <= 0:
        return ""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"


def print_json(value: object) -> None:
    """Print JSON whose texts cannot move a terminal: what JSON leaves unescaped is escaped too."""
    import orjson

    text = orjson.dumps(
        value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    ).decode()
    typer.echo(_UNESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text))


@contextmanager
def told_plainly() -> Iterator[None]:
    """End the command with exit code 1 and one readable message, without secrets, instead of a
    traceback.
    """
    try:
        yield
    except (TrackingError, OSError, RecursionError) as error:
        redactor = redactor_of({})
        text = (
            redactor.text(str(error))
            if isinstance(error, BackendError)
            else redactor.message(str(error))
        )
        Console(stderr=True).print(
            Text("error: ", style="bold red") + Text(escape_terminal(text)), soft_wrap=True
        )
        raise typer.Exit(1) from None
