"""What a tracker holds already, so that nothing is sent twice after a hand-over of which it is not
known how far it came.

Policy: counted, not only looked up. A tracker without row ids (TensorBoard, MLflow) may hold two
rows that look the same; each one held answers for one row only, and those that the cursor has
confirmed are answered for already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

from slime_logging.backends.base import Backend, Readable
from slime_logging.delivery.cursor import Cursor
from slime_logging.record.reading import read_rows
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunFacts


class Held:
    """The points of a tracker that no row has answered for yet; none before the first `look`."""

    def __init__(self) -> None:
        self._points: Counter[Point] | None = None

    def look(
        self, backend: Backend, facts: RunFacts, directory: RunDirectory, cursor: Cursor
    ) -> None:
        """Ask the tracker, where it can be asked. Takes time and memory in proportion to the run.

        Raises:
            TryAgain: it cannot be asked now.
        """
        if not hasattr(backend, "read_points"):
            return
        readable = cast(Readable, backend)
        points = Counter(readable.read_points(facts))
        for row in _confirmed_rows(directory, cursor) if points else ():
            points.subtract(readable.points(row))
        self._points = points

    def take(self, backend: Backend, row: Row) -> bool:
        """Whether the tracker holds this row; what answers for it answers for no other one."""
        if not self._points:
            return False
        points = Counter(cast(Readable, backend).points(row))
        if not points or any(self._points[point] < number for point, number in points.items()):
            return False
        self._points.subtract(points)
        return True

    def forget(self) -> None:
        """A row that comes after the look cannot be among what was seen."""
        self._points = None


def _confirmed_rows(directory: RunDirectory, cursor: Cursor) -> Iterator[Row]:
    for path in directory.journal_paths():
        place = cursor.places.get(path.stem)
        if place is None or not place.num_confirmed:
            continue
        yield from read_rows(path, place.confirmed)
