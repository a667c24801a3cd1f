"""What a delivery reads: the journals of the run, all of them or one, from its cursor on, new ones included.

Policy: the order within a journal is kept; journals take turns, so that a long one does not hold up the others. Configuration
records are folded whatever the cursor says, since a tracker is always given the whole configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_logging.backends.base import Row, RunConfig
from slime_logging.record.entries import ROW_PREFIX, Opening, decode_config, decode_row
from slime_logging.record.fold import ConfigFold
from slime_logging.record.journal import READ_BYTES, JournalReader
from slime_logging.record.run import RunDirectory

BATCH_BYTES = 256 * 1024
"""About how much of one journal is taken at a turn: some 300 rows of 30 floats."""


@dataclass
class Batch:
    """What was read at one turn: rows in order, and the offset behind the last record of each journal with its number of rows."""

    rows: list[Row] = field(default_factory=list)
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)
    has_config: bool = False


@dataclass
class _Source:
    reader: JournalReader
    opening: Opening


class Feed:
    """The journals that one delivery reads.

    Args:
        directory: the run's.
        is_mine: whether a journal is to be read, by its opening line.
        offset_of: where to start in a journal, by name.
    """

    def __init__(
        self, directory: RunDirectory, is_mine: Callable[[Opening], bool], offset_of: Callable[[str], int]
    ) -> None:
        self._directory = directory
        self._is_mine = is_mine
        self._offset_of = offset_of
        self._sources: dict[Path, _Source | None] = {}
        self._fold = ConfigFold()
        self.has_new_config = False
        self.num_damaged = 0

    def discover(self) -> None:
        """Take in the journals that came since the last call."""
        for path in self._directory.journal_paths():
            if path not in self._sources:
                self._admit(path)

    def take(self) -> Batch:
        """The next records of every journal, empty when there are none now."""
        batch = Batch()
        for source in self._sources.values():
            if source is not None:
                self._take_from(source, batch)
        return batch

    def config(self, roles: tuple[str, ...]) -> RunConfig:
        """The run's configuration as it stands."""
        self.has_new_config = False
        return self._fold.config(roles)

    def num_bytes_left(self) -> int:
        """How many bytes of the known journals are not read yet."""
        return sum(source.reader.num_bytes_left() for source in list(self._sources.values()) if source is not None)

    def num_rows(self) -> int:
        """How many rows all the journals hold that this feed reads, counted on the disk now."""
        self.discover()
        return sum(count_rows(path) for path, source in self._sources.items() if source is not None)

    def close(self) -> None:
        """Close all files; may be called twice."""
        for source in self._sources.values():
            if source is not None:
                source.reader.close()
        self._sources.clear()

    def _admit(self, path: Path) -> None:
        try:
            reader = JournalReader(path)
        except OSError:
            return
        first = reader.read(max_bytes=4096)
        if not first:
            reader.close()  # its first line is not written yet: it is looked at again
            return
        reader.offset = first[0][0]
        try:
            opening = Opening.of(first[0][1])
        except ValueError:
            opening = None
        if opening is None or opening.journal != path.stem or not self._is_mine(opening):
            reader.close()
            self._sources[path] = None
            return
        source = _Source(reader=reader, opening=opening)
        self._sources[path] = source
        self._catch_up(source, self._offset_of(opening.journal))

    def _catch_up(self, source: _Source, offset: int) -> None:
        """Read what lies before the cursor for its configuration alone."""
        reader = source.reader
        while reader.offset < offset:
            before = reader.offset
            for _, record in reader.read(min(READ_BYTES, offset - reader.offset), has_rows=False):
                self._add_config(record, source.opening)
            if reader.offset == before:
                return

    def _take_from(self, source: _Source, batch: Batch) -> None:
        reader, opening = source.reader, source.opening
        num_rows = 0
        before = reader.offset
        for _, record in reader.read(BATCH_BYTES):
            if record.get("kind") == "config":
                batch.has_config |= self._add_config(record, opening)
            elif record.get("kind") == "row":
                try:
                    batch.rows.append(decode_row(record, opening))
                    num_rows += 1
                except ValueError:
                    self.num_damaged += 1
        if reader.offset != before:
            batch.ends[opening.journal] = (reader.offset, num_rows)

    def _add_config(self, record: dict[str, Any], opening: Opening) -> bool:
        try:
            has_changed = self._fold.add(decode_config(record, opening)) if record.get("kind") == "config" else False
        except ValueError:
            self.num_damaged += 1
            return False
        self.has_new_config |= has_changed
        return has_changed


def count_rows(path: Path) -> int:
    """The number of complete metrics rows in a journal; 0 when it cannot be read."""
    try:
        with path.open("rb") as file:
            return sum(line.startswith(ROW_PREFIX) and line.endswith(b"\n") for line in file)
    except OSError:
        return 0
