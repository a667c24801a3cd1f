"""What a delivery is to do: which journals of which run go to which tracker, and from where on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from slime_logging.backends.base import Writer
from slime_logging.backends.place import run_place
from slime_logging.delivery.cursor import Cursor, adopt, next_cursor, read_cursors
from slime_logging.delivery.watch import SLOWEST_PAUSE_S
from slime_logging.record.entries import Opening
from slime_logging.record.journal import SUFFIX, is_written
from slime_logging.record.reading import count_rows, openings
from slime_logging.record.run import RunDirectory
from slime_logging.values.run import RunFacts


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Deliver the journals of a run to one tracker, from where the last delivery ended.

    `tracker` is its name in `BACKENDS`. `only` is the process whose journals to deliver, by its
    main journal's name; None delivers all of the run but those that a living process delivers
    itself. `start` is the number of the run's start. `is_repair`: trust no cursor, send whatever
    the tracker does not hold. `slowest_s` is the longest pause between two looks at an idle
    journal. `is_alone`: the process does nothing else, so it runs the backend itself, and is ended
    and started again where that needs a new process.
    """

    tracker: str
    directory: RunDirectory
    facts: RunFacts
    writer: Writer
    only: str | None = None
    start: int = 1
    is_repair: bool = False
    slowest_s: float = SLOWEST_PAUSE_S
    is_alone: bool = False

    @cached_property
    def where(self) -> str:
        """The key of the place where the rows go."""
        return run_place(self.tracker, self.facts).key

    def first_cursor(self) -> tuple[Cursor, bool, bool]:
        """Where to go on, whether the tracker must be asked what it holds, and whether something
        of an earlier client's may still be on its way there.
        """
        before = read_cursors(self.directory, self.where)
        cursor, is_unsettled = next_cursor(
            self.tracker, self.where, self.writer.label, before, only=self.only or ""
        )
        is_later = self.start > 1 or self.writer.is_sync
        must_look = is_unsettled or (not self.only and not before and is_later)
        if self.is_repair:
            cursor.places = {}
        return cursor, must_look or self.is_repair, is_unsettled

    def adopt(self, cursor: Cursor, opening: Opening) -> bool:
        """Note in the cursor how far the process that wrote a journal delivered it itself; whether
        something of its client's may still be on its way.
        """
        if self.tracker not in opening.delivers or self.only is not None:
            return False
        before = read_cursors(self.directory, self.where)
        owner = opening.owner or opening.journal
        return adopt(cursor, opening.journal, owner, before, trusts_places=not self.is_repair)

    def reads(self, opening: Opening) -> bool:
        """Whether a journal's rows are this delivery's."""
        owner = opening.owner or opening.journal
        if self.only is not None:
            return owner == self.only
        return (
            self.tracker not in opening.delivers
            or self.writer.is_sync
            or not self._is_delivered_by(owner)
        )

    def num_rows(self) -> int:
        """Rows of the journals that are this delivery's, counted on the disk now."""
        known = openings(self.directory)
        return sum(count_rows(path) for path, opening in known if self.reads(opening))

    def _is_delivered_by(self, owner: str) -> bool:
        """Whether a process delivers its own journals, or lives and can have it started again."""
        path = self.directory.journals / f"{owner}{SUFFIX}"
        return self.directory.locks.is_held(owner) or is_written(path)
