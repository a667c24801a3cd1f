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
from pathlib import Path
from typing import Any

from slime_logging.delivery.fold import ConfigFold
from slime_logging.delivery.source import Batch, NoJournal, OpenFiles, Source, open_source
from slime_logging.delivery.watch import SLOWEST_PAUSE_S, Watch
from slime_logging.record.entries import Opening, decode_config
from slime_logging.record.run import RunDirectory
from slime_logging.values.run import RunConfig

BATCH_ROWS = 1_000
"""From how many rows on a batch takes in no further journal, so that memory does not grow with the
number of journals.
"""

TAKE_OVER_INTERVAL_S = 2.0
"""How often it is asked whether the processes that deliver for themselves still live."""


class Backlog:
    """The journals that one delivery reads.

    Args:
        directory: the run's.
        reads_rows: whether a journal's rows are to be read, by its opening line; one that is not
            may become one that is.
        begin: where to start in a journal whose rows are read, by its opening line; called when it
            is taken on.
        has_all_config: False reads the configuration of the others only when they are found and at
            `note_end`.
        slowest_s: the longest pause between two looks at an idle journal.
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
        self._sources: dict[Path, Source | None] = {}
        self._files = OpenFiles()
        self._fold = ConfigFold()
        self._turn = 0
        self._asked_at_s = time.monotonic()
        self._watch = Watch(directory.journals, slowest_s)
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
        if is_last or time.monotonic() - self._asked_at_s >= TAKE_OVER_INTERVAL_S:
            self._asked_at_s = time.monotonic()
            for source in self._all():
                if not source.has_rows and self._reads_rows(source.opening):
                    source.take_over(self._begin(source.opening))

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
                source.take(batch)
            elif self._has_all_config:
                source.read_config()
            if len(batch.rows) >= BATCH_ROWS:
                break
        return batch

    def note_end(self) -> None:
        """Remember where the journals end now, so that processes which go on writing do not keep a
        last pass from ending.
        """
        for source in self._all():
            source.note_end()

    def is_at_end(self) -> bool:
        """Whether everything that was there at `note_end` was taken."""
        return all(source.reader.offset >= source.end for source in self._all() if source.has_rows)

    def rewind(self, offset_of: Callable[[str], int]) -> None:
        """Go back to an offset in each journal, by name: what lies behind it is taken again."""
        for source in self._all():
            source.rewind(offset_of(source.opening.journal))

    def config(self, roles: tuple[str, ...]) -> RunConfig:
        """The run's configuration as it stands."""
        self.has_new_config = False
        return self._fold.config(roles)

    def close(self) -> None:
        """Close all files; may be called twice."""
        for source in self._all():
            source.reader.close()
        self._sources.clear()

    def _all(self) -> list[Source]:
        return [source for source in self._sources.values() if source is not None]

    def _admit(self, path: Path) -> None:
        try:
            source = open_source(path, self._files, self._add_config)
        except NoJournal:
            self._sources[path] = None
            return
        if source is None:  # it is looked at again
            return
        self._sources[path] = source
        if self._reads_rows(source.opening):
            source.take_over(self._begin(source.opening))
        else:
            source.read_config()

    def _add_config(self, record: dict[str, Any], opening: Opening) -> None:
        if record.get("kind") != "config":
            return
        with suppress(ValueError):
            self.has_new_config |= self._fold.add(decode_config(record, opening))
