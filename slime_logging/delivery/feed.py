"""What a delivery reads: the journals of the run, all of them or one, from its cursor on, new ones
included.

Policy: the order within a journal is kept; journals take turns, so that a long one does not hold up
the others. Configuration records are folded whatever the cursor says, and from all journals that
can be seen, also those whose rows another process delivers: a tracker is always given the whole
configuration, because on some the last writer's view is the one that stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_logging.delivery.fold import ConfigFold
from slime_logging.delivery.watch import SLOWEST_PAUSE_S, Watch
from slime_logging.record.entries import Opening, decode_config, decode_row
from slime_logging.record.journal import READ_BYTES, JournalReader
from slime_logging.record.reading import OPENING_BYTES
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig

BATCH_BYTES = 256 * 1024
"""About how much of one journal is taken at a turn: some 300 rows of 30 floats."""

BATCH_ROWS = 1_000
"""From how many rows on a batch takes in no further journal, so that memory does not grow with the
number of journals.
"""

MAX_OPEN = 64
"""Journals that are open at once."""

TAKE_OVER_INTERVAL_S = 2.0
"""How often it is asked whether the processes that deliver for themselves still live."""


@dataclass
class Batch:
    """What was read at one turn: rows in order, and the offset behind the last record of each
    journal with its number of rows.
    """

    rows: list[Row] = field(default_factory=list)
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass
class _Source:
    """A journal that is read: its rows too, or its configuration alone. `start` is the offset
    behind its first line.
    """

    reader: JournalReader
    opening: Opening
    has_rows: bool
    start: int
    mark: int = 0
    is_pending: bool = True


class Feed:
    """The journals that one delivery reads. One thread uses it; `num_bytes_left` may be asked from
    any.

    Args:
        directory: the run's.
        reads_rows: whether a journal's rows are to be read, by its opening line; one that is not
            may become one that is.
        begin: where to start in a journal whose rows are read, by its opening line; called when it
        is taken on.
        has_all_config: False reads the configuration of the others only when they are found and at
            `mark_end`.
    """

    def __init__(
        self,
        directory: RunDirectory,
        reads_rows: Callable[[Opening], bool],
        begin: Callable[[Opening], int],
        *,
        has_all_config: bool = True,
        slowest_s: float = SLOWEST_PAUSE_S,
    ) -> None:
        self._directory = directory
        self._reads_rows = reads_rows
        self._begin = begin
        self._has_all_config = has_all_config
        self._sources: dict[Path, _Source | None] = {}
        self._fold = ConfigFold()
        self._turn = 0
        self._asked_at = time.monotonic()
        self._watch = Watch(slowest_s)
        self._open_readers: dict[Path, JournalReader] = {}
        self.has_new_config = False

    def discover(self, *, is_last: bool = False) -> None:
        """Take in the journals that came since the last call, and those whose processes no longer
        deliver for themselves.
        """
        paths = self._directory.journal_paths()
        for path in paths:
            if path not in self._sources:
                self._admit(path)
        for path in self._watch.grown(paths, time.monotonic()):
            if source := self._sources.get(path):
                source.is_pending = True
        if is_last or time.monotonic() - self._asked_at >= TAKE_OVER_INTERVAL_S:
            self._asked_at = time.monotonic()
            for source in self._all():
                if not source.has_rows and self._reads_rows(source.opening):
                    self._take_over(source)

    def take(self) -> Batch:
        """The next records of as many journals as make a batch, in turn; empty when no journal has
        any now.
        """
        batch = Batch()
        sources = self._all()
        for source in (*sources[self._turn :], *sources[: self._turn]):
            self._turn = (self._turn + 1) % len(sources)
            if not source.is_pending:
                continue
            if source.has_rows:
                self._take_from(source, batch)
            elif self._has_all_config:
                self._read_config(source)
            if len(batch.rows) >= BATCH_ROWS:
                break
        return batch

    def mark_end(self) -> None:
        """Remember where the journals end now, so that processes which go on writing do not keep a
        last pass from ending.
        """
        for source in self._all():
            source.mark = source.reader.offset + source.reader.num_bytes_left()
            source.is_pending = True
            if not source.has_rows:
                self._read_config(source)

    def is_at_mark(self) -> bool:
        """Whether everything that was there at `mark_end` was taken."""
        return all(source.reader.offset >= source.mark for source in self._all() if source.has_rows)

    def rewind(self, offset_of: Callable[[str], int]) -> None:
        """Go back to an offset in each journal, by name: what lies behind it is taken again."""
        for source in self._all():
            source.reader.offset = max(
                source.start, min(source.reader.offset, offset_of(source.opening.journal))
            )
            source.is_pending = True

    def config(self, roles: tuple[str, ...]) -> RunConfig:
        """The run's configuration as it stands."""
        self.has_new_config = False
        return self._fold.config(roles)

    def num_bytes_left(self) -> int:
        """How many bytes of the known journals are not read yet."""
        return sum(source.reader.num_bytes_left() for source in self._all() if source.has_rows)

    def close(self) -> None:
        """Close all files; may be called twice."""
        for source in self._all():
            source.reader.close()
        self._sources.clear()

    def _all(self) -> list[_Source]:
        return [source for source in list(self._sources.values()) if source is not None]

    def _admit(self, path: Path) -> None:
        try:
            reader = JournalReader(path)
        except OSError:
            return
        first = reader.read(max_bytes=OPENING_BYTES)
        if not first:
            reader.close()  # its first line is not written yet: it is looked at again
            return
        reader.offset = first[0][0]
        try:
            opening = Opening.of(first[0][1])
        except ValueError:
            opening = None
        if opening is None or opening.journal != path.stem:
            reader.close()
            self._sources[path] = None
            return
        source = _Source(reader=reader, opening=opening, has_rows=False, start=reader.offset)
        self._sources[path] = source
        self._limit_open(reader)
        if self._reads_rows(opening):
            self._take_over(source)
        else:
            self._read_config(source)

    def _take_over(self, source: _Source) -> None:
        offset = self._begin(source.opening)
        if source.reader.offset > offset:
            source.reader.offset = max(source.start, offset)
        else:
            self._read_config(source, offset)
        source.has_rows = True

    def _read_config(self, source: _Source, offset: int | None = None) -> None:
        """Read on, to `offset` or the end, for the configuration alone."""
        reader = source.reader
        while offset is None or reader.offset < offset:
            before = reader.offset
            max_bytes = READ_BYTES if offset is None else min(READ_BYTES, offset - before)
            for _, record in self._read(reader, max_bytes, has_rows=False):
                self._add_config(record, source.opening)
            if reader.offset == before:
                source.is_pending = False
                return

    def _take_from(self, source: _Source, batch: Batch) -> None:
        reader, opening = source.reader, source.opening
        num_rows = 0
        before = reader.offset
        for _, record in self._read(reader, BATCH_BYTES):
            if record.get("kind") == "config":
                self._add_config(record, opening)
            elif record.get("kind") == "row":
                with suppress(ValueError):
                    batch.rows.append(decode_row(record, opening))
                    num_rows += 1
        if reader.offset != before:
            batch.ends[opening.journal] = (reader.offset, num_rows)
        else:
            source.mark = before  # a torn tail is as far as it goes
            source.is_pending = False

    def _read(
        self, reader: JournalReader, max_bytes: int, *, has_rows: bool = True
    ) -> list[tuple[int, dict[str, Any]]]:
        try:
            records = reader.read(max_bytes, has_rows=has_rows)
        except OSError:  # gone, or no descriptor is to be had now: it is looked at again
            return []
        self._limit_open(reader)
        return records

    def _limit_open(self, reader: JournalReader) -> None:
        """Close the files that were read longest ago: few are open, however many there are."""
        self._open_readers.pop(reader.path, None)
        self._open_readers[reader.path] = reader
        while len(self._open_readers) > MAX_OPEN:
            self._open_readers.pop(next(iter(self._open_readers))).close()

    def _add_config(self, record: dict[str, Any], opening: Opening) -> None:
        if record.get("kind") != "config":
            return
        with suppress(ValueError):
            self.has_new_config |= self._fold.add(decode_config(record, opening))
