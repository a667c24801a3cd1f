"""One thread that brings journals to one tracker, and never disturbs anything else.

Policy:

- Rows are taken from the journals in batches and handed to the backend; what the backend cannot take now is tried again with a
  growing pause, what it will never take is set aside with the reason, one row at a time.
- Nothing raised by a backend leaves the thread. A tracker that is down or slow holds up neither training nor another tracker.
- After a delivery that ended without closing (a crash), the tracker is asked what it holds before anything is sent again; the same is
  done after a hand-over of which it is not known how far it came. So no row is lost, and none is doubled where the tracker can be
  read back.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import orjson

from slime_logging.backends import destination, new_backend
from slime_logging.backends.base import Backend, Point, Readable, Row, RunFacts, Writer
from slime_logging.errors import BackendError, TryAgain, WillNeverWork
from slime_logging.record.cursor import next_cursor, read_cursors
from slime_logging.record.entries import Opening
from slime_logging.record.feed import Batch, Feed
from slime_logging.record.run import RunDirectory

logger = logging.getLogger("slime_logging")

POLL_INTERVAL_S = 0.5
CURSOR_INTERVAL_S = 1.0
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
NUM_REFUSALS_IN_A_ROW = 20
"""When so many rows in a row are refused and none is taken, it is the tracker that refuses, not the rows."""

GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class DeliveryResult:
    """How a delivery ended. `num_left` counts rows that the tracker has not confirmed, as far as this process can see."""

    backend: str
    state: str
    reason: str
    num_confirmed: int
    num_left: int
    num_set_aside: int

    @property
    def is_complete(self) -> bool:
        """Whether the tracker holds everything."""
        return self.state == "closed" and self.num_left == 0


class Delivery:
    """Deliver the journals of a run to one tracker, from where the last delivery ended.

    Args:
        backend: its name in `BACKENDS`.
        directory: the run's.
        facts: what the backend needs to know of the run.
        writer: which process this is.
        only: the process whose journals to deliver, by its main journal's name; None delivers all of the run but those that a process of this start
            delivers itself (for `slime-logging sync` those too).
        start: which start of the run this is.
        is_repair: trust no cursor; send whatever the tracker does not hold.
        safe_text: makes a foreign exception's text fit to be written down.
        on_open: called in the thread each time the backend was opened.
    """

    def __init__(
        self,
        backend: str,
        directory: RunDirectory,
        facts: RunFacts,
        writer: Writer,
        *,
        only: str | None = None,
        start: int = 1,
        is_repair: bool = False,
        safe_text: Callable[[BaseException], str] = str,
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = backend
        self._directory = directory
        self._facts = facts
        self._writer = writer
        self._safe_text = safe_text
        self._on_open = on_open
        self._backend: Backend = new_backend(backend)
        where = destination(backend, facts.options)
        before = read_cursors(directory, where)
        self._cursor, is_unclear = next_cursor(backend, where, writer.label, before)
        self._must_look = is_unclear or (not before and (start > 1 or writer.is_sync))
        if is_repair:
            self._cursor.places, self._must_look = {}, True
        self._only, self._start_number = only, start
        self._feed = Feed(directory, self._is_mine, lambda name: self._cursor.place(name).confirmed)
        self._pending: Batch | None = None
        self._held: set[Point] | None = None
        self._direct: deque[Row] = deque()
        self._is_open = False
        self._stop = threading.Event()
        self._deadline = float("inf")
        self._exit_code: int | None = None
        self._saved_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"slime-logging-{backend}", daemon=True)

    def start(self) -> None:
        """Begin to deliver; returns at once."""
        self._thread.start()

    def hand_directly(self, row: Row) -> None:
        """Deliver a row that no journal could take; it lives in this process's memory until the tracker has it."""
        self._direct.append(row)

    @property
    def progress(self) -> tuple[int, int]:
        """Rows handed over so far, and bytes of journals that are still to be read."""
        return sum(place.num_handed for place in list(self._cursor.places.values())), self._feed.num_bytes_left()

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def stop(self, exit_code: int | None, timeout_s: float) -> None:
        """Ask the delivery to hand over what is there now and to close the tracker, within `timeout_s`; returns at once."""
        self._exit_code = exit_code
        self._deadline = time.monotonic() + timeout_s
        self._stop.set()

    def wait(self) -> DeliveryResult:
        """After `stop`: wait for the end, at most a few seconds longer than asked for, and say what became of it."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, self._deadline - time.monotonic()) + GRACE_S)
        return self.result()

    def result(self) -> DeliveryResult:
        """How far the delivery is."""
        places = list(self._cursor.places.values())
        num_confirmed = sum(place.num_confirmed for place in places)
        num_left = 0 if self._cursor.is_closed else self._feed.num_rows() - num_confirmed - self._cursor.num_set_aside
        return DeliveryResult(
            backend=self.name,
            state="unfinished" if self._thread.is_alive() else self._cursor.state,
            reason=self._cursor.reason,
            num_confirmed=num_confirmed,
            num_left=num_left + len(self._direct),
            num_set_aside=self._cursor.num_set_aside,
        )

    def _is_mine(self, opening: Opening) -> bool:
        if self._only is not None:
            return self._only in (opening.journal, opening.owner)
        return self._writer.is_sync or opening.start != self._start_number or self.name not in opening.delivers

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._deliver()
        except Exception as error:  # a bug of ours must not be silent, and must not reach training
            self._settle("refused", self._safe_text(error))
            logger.exception("slime_logging: the delivery to %s stopped; `slime-logging sync` can go on", self.name)
        finally:
            self._release()

    def _deliver(self) -> None:
        if not self._keep_trying(self._open):
            return
        while True:
            is_last = self._stop.is_set()
            if not self._keep_trying(self._pass_on):
                return
            if is_last and not self._has_more():
                break
            if not self._has_more():
                self._stop.wait(POLL_INTERVAL_S)
        self._close()

    def _open(self) -> None:
        self._backend.open(self._facts, self._writer)
        self._is_open = True
        self._on_open()
        self._settle("delivering", "")

    def _pass_on(self) -> None:
        """Hand everything over that is there now, in batches."""
        if not self._is_open:
            self._open()
        if self._must_look:
            self._look()
            self._must_look = False
        self._feed.discover()
        self._set_config()
        while self._take():
            self._write_pending()
            self._set_config()
            self._save_cursor()
            if time.monotonic() > self._deadline:
                raise TryAgain("the time for finishing ran out")
        self._held = None  # a row that came after the look cannot be in it

    def _take(self) -> bool:
        if self._pending is None:
            batch = self._feed.take()
            self._pending = batch if batch.ends or self._direct else None
        return self._pending is not None

    def _has_more(self) -> bool:
        return self._pending is not None or bool(self._direct)

    def _set_config(self) -> None:
        if self._feed.has_new_config:
            config = self._feed.config(self._facts.roles)
            try:
                self._backend.set_config(config)
            except BackendError:
                self._feed.has_new_config = True
                raise

    def _write_pending(self) -> None:
        batch = cast(Batch, self._pending)
        rows = [row for row in batch.rows if not self._is_held(row)]
        direct = list(self._direct)
        try:
            self._write(rows + direct)
        except TryAgain:
            self._doubt()
            raise
        for _ in direct:
            self._direct.popleft()
        for journal, (offset, num_rows) in batch.ends.items():
            self._cursor.hand(journal, offset, num_rows, is_confirmed=self._backend.is_durable)
        self._pending = None

    def _write(self, rows: list[Row]) -> None:
        if not rows:
            return
        try:
            self._backend.write(rows)
        except WillNeverWork:
            self._write_one_by_one(rows)

    def _doubt(self) -> None:
        """After a hand-over that broke off: what the tracker holds is not known; a client with a queue must be emptied first."""
        self._must_look = True
        if not self._backend.is_durable:
            self._is_open = False
            with suppress(BackendError):
                self._backend.close(None, GRACE_S)

    def _write_one_by_one(self, rows: list[Row]) -> None:
        """Find the rows that the tracker refuses; if it refuses everything, it is the tracker that is at fault."""
        self._look()
        refused: list[tuple[Row, str]] = []
        num_in_a_row = 0
        for row in rows:
            if self._is_held(row):
                continue
            try:
                self._backend.write([row])
                num_in_a_row = 0
            except WillNeverWork as error:
                refused.append((row, self._safe_text(error)))
                num_in_a_row += 1
                if num_in_a_row >= NUM_REFUSALS_IN_A_ROW:
                    raise
        for row, reason in refused:
            self._set_aside(row, reason)

    def _set_aside(self, row: Row, reason: str) -> None:
        if self._cursor.num_set_aside == 0:
            logger.warning("slime_logging: %s refuses a row for good (%s); it stays in the journal", self.name, reason)
        self._cursor.num_set_aside += 1
        path = self._directory.delivery / f"{self._cursor.destination}@{self._writer.label}.aside.jsonl"
        try:
            with path.open("ab") as file:
                file.write(orjson.dumps({"row_id": row.row_id, "reason": reason}) + b"\n")
        except OSError:
            logger.warning("slime_logging: could not note that row %s was set aside", row.row_id)

    # -- what the tracker holds already -------------------------------------------------------------------------------

    def _look(self) -> None:
        """Ask the tracker which points it holds, where it can be asked."""
        if not hasattr(self._backend, "read_points"):
            return
        self._held = set(cast(Readable, self._backend).read_points(self._facts))

    def _is_held(self, row: Row) -> bool:
        if not self._held:
            return False
        points = cast(Readable, self._backend).points(row)
        return bool(points) and all(point in self._held for point in points)

    # -- trying again, and the end ------------------------------------------------------------------------------------

    def _keep_trying(self, step: Callable[[], None]) -> bool:
        """Do a step until it works; False when the tracker refuses for good or the time is up."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                step()
                if self._cursor.state == "waiting":
                    self._settle("delivering", "")
                return True
            except TryAgain as error:
                self._settle("waiting", self._safe_text(error))
                if time.monotonic() >= self._deadline:
                    return False
                self._pause(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            except WillNeverWork as error:
                self._settle("refused", self._safe_text(error))
                return False

    def _pause(self, pause_s: float) -> None:
        pause_s *= random.uniform(0.7, 1.3)  # noqa: S311 - so that many processes do not knock together
        if self._stop.is_set():
            time.sleep(max(0.0, min(1.0, pause_s, self._deadline - time.monotonic())))
        else:
            self._stop.wait(pause_s)

    def _close(self) -> None:
        try:
            self._backend.close(self._exit_code, max(1.0, self._deadline - time.monotonic()))
        except BackendError as error:
            self._settle("waiting" if isinstance(error, TryAgain) else "refused", self._safe_text(error))
            return
        self._cursor.confirm()
        self._cursor.is_closed = True
        self._settle("closed", "")

    def _release(self) -> None:
        if not self._cursor.is_closed:
            try:
                self._backend.close(None, 1.0)
            except Exception as error:  # the result says already that it is not closed
                logger.debug("slime_logging: closing %s: %s", self.name, self._safe_text(error))
        self._feed.close()

    def _settle(self, state: str, reason: str) -> None:
        if state == "waiting" and self._cursor.state == "opening":
            logger.warning("slime_logging: %s cannot be reached now (%s); rows are kept and delivered later", self.name, reason)
        if state == "refused" and self._cursor.state != "refused":
            logger.error("slime_logging: %s refuses this run (%s); rows are kept in %s", self.name, reason, self._directory.path)
        has_changed = state != self._cursor.state
        self._cursor.state, self._cursor.reason = state, reason
        self._save_cursor(now=has_changed)

    def _save_cursor(self, *, now: bool = False) -> None:
        if not now and time.monotonic() - self._saved_at < CURSOR_INTERVAL_S:
            return
        self._saved_at = time.monotonic()
        try:
            self._cursor.save(self._directory)
        except OSError as error:
            logger.debug("slime_logging: the cursor of %s could not be saved: %s", self.name, error)
