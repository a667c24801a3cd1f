"""One journal as a delivery reads it: its rows too, or its configuration alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_logging.record.entries import Opening, decode_row
from slime_logging.record.journal_reader import READ_BYTES, JournalReader
from slime_logging.record.reading import OPENING_BYTES
from slime_logging.values.row import Row

BATCH_BYTES = 256 * 1024
"""About how much of one journal is taken at a turn: some 300 rows of 30 floats."""

MAX_OPEN = 64
"""Journals that are open at once."""

AddConfig = Callable[[dict[str, Any], Opening], None]


@dataclass
class Batch:
    """What was read at one turn: rows in order, and the offset behind the last record of each
    journal with its number of rows.
    """

    rows: list[Row] = field(default_factory=list)
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)


class OpenFiles:
    """The readers whose files are open: few, however many journals there are."""

    def __init__(self) -> None:
        self._readers: dict[Path, JournalReader] = {}

    def used(self, reader: JournalReader) -> None:
        """Note that a file was read; closes the ones that were read longest ago."""
        self._readers.pop(reader.path, None)
        self._readers[reader.path] = reader
        while len(self._readers) > MAX_OPEN:
            self._readers.pop(next(iter(self._readers))).close()


@dataclass
class Source:
    """A journal that is read. `start` is the offset behind its first line, `end` the one to which
    a last pass reads; `is_pending`: there may be more than was read.
    """

    reader: JournalReader
    files: OpenFiles
    opening: Opening
    add_config: AddConfig
    start: int
    has_rows: bool = False
    end: int = 0
    is_pending: bool = True

    def take_over(self, offset: int) -> None:
        """Read its rows too, from an offset on."""
        if self.reader.offset > offset:
            self.reader.offset = max(self.start, offset)
        else:
            self.read_config(offset)
        self.has_rows = True

    def read_config(self, offset: int | None = None) -> None:
        """Read on, to `offset` or the end, for the configuration alone."""
        reader = self.reader
        while offset is None or reader.offset < offset:
            before = reader.offset
            max_bytes = READ_BYTES if offset is None else min(READ_BYTES, offset - before)
            for _, record in self._read(max_bytes, has_rows=False):
                self.add_config(record, self.opening)
            if reader.offset == before:
                self.is_pending = False
                return

    def take(self, batch: Batch) -> None:
        """Read the next records into a batch."""
        num_rows = 0
        before = self.reader.offset
        for _, record in self._read(BATCH_BYTES):
            if record.get("kind") == "row":
                with suppress(ValueError):
                    batch.rows.append(decode_row(record, self.opening))
                    num_rows += 1
            else:
                self.add_config(record, self.opening)
        if self.reader.offset != before:
            batch.ends[self.opening.journal] = (self.reader.offset, num_rows)
        else:
            self.end = before  # a torn tail is as far as it goes
            self.is_pending = False

    def note_end(self) -> None:
        """Remember where it ends now."""
        self.end = self.reader.offset + self.reader.num_bytes_left()
        self.is_pending = True
        if not self.has_rows:
            self.read_config()

    def rewind(self, offset: int) -> None:
        """Go back to an offset: what lies behind it is taken again."""
        self.reader.offset = max(self.start, min(self.reader.offset, offset))
        self.is_pending = True

    def _read(self, max_bytes: int, *, has_rows: bool = True) -> list[tuple[int, dict[str, Any]]]:
        try:
            records = self.reader.read(max_bytes, has_rows=has_rows)
        except OSError:  # gone, or no descriptor is to be had now: it is looked at again
            return []
        self.files.used(self.reader)
        return records


class NoJournal(Exception):
    """The file is none, and never will be."""


def open_source(path: Path, files: OpenFiles, add_config: AddConfig) -> Source | None:
    """Take a journal on; None while it cannot be opened or has no first line yet.

    Raises:
        NoJournal: its first line is not that of a journal of this name.
    """
    try:
        reader = JournalReader(path)
    except OSError:
        return None
    first = reader.read(max_bytes=OPENING_BYTES)
    if not first:
        reader.close()
        return None
    reader.offset = first[0][0]
    try:
        opening = Opening.of(first[0][1])
    except ValueError as error:
        reader.close()
        raise NoJournal from error
    if opening.journal != path.stem:
        reader.close()
        raise NoJournal
    files.used(reader)
    return Source(reader, files, opening, add_config, start=reader.offset)
