"""The run that a person names: a path, an id or the beginning of one, or the newest.

Policy: a path is a path and nothing else; a message speaks of the place that was meant.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from slime_logging.errors import RunNotFoundError
from slime_logging.record.run import RUN_FILE, RunDirectory, newest_run

NEWEST = "@newest"
_NUM_NAMED = 10


def run_directories(directory: Path) -> list[RunDirectory]:
    """Every run of a tracking directory, by its folder's name."""
    return [RunDirectory(path.parent) for path in sorted(directory.glob(f"*/{RUN_FILE}"))]


def find_run(where: str | Path, directory: Path) -> RunDirectory:
    """The run that a person names.

    Args:
        where: a path to a run's directory, an id below the tracking directory, the beginning of
            one id only, or `@newest`.
        directory: the tracking directory.

    Raises:
        RunNotFoundError: there is none, or several: with what is there.
    """
    text = os.fspath(where)
    if text == NEWEST:
        newest = newest_run(directory)
        if newest is None:
            raise RunNotFoundError(f"{NEWEST}: there are no runs in {directory}.{_elsewhere()}")
        return newest
    path = Path(os.path.expanduser(text))  # noqa: PTH111 - Path raises for an unknown user
    if (path / RUN_FILE).is_file():
        return RunDirectory(path)
    if os.sep in text or text.startswith((".", "~")):
        raise RunNotFoundError(_no_run_at(path))
    if text and (directory / text / RUN_FILE).is_file():
        return RunDirectory(directory / text)
    known = [run.path.name for run in run_directories(directory)]
    begun = [name for name in known if text and name.startswith(text)]
    if len(begun) == 1:
        return RunDirectory(directory / begun[0])
    if begun:
        raise RunNotFoundError(
            f"{text!r} begins {len(begun)} runs: {_named(begun)}. Say more of it."
        )
    if not known:
        raise RunNotFoundError(f"no run {text!r}: there are no runs in {directory}.{_elsewhere()}")
    near = difflib.get_close_matches(text, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"runs there: {_named(known)}."
    raise RunNotFoundError(f"no run {text!r} in {directory}; {hint}")


def _no_run_at(path: Path) -> str:
    if not path.exists():
        above = next((p for p in path.absolute().parents if p.exists()), Path("/"))
        return f"no run at {path}: there is no such directory; {above} is there."
    if not path.is_dir():
        return f"no run at {path}: it is a file. Give the directory that holds run.json."
    inside = [run.path.name for run in run_directories(path)]
    if inside:
        return (
            f"no run at {path}: it holds {len(inside)} runs. Name one ({_named(inside)}), or use"
            f" --tracking-dir {path}."
        )
    return f"no run at {path}: there is no run.json in it."


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NUM_NAMED} more" if len(names) > _NUM_NAMED else ""
    return ", ".join(names[:_NUM_NAMED]) + more


def _elsewhere() -> str:
    return " Say where with --tracking-dir or SLIME_LOGGING_DIR."
