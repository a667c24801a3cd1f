"""What a later start of the run logged anew: which rows it replaces, and trackers that drop those.

Policy: on an axis, a start whose policy is `drop` replaces every row that earlier starts logged
from its own lowest step on, whatever the order in which rows arrive. The journals alone say which
those are, and keep all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from slime_logging.backends.base import Backend, Drops
from slime_logging.record.entries import DROP
from slime_logging.record.reading import openings, read_rows
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Row


class Rewinds:
    """From which step on each start of a run replaces what earlier ones logged, by axis."""

    def __init__(self) -> None:
        self._lowest: dict[str, dict[int, float]] = {}

    def note(self, step_key: str, start: int, step: float) -> bool:
        """A start that replaces has a row there; whether more is replaced than before."""
        of_axis = self._lowest.setdefault(step_key, {})
        if not step < of_axis.get(start, math.inf):
            return False
        of_axis[start] = step
        return True

    def end(self, step_key: str, start: int) -> float:
        """From which step on the rows of a start are replaced; infinity where none are."""
        later = (step for s, step in self._lowest.get(step_key, {}).items() if s > start)
        return min(later, default=math.inf)

    def is_replaced(self, row: Row) -> bool:
        """Whether a later start logged this step of the axis, or an earlier one, anew."""
        return bool(self._lowest) and row.step >= self.end(row.step_key, row.start)

    def replaced_in(self, directory: RunDirectory) -> Iterator[Row]:
        """The rows in the journals that are replaced."""
        starts = [start for of_axis in self._lowest.values() for start in of_axis]
        for path, opening in openings(directory):
            if starts and opening.start < max(starts):
                yield from filter(self.is_replaced, read_rows(path))


def rewinds_of(directory: RunDirectory) -> Rewinds:
    """What the journals say now; those of starts that replace nothing are not read."""
    rewinds = Rewinds()
    for path, opening in openings(directory):
        if opening.start > 1 and opening.rewind == DROP:
            for row in read_rows(path):
                rewinds.note(row.step_key, row.start, row.step)
    return rewinds


def dropper(backend: Backend) -> Callable[[Iterable[Row]], None] | None:
    """How a tracker drops rows; None where it cannot, and shows all of them."""
    return cast(Drops, backend).drop if hasattr(backend, "drop") else None


class Dropping:
    """Keeps a tracker from showing what is replaced, while it is delivered to.

    Args:
        directory: the run's.
        backend: the tracker.
    """

    def __init__(self, directory: RunDirectory, backend: Backend) -> None:
        self._directory = directory
        self._drop = dropper(backend)
        self._rewinds: Rewinds | None = None
        self._is_due = False

    def remaining(self, rows: Sequence[Row]) -> list[Row]:
        """Have the tracker drop what these rows replace; returns those of them that it shows.

        Raises what the tracker raises; the next call tries again.
        """
        if self._drop is None:
            return list(rows)
        if self._rewinds is None:
            self._rewinds = rewinds_of(self._directory)
            self._is_due = True
        for row in rows:
            if row.is_replacing:
                self._is_due |= self._rewinds.note(row.step_key, row.start, row.step)
        if self._is_due:
            self._drop(self._rewinds.replaced_in(self._directory))
            self._is_due = False
        return [row for row in rows if not self._rewinds.is_replaced(row)]
