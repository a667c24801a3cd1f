"""One thread that brings journals to one tracker, and never disturbs anything else.

Policy: nothing raised by a backend leaves the thread. A tracker that is down or slow holds up
neither training nor another tracker.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from slime_logging.backends import new_backend
from slime_logging.backends.process import backend_of_anyone
from slime_logging.delivery.already_there import AlreadyThere
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.attempts import Attempts
from slime_logging.delivery.hand_over import HandOver
from slime_logging.delivery.ledger import Ledger
from slime_logging.delivery.result import DeliveryResult

logger = logging.getLogger("slime_logging")

POLL_INTERVAL_S = 0.5
GRACE_S = 5.0
NUM_CALLS = 12
"""Of a thread that hangs so many calls are told, the innermost first."""


class Delivery:
    """A delivery at work: `start`, `stop`, `wait`.

    Args:
        assignment: what is delivered.
        safe_text: makes a foreign exception's text fit to be written down.
    """

    def __init__(
        self, assignment: Assignment, safe_text: Callable[[BaseException], str] = str
    ) -> None:
        self.name = assignment.tracker
        self._assignment = assignment
        self._safe_text = safe_text
        new = new_backend if assignment.is_alone else backend_of_anyone
        cursor, must_look, is_unsettled = assignment.first_cursor()
        self._ledger = Ledger(assignment.directory, cursor)
        self._clock = Attempts(self._ledger, safe_text)
        there = AlreadyThere(new(self.name), assignment, must_look=must_look)
        if is_unsettled:
            there.doubt()
        self._hand_over = HandOver(assignment, self._ledger, self._clock, there, safe_text)
        self._exit_code: int | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"slime-logging-{self.name}", daemon=True
        )

    def start(self) -> None:
        """Begin to deliver; returns at once."""
        self._thread.start()

    @property
    def num_handed(self) -> int:
        """Rows handed over so far."""
        return sum(place.num_handed for place in list(self._ledger.cursor.places.values()))

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    @property
    def is_hanging(self) -> bool:
        """Whether a step takes longer than any should, or the time for the end is over."""
        return self.is_running and self._clock.is_late

    @property
    def needs_new_process(self) -> bool:
        """Whether it ended because only a new process can go on."""
        return self._hand_over.needs_new_process

    def note_hang(self) -> None:
        """Say in the cursor where the thread hangs; for a process that ends itself for that."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        calls = [
            f"{call.name} ({Path(call.filename).name}:{call.lineno})"
            for call in reversed(traceback.extract_stack(frame))
        ]
        text = f"its client did not answer, in {' < '.join(calls[:NUM_CALLS])}"
        self._ledger.settle("waiting", text)

    def stop(self, exit_code: int | None, timeout_s: float) -> None:
        """Ask the delivery to hand over what is there now and to close the tracker, within
        `timeout_s`; returns at once.
        """
        self._exit_code = exit_code
        self._clock.stop(timeout_s)

    def wait(self) -> DeliveryResult:
        """After `stop`: wait for the end, at most a few seconds longer than asked for, and say what
        became of it.
        """
        if self._thread.ident is not None:
            self._thread.join(max(0.0, self._clock.deadline_s - time.monotonic()) + GRACE_S)
        return self.result()

    def result(self) -> DeliveryResult:
        """How far the delivery is."""
        cursor = self._ledger.cursor
        num_confirmed = sum(place.num_confirmed for place in list(cursor.places.values()))
        num_left = 0
        if not cursor.is_closed:
            num_left = self._assignment.num_rows() - num_confirmed - cursor.num_set_aside
        return DeliveryResult(
            backend=self.name,
            state="unfinished" if self.is_running else cursor.state,
            reason=cursor.reason,
            num_confirmed=num_confirmed,
            num_left=max(0, num_left),
            num_set_aside=cursor.num_set_aside,
        )

    def _run(self) -> None:
        try:
            self._deliver()
        except Exception as error:  # a bug of ours must not be silent, and must not reach training
            self._ledger.settle("refused", self._safe_text(error))
            # The exception's own text may hold a secret.
            frames = "".join(traceback.format_tb(error.__traceback__))
            logger.error(
                "slime_logging: the delivery to %s stopped; `slime-logging sync` can go on\n%s",
                self.name,
                frames,
            )
        finally:
            self._hand_over.release()

    def _deliver(self) -> None:
        clock, rows = self._clock, self._hand_over
        if not clock.until_it_works(rows.open):
            return
        while not clock.is_stopped:
            if not clock.until_it_works(rows.pass_on):
                return
            clock.rest(POLL_INTERVAL_S)
        clock.until_it_works(lambda: rows.finish(self._exit_code))
