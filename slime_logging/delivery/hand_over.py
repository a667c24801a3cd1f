"""Rows and configuration handed to one backend, batch by batch, with the cursor kept true.

Policy:

- After a delivery that ended without closing (a crash), the tracker is asked what it holds before
  anything is sent again; the same is done after a hand-over of which it is not known how far it
  came. So no row is lost, and none is doubled where the tracker can be read back.
- What the backend will never take is set aside with the reason, one row at a time.
- What a client with a queue of its own was given counts as nothing until a `close` that returned:
  when such a client breaks, everything since the last confirmation is looked up and, where it is
  not there, sent again.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from slime_logging.delivery.already_there import AlreadyThere
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.attempts import Attempts
from slime_logging.delivery.backlog import Backlog
from slime_logging.delivery.ledger import Ledger
from slime_logging.delivery.refused import RefusedRows
from slime_logging.delivery.rewind import Dropping
from slime_logging.delivery.source import Batch
from slime_logging.errors import BackendError, TryAgain, WillNeverWork
from slime_logging.record.entries import Opening
from slime_logging.values.row import Row

logger = logging.getLogger("slime_logging")

CONFIG_INTERVAL_S = 1.0
"""Each look for new configuration costs as much as all journals together."""

BROKEN_CLOSE_S = 5.0
CLOSE_SLACK_S = 1.0
SECOND_CLOSE_S = 15.0
SHORT_CLOSE_S = 10.0
"""Of the time that is left, a close leaves so much for a second attempt with a new client, should
this one hang; but it gets `SHORT_CLOSE_S` where there is as much.
"""


class HandOver:
    """What is read from the journals, on its way to the backend.

    Args:
        assignment: what is delivered.
        ledger: where to note how far it came.
        attempts: the delivery's clock.
        there: what the tracker holds already.
        safe_text: makes a foreign exception's text fit to be written down.
    """

    def __init__(
        self,
        assignment: Assignment,
        ledger: Ledger,
        attempts: Attempts,
        there: AlreadyThere,
        safe_text: Callable[[BaseException], str],
    ) -> None:
        self._assignment = assignment
        self._backend = there.backend
        self._ledger = ledger
        self._clock = attempts
        self._there = there
        self._safe_text = safe_text
        self._num_opens = 0
        self._is_open = False
        self.needs_new_process = False
        self._backlog = Backlog(
            assignment.directory,
            assignment.reads,
            self._begin_journal,
            has_all_config=not assignment.only,
            slowest_s=assignment.slowest_s,
        )
        self._refused = RefusedRows(assignment, safe_text)
        self._dropping = Dropping(assignment.directory, self._backend)
        self._pending: Batch | None = None
        self._config_at_s = 0.0

    def open(self) -> None:
        """Open the tracker.

        Raises:
            SystemExit: that needs a new process, as `needs_new_process` says; ends the thread.
        """
        self._there.wait_until_settled(self._clock.deadline_s)
        self._num_opens += 1
        if self._num_opens > 1:
            if self._assignment.is_alone and not self._backend.is_durable:
                self.needs_new_process = True
                raise SystemExit
            # The client that is gone may not have brought it there.
            self._backlog.has_new_config = True
        self._backend.open(self._assignment.facts, self._assignment.writer)
        self._is_open = True
        self._ledger.note_page(str(getattr(self._backend, "page", "")))
        self._ledger.settle("delivering")

    def pass_on(self, *, is_last: bool = False) -> None:
        """Hand everything over that is there now, in batches."""
        try:
            self._pass_on(is_last=is_last)
        except WillNeverWork:
            self._is_open = False
            raise

    def _pass_on(self, *, is_last: bool) -> None:
        if not self._is_open:
            self.open()
        self._backlog.discover(is_last=is_last)
        if is_last:
            self._backlog.note_end()
        self._there.look(self._ledger.cursor, self._clock)
        self._set_config()
        while self._write_next():
            self._clock.note_progress()
            if time.monotonic() - self._config_at_s >= CONFIG_INTERVAL_S:
                self._set_config()
            self._ledger.save()
            if is_last and self._backlog.is_at_end():
                break
            if time.monotonic() > self._clock.deadline_s:
                raise TryAgain("the time for finishing ran out")
        self._set_config()
        self._ledger.save(is_late=True)
        self._there.forget()
        self._ledger.cursor.is_careful = False

    def finish(self, exit_code: int | None) -> None:
        """Hand the rest over and close; a close that is not confirmed is tried again with a new
        client while there is time.
        """
        self.pass_on(is_last=True)
        left_s = self._clock.deadline_s - time.monotonic()
        timeout_s = max(1.0, left_s - SECOND_CLOSE_S, min(left_s, SHORT_CLOSE_S))
        self._clock.note_progress(timeout_s + CLOSE_SLACK_S)
        try:
            self._backend.close(exit_code, timeout_s)
        except TryAgain:
            self._is_open = False
            self._doubt()
            raise
        cursor = self._ledger.cursor
        cursor.confirm()
        cursor.is_closed = True
        self._ledger.settle("closed")

    def release(self) -> None:
        """Let go of the tracker and of all files."""
        if not (self._ledger.cursor.is_closed or self.needs_new_process):
            try:
                self._backend.close(None, 1.0)
            except Exception as error:  # the result says already that it is not closed
                name, text = self._assignment.tracker, self._safe_text(error)
                logger.debug("slime_logging: closing %s: %s", name, text)
        self._backlog.close()

    def _set_config(self) -> None:
        self._config_at_s = time.monotonic()
        if not self._backlog.has_new_config:
            return
        config = self._backlog.config(self._assignment.facts.roles)
        try:
            self._backend.set_config(config)
        except BackendError as error:
            self._backlog.has_new_config = True
            if isinstance(error, TryAgain):
                self._doubt()
            raise

    def _write_next(self) -> bool:
        """Hand over the next batch; False where there is none."""
        if self._pending is None:
            batch = self._backlog.take()
            self._pending = batch if batch.ends else None
        if self._pending is None:
            return False
        self._write_pending(self._pending)
        return True

    def _doubt(self) -> None:
        """After a hand-over that broke off: what the tracker holds is not known, and a client with
        a queue may have lost it.
        """
        self._there.doubt()
        if self._backend.is_durable:
            return
        self._is_open = False
        if self._assignment.is_alone:  # a new process goes on from what was confirmed
            return
        with suppress(BackendError):
            self._backend.close(None, BROKEN_CLOSE_S)
        self._pending = None
        cursor = self._ledger.cursor
        cursor.take_back()
        self._backlog.rewind(lambda journal: cursor.place(journal).confirmed)

    def _begin_journal(self, opening: Opening) -> int:
        cursor = self._ledger.cursor
        if self._assignment.adopt(cursor, opening):
            self._there.doubt()
        return cursor.place(opening.journal).confirmed

    def _write_pending(self, batch: Batch) -> None:
        try:
            remaining = self._dropping.remaining(batch.rows)
            rows = [row for row in remaining if not self._there.answers_for(row)]
            num_aside = self._write(rows)
        except TryAgain:
            self._doubt()
            raise
        for journal, (offset, num_rows) in batch.ends.items():
            aside = num_aside[journal]
            self._ledger.cursor.hand(
                journal, offset, num_rows - aside, aside, is_confirmed=self._backend.is_durable
            )
        self._pending = None

    def _write(self, rows: list[Row]) -> Counter[str]:
        """Hand rows over; returns how many were set aside, by journal."""
        if not rows:
            return Counter()
        if self._ledger.cursor.is_careful:
            return self._refused.write_others(self._backend, rows)
        try:
            self._backend.write(rows)
        except WillNeverWork as error:
            # Which row it was, and how far it came, is not known: look, and go on row by row.
            self._ledger.cursor.is_careful = True
            raise TryAgain(str(error)) from error
        return Counter()
