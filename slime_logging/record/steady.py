"""The journal of a process, kept up through trouble with its disk.

Policy: nothing raises but a record that cannot be written at all. A journal that breaks (disk full,
an I/O error, deleted) is told once; from then on records wait in bounded memory, and every few
seconds a new file is tried, in which they go first. It costs no thread: a call of `append` tries.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from slime_logging.record.entries import Opening, encode
from slime_logging.record.journal import Journal, JournalBroken, journal_name
from slime_logging.record.run import RunDirectory

logger = logging.getLogger("slime_logging")

RETRY_INTERVAL_S = 2.0
TELL_INTERVAL_S = 60.0
MAX_WAITING_BYTES = 64 * 2**20
"""Some 100,000 rows of 30 floats; beyond it the oldest go, and they are counted."""

Line = Callable[[int], bytes]


class SteadyJournal:
    """The records of this process, in one file, or in further ones where the first one broke.

    Args:
        directory: the run's.
        opening: the first line.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, directory: RunDirectory, opening: Opening) -> None:
        self.opening = opening
        self.num_lost = 0
        self._directory = directory
        self._waiting: deque[tuple[Line, int]] = deque()
        self._num_waiting_bytes = 0
        self._is_trying = False
        self._is_over = False
        self._next_try_s = 0.0
        self._told_at_s = float("-inf")
        self._lock = threading.RLock()
        self._journal = self._begin(opening)

    @property
    def path(self) -> Path:
        """The file that is written now."""
        return self._journal.path

    @property
    def num_waiting(self) -> int:
        """Records that are in memory only."""
        return len(self._waiting)

    def append(self, line: Line) -> None:
        """Write a record; it is in the file when this returns, or waits for one.

        Raises:
            ValueError: it is too long to be written at all.
        """
        if not self._waiting and not self._is_over:
            try:
                self._journal.append(line)
                return
            except JournalBroken as error:
                if self._is_over:
                    return
                self._tell(error)
        with self._lock:
            self._keep(line)
            self._try_again()

    def close(self) -> None:
        """Write what still waits, if the disk takes it now, and end; further records are lost."""
        with self._lock:
            num_before = len(self._waiting) + 1
            while 0 < len(self._waiting) < num_before:  # a file may take a part of them
                num_before = len(self._waiting)
                self._next_try_s = 0.0
                self._try_again()
            self._is_over = True
            if self._waiting:
                logger.error(
                    "slime_logging: %d records could not be written below %s, and are lost",
                    len(self._waiting),
                    self._directory.journals,
                )
        self._journal.close()

    def abandon(self) -> None:
        """In a forked child: let go of the parent's file."""
        self._is_over = True
        self._journal.abandon()

    def _begin(self, opening: Opening) -> Journal:
        journal = Journal(self._directory.journals, opening.journal)
        try:
            journal.append(encode("open", opening.to_body()))
        except OSError:
            journal.abandon()
            with suppress(OSError):
                journal.path.unlink()
            raise
        return journal

    def _keep(self, line: Line) -> None:
        size = len(line(0))
        self._waiting.append((line, size))
        self._num_waiting_bytes += size
        while self._num_waiting_bytes > MAX_WAITING_BYTES and len(self._waiting) > 1:
            self._num_waiting_bytes -= self._waiting.popleft()[1]
            self.num_lost += 1
            if self.num_lost == 1:
                logger.error("slime_logging: memory is bounded: the oldest waiting rows are lost")

    def _try_again(self) -> None:
        if self._is_trying or not self._waiting or time.monotonic() < self._next_try_s:
            return
        self._is_trying = True  # a signal handler may log while its thread is in here
        try:
            self._go_on_in_a_new_file()
        except OSError:
            self._next_try_s = time.monotonic() + RETRY_INTERVAL_S
        finally:
            self._is_trying = False

    def _go_on_in_a_new_file(self) -> None:
        owner = self.opening.owner or self.opening.journal
        name = journal_name(self.opening.role)
        self._directory.create()
        journal = self._begin(replace(self.opening, journal=name, owner=owner))
        num_before = len(self._waiting)
        try:
            while self._waiting:
                journal.append(self._waiting[0][0])
                self._num_waiting_bytes -= self._waiting.popleft()[1]
        except OSError:
            if len(self._waiting) == num_before:
                journal.abandon()
                with suppress(OSError):
                    journal.path.unlink()
                raise
            self._replace(journal)
            raise
        self._replace(journal)
        logger.info("slime_logging: rows are written again, to %s", journal.path)

    def _replace(self, journal: Journal) -> None:
        self._journal.abandon()
        self._journal = journal

    def _tell(self, error: JournalBroken) -> None:
        self._next_try_s = 0.0  # a new file may work at once
        now_s = time.monotonic()
        is_new, self._told_at_s = now_s - self._told_at_s > TELL_INTERVAL_S, now_s
        if not is_new:
            return
        logger.error(
            "slime_logging: cannot write %s (%s); rows wait in memory, where a crash takes them,"
            " and the disk is tried again every %.0f s. Training goes on.",
            self._journal.path,
            error,
            RETRY_INTERVAL_S,
        )
