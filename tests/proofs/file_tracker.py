"""A tracker that is a file, and dies at a chosen step: for deliveries that are killed between any two of their steps.

Every step of a delivery that can be seen from outside is counted: each call of the tracker, before and behind it, and
each file of the run's directory that is opened or renamed. At step `DIE_AT` the process is gone, as by `kill -9`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from slime_logging.backends.base import Writer
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

DIE_AT = -1
HAS_QUEUE = False
DIED = 9
_num_steps = 0
_watched = ""


def step() -> None:
    """One more step is done."""
    global _num_steps
    if _num_steps == DIE_AT:
        os._exit(DIED)
    _num_steps += 1


def watch(directory: Path) -> None:
    """Count from now on, the opening and renaming of files below a directory too; for the rest of this process."""
    global _watched, _num_steps
    _watched, _num_steps = str(directory), 0
    sys.addaudithook(_heard)


def _heard(event: str, details: tuple[object, ...]) -> None:
    if event in ("open", "os.rename", "os.remove") and str(details[0]).startswith(_watched):
        step()


class FileTracker:
    """Keeps rows and configuration in two files; with a queue, some of it only gets there by `close`."""

    name = "file"

    def __init__(self) -> None:
        self._place = Path()
        self._queue: list[Row] = []

    @property
    def is_durable(self) -> bool:
        """False with a queue."""
        return not HAS_QUEUE

    def settle_s(self, run: RunFacts) -> float:
        """None: its queue dies with its process."""
        return 0.0

    def open(self, run: RunFacts, writer: Writer) -> None:
        """Find the files."""
        step()
        self._place = _place(run)
        self._place.mkdir(exist_ok=True)
        step()

    def set_config(self, config: RunConfig) -> None:
        """Replace the configuration."""
        step()
        (self._place / "config.json").write_text(json.dumps(dict(config.values)))
        step()

    def write(self, rows: Sequence[Row]) -> None:
        """Append the rows one by one; with a queue, the older half of it at most."""
        step()
        self._queue += rows
        keep = len(self._queue) // 2 if HAS_QUEUE else 0
        while len(self._queue) > keep:
            self._append(self._queue.pop(0))
            step()

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Append what is in the queue."""
        step()
        while self._queue:
            self._append(self._queue.pop(0))
            step()

    def points(self, row: Row) -> list[Point]:
        """Its id."""
        return [row.row_id]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The ids in the file."""
        step()
        path = _place(run) / "rows.txt"
        yield from path.read_text().split() if path.exists() else ()

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """Unchanged."""
        return dict(config.values)

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """What the file holds."""
        path = _place(run) / "config.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _append(self, row: Row) -> None:
        with (self._place / "rows.txt").open("a") as file:
            file.write(f"{row.row_id}\n")


def _place(run: RunFacts) -> Path:
    return run.directory.parent / "tracker"
