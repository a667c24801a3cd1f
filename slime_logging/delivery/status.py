"""What a run's directory says of its processes and deliveries, for people who look at it: read
only.

Policy: a directory is hostile input. Names are taken from file names, sizes are bounded by the
readers, damaged lines are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from slime_logging.delivery.cursor import Cursor, next_cursor, read_cursors
from slime_logging.delivery.ending import Ending, read_ending
from slime_logging.delivery.fold import ConfigFold
from slime_logging.delivery.refused import SetAside, read_set_aside
from slime_logging.record.entries import decode_config
from slime_logging.record.journal_status import JournalStatus, Onlooker, journal_status
from slime_logging.record.reading import (
    UnreadableJournal,
    read_records,
    read_rows,
    survey,
)
from slime_logging.record.run import RunDirectory, RunFile
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig


@dataclass(frozen=True, kw_only=True)
class DeliveryStatus:
    """How far one tracker is, over all processes that delivered to it."""

    destination: str
    state: str
    reason: str
    num_confirmed: int
    num_handed: int
    num_left: int
    num_set_aside: int
    updated_s: float
    page: str


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """A run as its directory shows it."""

    run: RunFile
    path: Path
    is_running: bool
    ending: Ending | None
    journals: tuple[JournalStatus, ...]
    deliveries: tuple[DeliveryStatus, ...]
    set_aside: tuple[SetAside, ...]
    unreadable: tuple[UnreadableJournal, ...]

    @property
    def num_rows(self) -> int:
        """Rows in all journals."""
        return sum(journal.num_rows for journal in self.journals)


def run_status(directory: RunDirectory, onlooker: Onlooker | None = None) -> RunStatus:
    """Read a run's directory, start after start, each journal once.

    Args:
        directory: the run's.
        onlooker: sees everything that the journals hold.

    Raises:
        RunNotFoundError: it is no run.
    """
    run = directory.read()
    known, unreadable = survey(directory)
    known.sort(key=lambda one: (one[1].start, one[1].time_s, one[0].name))
    found = (journal_status(path, onlooker, opening) for path, opening in known)
    journals = tuple(status for status in found if status is not None)
    num_rows = sum(journal.num_rows for journal in journals)
    ending = read_ending(directory, run.num_starts)
    return RunStatus(
        run=run,
        path=directory.path,
        is_running=directory.locks.has_living_primary,
        ending=ending,
        journals=journals,
        deliveries=delivery_statuses(directory, num_rows),
        set_aside=tuple(read_set_aside(directory)),
        unreadable=unreadable,
    )


def delivery_statuses(directory: RunDirectory, num_rows: int) -> tuple[DeliveryStatus, ...]:
    """How far each destination is that was ever delivered to.

    Args:
        directory: the run's.
        num_rows: rows in all journals of the run.
    """
    by_destination: dict[str, list[Cursor]] = {}
    for cursor in read_cursors(directory):
        by_destination.setdefault(cursor.destination, []).append(cursor)
    return tuple(
        _status(destination, cursors, num_rows) for destination, cursors in by_destination.items()
    )


def _status(destination: str, cursors: list[Cursor], num_rows: int) -> DeliveryStatus:
    merged, _ = next_cursor("", destination, "", cursors)
    num_confirmed = sum(place.num_confirmed for place in merged.places.values())
    num_handed = sum(
        max(cursor.places[journal].num_handed for cursor in cursors if journal in cursor.places)
        for journal in merged.places
    )
    last = cursors[-1]
    return DeliveryStatus(
        destination=destination,
        state=last.state,
        reason=last.reason,
        num_confirmed=num_confirmed,
        num_handed=num_handed,
        num_left=max(0, num_rows - num_confirmed - merged.num_set_aside),
        num_set_aside=merged.num_set_aside,
        updated_s=last.updated_s,
        page=next((cursor.page for cursor in reversed(cursors) if cursor.page), ""),
    )


def journal_rows(directory: RunDirectory) -> Iterator[Row]:
    """Every row of every journal, journal by journal, in order; lines that are damaged are passed
    over.
    """
    for path in directory.journal_paths():
        yield from read_rows(path)


def journal_config(directory: RunDirectory, roles: tuple[str, ...]) -> RunConfig:
    """The run's configuration out of all its journals; records that are damaged are passed over."""
    fold = ConfigFold()
    for path in directory.journal_paths():
        for _, opening, record in read_records(path, has_rows=False):
            if record.get("kind") == "config":
                with suppress(ValueError):
                    fold.add(decode_config(record, opening))
    return fold.config(roles)
