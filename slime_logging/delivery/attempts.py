"""Doing a step of a delivery until it works: pauses, the time for the end, and what hangs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from slime_logging.delivery.ledger import Ledger
from slime_logging.errors import TryAgain, WillNeverWork

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
REFUSED_PAUSE_S = 5.0
LONGEST_REFUSED_PAUSE_S = 240.0
"""A refusal may pass too: a server that is set up later, a key that a person mends."""

HANG_S = 90.0
"""A step that takes longer hangs: clients bound each of their own calls below."""

LATE_S = 0.5


class Attempts:
    """The clock of one delivery.

    Args:
        ledger: where trouble is noted.
        safe_text: makes a foreign exception's text fit to be written down.
    """

    def __init__(self, ledger: Ledger, safe_text: Callable[[BaseException], str]) -> None:
        self._ledger = ledger
        self._safe_text = safe_text
        self._stop = threading.Event()
        self._hangs_at_s = float("inf")
        self.deadline_s = float("inf")

    def stop(self, timeout_s: float) -> None:
        """Have the delivery come to its end within `timeout_s`."""
        self.deadline_s = time.monotonic() + timeout_s
        self._stop.set()

    @property
    def is_stopped(self) -> bool:
        """Whether it is to come to its end."""
        return self._stop.is_set()

    @property
    def is_late(self) -> bool:
        """Whether a step takes longer than any should, or the time for the end is over."""
        now_s = time.monotonic()
        return now_s > self._hangs_at_s or now_s > self.deadline_s + LATE_S

    def note_progress(self, longest_s: float | None = None) -> None:
        """A step begins, or came further; it hangs if nothing more is heard for `longest_s`,
        `HANG_S` where that is None.
        """
        self._hangs_at_s = time.monotonic() + (HANG_S if longest_s is None else longest_s)

    def rest(self, pause_s: float) -> None:
        """Wait, but no longer than until the end is asked for."""
        self._hangs_at_s = float("inf")
        self._stop.wait(pause_s)

    def until_it_works(self, step: Callable[[], None]) -> bool:
        """Do a step until it works; False when the time is up, or when the tracker refuses and
        the job is over.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            self.note_progress()
            try:
                step()
                if self._ledger.cursor.state in ("waiting", "refused"):
                    self._ledger.settle("delivering")
                return True
            except TryAgain as error:
                self._ledger.settle("waiting", self._safe_text(error))
                longest_s = LONGEST_PAUSE_S
            except WillNeverWork as error:
                self._ledger.settle("refused", self._safe_text(error))
                if self.is_stopped:
                    return False
                pause_s, longest_s = max(pause_s, REFUSED_PAUSE_S), LONGEST_REFUSED_PAUSE_S
            if time.monotonic() >= self.deadline_s:
                return False
            self._pause(pause_s)
            pause_s = min(2 * pause_s, longest_s)

    def _pause(self, pause_s: float) -> None:
        # Not at the same moment as many other processes.
        pause_s *= random.uniform(0.7, 1.3)  # noqa: S311
        if self.is_stopped:
            time.sleep(max(0.0, min(1.0, pause_s, self.deadline_s - time.monotonic())))
        else:
            self.rest(pause_s)
