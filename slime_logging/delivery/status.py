"""What a run's directory says of its processes and deliveries, for people who look at it: read
only.

Policy: a directory is hostile input. Names are taken from file names, sizes are bounded by the
readers, damaged lines are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_logging.delivery.aside import SetAside, read_set_aside
from slime_logging.delivery.cursor import Cursor, next_cursor, read_cursors
from slime_logging.delivery.ending import Ending, read_ending
from slime_logging.delivery.fold import ConfigFold
from slime_logging.record.entries import Opening, decode_config
from slime_logging.record.journal import JournalReader
from slime_logging.record.reading import (
    UnreadableJournal,
    read_batches,
    read_opening,
    read_records,
    read_rows,
    unreadable_journals,
)
from slime_logging.record.run import RunDirectory, RunFile
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig


@dataclass(frozen=True, kw_only=True)
class JournalStatus:
    """One process of the run. Times are Unix seconds; `exit_code` is None while it has not said
    that it finished.

    `num_torn_bytes` counts bytes behind the last complete line (a write that a crash cut),
    `num_damaged` complete lines that do not parse, `num_missing` sequence numbers that are not
    there, `num_lost` what of the rows could not be kept: values that cannot be read, rows that no
    line can hold.
    """

    opening: Opening
    num_rows: int
    last_s: float
    exit_code: int | None
    num_torn_bytes: int
    num_damaged: int
    num_missing: int
    num_lost: int


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


See = Callable[[Opening, Sequence[dict[str, Any]]], None]
"""Looks at records of the process that this opening line names, in their order."""


def run_status(directory: RunDirectory, see: See = lambda _opening, _records: None) -> RunStatus:
    """Read a run's directory, start after start, each journal once.

    Args:
        directory: the run's.
        see: called with all records.

    Raises:
        RunNotFoundError: it is no run.
    """
    run = directory.read()
    openings = ((path, read_opening(path)) for path in directory.journal_paths())
    known = sorted((o.start, o.time_s, path) for path, o in openings if o is not None)
    journals = tuple(
        status for _, _, path in known if (status := journal_status(path, see)) is not None
    )
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
        unreadable=tuple(unreadable_journals(directory)),
    )


def journal_status(path: Path, see: See = lambda _opening, _records: None) -> JournalStatus | None:
    """One journal, read from its start to its end; None when it does not begin as a journal
    does.

    Args:
        path: the journal's.
        see: called with all records.
    """
    opening: Opening | None = None
    num_rows, num_records, num_lost, last_seq, last_s = 0, 0, 0, -1, 0.0
    exit_code: int | None = None
    reader = JournalReader(path)
    try:
        for batch in read_batches(reader):
            records = [record for _, record in batch]
            if opening is None and records:
                opening = Opening.of(records[0])
            num_records += len(records)
            kinds = [record.get("kind") for record in records]
            num_rows += kinds.count("row")
            lost = [record["num_lost"] for record in records if "num_lost" in record]
            num_lost += sum(number for number in lost if isinstance(number, int))
            times = [record.get("time_s") for record in records]
            last_s = max(last_s, *(t for t in times if isinstance(t, (int, float))), 0.0)
            seqs = [record.get("seq") for record in records]
            last_seq = max(last_seq, num_records - 1, *(n for n in seqs if isinstance(n, int)))
            for kind, record in zip(kinds, records, strict=True):
                if kind == "finish" and isinstance(record.get("exit_code"), int):
                    exit_code = record["exit_code"]
            if opening is not None:
                see(opening, records)
        if opening is None:
            return None
        return JournalStatus(
            opening=opening,
            num_rows=num_rows,
            last_s=last_s,
            exit_code=exit_code,
            num_torn_bytes=reader.num_bytes_left(),
            num_damaged=reader.num_damaged,
            num_missing=max(0, last_seq + 1 - num_records - reader.num_damaged),
            num_lost=num_lost,
        )
    except ValueError:
        return None
    finally:
        reader.close()


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
