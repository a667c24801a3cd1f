"""What a tracker holds already, so that nothing is sent twice after a hand-over of which it is not
known how far it came.

Policy: counted, not only looked up. A tracker without row ids (TensorBoard, MLflow) may hold two
rows that look the same; each one held answers for one row only, and those that the cursor has
confirmed are answered for already. It is asked only when nothing of a client that ended badly can
be on its way any more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import cast

from slime_logging.backends.base import Backend, Readable
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.attempts import Attempts
from slime_logging.delivery.cursor import Cursor
from slime_logging.errors import NotReadable, TryAgain
from slime_logging.record.reading import read_rows
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Point, Row


class AlreadyThere:
    """The points of a tracker that no row has answered for yet; none before the first `look`.

    Args:
        backend: the tracker.
        assignment: what is delivered.
        must_look: whether the tracker is to be asked before anything is sent.
    """

    def __init__(self, backend: Backend, assignment: Assignment, *, must_look: bool) -> None:
        self.backend = backend
        self._assignment = assignment
        self._must_look = must_look
        self._settled_at_s = 0.0
        self._points: Counter[Point] | None = None

    def doubt(self) -> None:
        """A client ended badly: look what the tracker holds, once nothing of that client can be on
        its way any more.
        """
        self._must_look = True
        self._settled_at_s = time.monotonic() + self.backend.settle_s(self._assignment.facts)

    def wait_until_settled(self, deadline_s: float) -> None:
        """Wait until what earlier clients sent has arrived.

        Raises:
            TryAgain: that is later than `deadline_s`.
        """
        if self._settled_at_s > deadline_s:
            raise TryAgain(
                f"{self._assignment.tracker} is not asked what it holds before its last client's"
                " rows can have arrived"
            )
        time.sleep(max(0.0, self._settled_at_s - time.monotonic()))

    def look(self, cursor: Cursor, clock: Attempts) -> None:
        """Ask the tracker, where it must be asked and can be. Takes time and memory in proportion
        to the run.

        Raises:
            TryAgain: it cannot be asked now.
        """
        if not self._must_look:
            return
        self.wait_until_settled(clock.deadline_s)
        points: Counter[Point] = Counter()
        readable = cast(Readable, self.backend)
        try:
            for point in readable.read_points(self._assignment.facts):
                points[point] += 1
                clock.note_progress()
        except NotReadable:
            self._must_look = False
            return
        for row in _confirmed_rows(self._assignment.directory, cursor) if points else ():
            points.subtract(readable.points(row))
        self._points, self._must_look = points, False

    def answers_for(self, row: Row) -> bool:
        """Whether the tracker holds this row; what answers for it answers for no other one."""
        if not self._points:
            return False
        points = Counter(cast(Readable, self.backend).points(row))
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
