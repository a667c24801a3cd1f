"""Rows that no journal could take, on their way to one tracker: they live in this process's memory
until then.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from itertools import islice

from slime_logging.values.row import Row

logger = logging.getLogger("slime_logging")

MAX_DIRECT_ROWS = 20_000
"""About 100 MB of rows of 30 floats. Beyond it the oldest go, and it is said once."""

BATCH_ROWS = 1_000


class DirectRows:
    """The rows that wait, and those that a client with a queue of its own was given but has not
    confirmed.

    Rows are added by the process's threads and taken by the delivery's.
    """

    def __init__(self, tracker: str) -> None:
        self._tracker = tracker
        self._waiting: deque[Row] = deque(maxlen=MAX_DIRECT_ROWS)
        self._handed: deque[Row] = deque(maxlen=MAX_DIRECT_ROWS)
        self._has_overflowed = False
        self._lock = threading.RLock()  # a signal handler may log while its thread is in here

    def __len__(self) -> int:
        """How many rows the tracker has not confirmed."""
        return len(self._waiting) + len(self._handed)

    @property
    def are_waiting(self) -> bool:
        """Whether any row is still to be handed over."""
        return bool(self._waiting)

    def add(self, row: Row) -> None:
        """Let a row wait."""
        with self._lock:
            is_full = len(self._waiting) == MAX_DIRECT_ROWS
            self._waiting.append(row)
        if is_full and not self._has_overflowed:
            self._has_overflowed = True
            logger.error(
                "slime_logging: %s takes nothing, and memory is bounded: the oldest of %d rows are"
                " lost",
                self._tracker,
                MAX_DIRECT_ROWS,
            )

    def next_batch(self) -> list[Row]:
        """The rows to hand over next; they keep waiting until `hand`."""
        with self._lock:
            return list(islice(self._waiting, BATCH_ROWS))

    def hand(self, rows: Sequence[Row], *, is_confirmed: bool) -> None:
        """Note that these rows are with the client."""
        with self._lock:
            for row in rows:
                if (
                    self._waiting and self._waiting[0] is row
                ):  # else it went meanwhile, as the oldest of too many
                    self._waiting.popleft()
            if not is_confirmed:
                self._handed.extend(rows)

    def confirm(self) -> None:
        """Note that the tracker holds all that was handed over."""
        self._handed.clear()

    def take_back(self) -> None:
        """The client may have lost what it was given: let it wait again, in its order."""
        with self._lock:
            self._waiting.extendleft(reversed(self._handed))
            self._handed.clear()
