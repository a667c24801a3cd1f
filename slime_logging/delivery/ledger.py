"""The cursor of a running delivery on disk, and what is said when its state changes."""

from __future__ import annotations

import logging
import time

from slime_logging.delivery.cursor import Cursor
from slime_logging.record.run import RunDirectory

logger = logging.getLogger("slime_logging")

SAVE_INTERVAL_S = 1.0


class Ledger:
    """Keeps a cursor, saved at least once a second where it changes.

    Args:
        directory: the run's.
        cursor: the delivery's.
    """

    def __init__(self, directory: RunDirectory, cursor: Cursor) -> None:
        self.cursor = cursor
        self._directory = directory
        self._saved_at_s = 0.0
        self._is_saved = False

    def settle(self, state: str, reason: str = "") -> None:
        """Note a state; the first trouble of a kind is said aloud."""
        name, before = self.cursor.backend, self.cursor.state
        if state == "waiting" and before == "opening":
            logger.warning(
                "slime_logging: %s cannot be reached now (%s); rows are kept and delivered later",
                name,
                reason,
            )
        if state == "refused" and before != "refused":
            logger.error(
                "slime_logging: %s refuses this run (%s); rows are kept in %s",
                name,
                reason,
                self._directory.path,
            )
        self.cursor.state, self.cursor.reason = state, reason
        self.save(now=state != before)

    def note_page(self, page: str) -> None:
        """Note the run's address in the tracker, and say a new one."""
        if page and page != self.cursor.page:
            self.cursor.page = page
            logger.warning("slime_logging: %s: %s", self.cursor.backend, page)

    def save(self, *, now: bool = False, is_late: bool = False) -> None:
        """Save the cursor at most once a second, but `now`; `is_late` only where the last change
        was not saved.
        """
        self._is_saved &= is_late
        is_due = time.monotonic() - self._saved_at_s >= SAVE_INTERVAL_S
        if self._is_saved or not (now or is_due):
            return
        self._saved_at_s = time.monotonic()
        try:
            self.cursor.save(self._directory)
            self._is_saved = True
        except OSError as error:
            logger.debug(
                "slime_logging: the cursor of %s could not be saved: %s", self.cursor.backend, error
            )
