"""One thread that brings journals to one tracker, and never disturbs anything else.

Policy:

- Rows are taken from the journals in batches and handed to the backend; what the backend cannot
  take now is tried again with a growing pause, what it will never take is set aside with the
  reason, one row at a time.
- What a client with a queue of its own was given counts as nothing until a `close` that returned:
  when such a client breaks, everything since the last confirmation is looked up and, where it is
  not there, sent again.
- Nothing raised by a backend leaves the thread. A tracker that is down or slow holds up neither
  training nor another tracker.
- After a delivery that ended without closing (a crash), the tracker is asked what it holds before
  anything is sent again; the same is done after a hand-over of which it is not known how far it
  came. So no row is lost, and none is doubled where the tracker can be read back.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from slime_logging.backends import new_backend
from slime_logging.backends.base import Backend, Writer
from slime_logging.backends.place import run_place
from slime_logging.delivery.aside import AsideFile
from slime_logging.delivery.cursor import adopt, next_cursor, read_cursors
from slime_logging.delivery.feed import Batch, Feed
from slime_logging.delivery.held import Held
from slime_logging.delivery.watch import SLOWEST_PAUSE_S
from slime_logging.errors import BackendError, TryAgain, WillNeverWork
from slime_logging.record.entries import Opening
from slime_logging.record.journal import SUFFIX, is_written
from slime_logging.record.reading import count_rows, read_opening
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Row
from slime_logging.values.run import RunFacts

logger = logging.getLogger("slime_logging")

POLL_INTERVAL_S = 0.5
CURSOR_INTERVAL_S = 1.0
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
REFUSED_PAUSE_S = 5.0
LONGEST_REFUSED_PAUSE_S = 240.0
"""A refusal may pass too: a server that is set up later, a key that a person mends."""

NUM_REFUSALS_IN_A_ROW = 20
"""When so many rows in a row are refused and none is taken, it is the tracker that refuses, not the
rows.
"""

GRACE_S = 5.0

SECOND_CLOSE_S = 15.0
SHORT_CLOSE_S = 10.0
"""Of the time that is left, a close leaves so much for a second attempt with a new client, should
this one hang; but it gets `SHORT_CLOSE_S` where there is as much.
"""


@dataclass(frozen=True, kw_only=True)
class DeliveryResult:
    """How a delivery ended. `num_left` counts the rows that this process sees and the tracker has
    not confirmed.
    """

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
        only: the process whose journals to deliver, by its main journal's name; None
            delivers all of the run but those that a living process delivers itself.
        start: which start of the run this is.
        is_repair: trust no cursor; send whatever the tracker does not hold.
        safe_text: makes a foreign exception's text fit to be written down.
        slowest_s: the longest pause between two looks at an idle journal.
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
        slowest_s: float = SLOWEST_PAUSE_S,
    ) -> None:
        self.name = backend
        self._directory = directory
        self._facts = facts
        self._writer = writer
        self._safe_text = safe_text
        self._backend: Backend = new_backend(backend)
        self._where = run_place(backend, facts).key
        before = [] if only else read_cursors(directory, self._where)
        self._cursor, self._must_look = next_cursor(
            backend, self._where, writer.label, before, only=only or ""
        )
        self._settled_at = 0.0
        if self._must_look:
            self._unsettle()
        self._must_look |= not only and not before and (start > 1 or writer.is_sync)
        self._is_repair = is_repair
        if is_repair:
            self._cursor.places, self._must_look = {}, True
        self._only = only
        self._feed = Feed(
            directory,
            self._reads_rows,
            self._begin_journal,
            has_all_config=not only,
            slowest_s=slowest_s,
        )
        self._pending: Batch | None = None
        self._held = Held()
        self._is_careful = False
        self._aside = AsideFile(directory, self._where, writer.label)
        self._num_opens = 0
        self._is_open = False
        self._stop = threading.Event()
        self._deadline = float("inf")
        self._exit_code: int | None = None
        self._saved_at = self._config_at = 0.0
        self._is_saved = False
        self.stepped_at_s = time.monotonic()
        self._thread = threading.Thread(
            target=self._run, name=f"slime-logging-{backend}", daemon=True
        )

    def start(self) -> None:
        """Begin to deliver; returns at once."""
        self._thread.start()

    @property
    def progress(self) -> tuple[int, int]:
        """Rows handed over so far, and bytes of journals that are still to be read."""
        return (
            sum(place.num_handed for place in list(self._cursor.places.values())),
            self._feed.num_bytes_left(),
        )

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def stop(self, exit_code: int | None, timeout_s: float) -> None:
        """Ask the delivery to hand over what is there now and to close the tracker, within
        `timeout_s`; returns at once.
        """
        self._exit_code = exit_code
        self._deadline = time.monotonic() + timeout_s
        self._stop.set()

    def wait(self) -> DeliveryResult:
        """After `stop`: wait for the end, at most a few seconds longer than asked for, and say what
        became of it.
        """
        if self._thread.ident is not None:
            self._thread.join(max(0.0, self._deadline - time.monotonic()) + GRACE_S)
        return self.result()

    def result(self) -> DeliveryResult:
        """How far the delivery is."""
        cursor = self._cursor
        num_confirmed = sum(place.num_confirmed for place in list(cursor.places.values()))
        num_left = (
            0
            if cursor.is_closed
            else max(0, self._num_rows() - num_confirmed - cursor.num_set_aside)
        )
        return DeliveryResult(
            backend=self.name,
            state="unfinished" if self._thread.is_alive() else cursor.state,
            reason=cursor.reason,
            num_confirmed=num_confirmed,
            num_left=num_left,
            num_set_aside=cursor.num_set_aside,
        )

    def _num_rows(self) -> int:
        """Rows of the journals that are this delivery's, counted on the disk now: the thread may
        hang with its feed.
        """
        openings = ((path, read_opening(path)) for path in self._directory.journal_paths())
        return sum(
            count_rows(path)
            for path, opening in openings
            if opening is not None and self._reads_rows(opening)
        )

    def _reads_rows(self, opening: Opening) -> bool:
        owner = opening.owner or opening.journal
        if self._only is not None:
            return owner == self._only
        return (
            self.name not in opening.delivers
            or self._writer.is_sync
            or not self._is_delivered_by(owner)
        )

    def _is_delivered_by(self, owner: str) -> bool:
        """Whether a process delivers its own journals, or lives and can have it started again."""
        path = self._directory.journals / f"{owner}{SUFFIX}"
        return self._directory.locks.is_held(owner) or is_written(path)

    def _begin_journal(self, opening: Opening) -> int:
        if self.name in opening.delivers and self._only is None:
            before = read_cursors(self._directory, self._where)
            owner = opening.owner or opening.journal
            if adopt(
                self._cursor, opening.journal, owner, before, trusts_places=not self._is_repair
            ):
                self._unsettle()
        return self._cursor.place(opening.journal).confirmed

    # -- the thread
    # ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._deliver()
        except Exception as error:  # a bug of ours must not be silent, and must not reach training
            self._settle("refused", self._safe_text(error))
            frames = "".join(
                traceback.format_tb(error.__traceback__)
            )  # the exception's own text may hold a secret
            logger.error(
                "slime_logging: the delivery to %s stopped; `slime-logging sync` can go on\n%s",
                self.name,
                frames,
            )
        finally:
            self._release()

    def _deliver(self) -> None:
        if not self._keep_trying(self._open):
            return
        while not self._stop.is_set():
            if not self._keep_trying(self._pass_on):
                return
            self._stop.wait(POLL_INTERVAL_S)
        self._keep_trying(self._end)

    def _open(self) -> None:
        self._wait_until_settled()
        self._backend.open(self._facts, self._writer)
        self._is_open = True
        self._num_opens += 1
        page = str(getattr(self._backend, "page", ""))
        if page and page != self._cursor.page:
            self._cursor.page = page
            logger.warning("slime_logging: %s: %s", self.name, page)
        if self._num_opens > 1:
            self._feed.has_new_config = (
                True  # the client that is gone may not have brought it there
            )
        self._settle("delivering", "")

    def _pass_on(self, *, is_last: bool = False) -> None:
        """Hand everything over that is there now, in batches."""
        if not self._is_open:
            self._open()
        self._feed.discover(is_last=is_last)
        if is_last:
            self._feed.mark_end()
        if self._must_look:
            self._wait_until_settled()
            self._held.look(self._backend, self._facts, self._directory, self._cursor)
            self._must_look = False
        self._set_config()
        while self._take():
            self.stepped_at_s = time.monotonic()
            self._write_pending()
            if (
                time.monotonic() - self._config_at >= CURSOR_INTERVAL_S
            ):  # each costs as much as all journals together
                self._set_config()
            self._save_cursor()
            if is_last and self._feed.is_at_mark():
                break
            if time.monotonic() > self._deadline:
                raise TryAgain("the time for finishing ran out")
        self._set_config()
        self._save_cursor(is_late=True)
        self._held.forget()
        self._is_careful = False

    def _unsettle(self) -> None:
        """A client ended badly: look what the tracker holds, once nothing of that client can be on
        its way any more.
        """
        self._must_look = True
        self._settled_at = time.monotonic() + self._backend.settle_s(self._facts)

    def _wait_until_settled(self) -> None:
        if self._settled_at > self._deadline:
            raise TryAgain(
                f"{self.name} is not asked what it holds before its last client's rows can have"
                " arrived"
            )
        time.sleep(max(0.0, self._settled_at - time.monotonic()))

    def _end(self) -> None:
        """Hand the rest over and close; a close that is not confirmed is tried again with a new
        client while there is time.
        """
        self._pass_on(is_last=True)
        left_s = self._deadline - time.monotonic()
        try:
            self._backend.close(
                self._exit_code, max(1.0, left_s - SECOND_CLOSE_S, min(left_s, SHORT_CLOSE_S))
            )
        except TryAgain:
            self._is_open = False
            self._doubt()
            raise
        self._cursor.confirm()
        self._cursor.is_closed = True
        self._settle("closed", "")

    def _take(self) -> bool:
        if self._pending is None:
            batch = self._feed.take()
            self._pending = batch if batch.ends else None
        return self._pending is not None

    def _set_config(self) -> None:
        self._config_at = time.monotonic()
        if self._feed.has_new_config:
            config = self._feed.config(self._facts.roles)
            try:
                self._backend.set_config(config)
            except BackendError as error:
                self._feed.has_new_config = True
                if isinstance(error, TryAgain):
                    self._doubt()
                raise

    def _write_pending(self) -> None:
        batch = cast(Batch, self._pending)
        rows = [row for row in batch.rows if not self._held.take(self._backend, row)]
        try:
            num_aside = self._write(rows)
        except TryAgain:
            self._doubt()
            raise
        for journal, (offset, num_rows) in batch.ends.items():
            aside = num_aside.pop(journal, 0)
            self._cursor.hand(
                journal, offset, num_rows - aside, aside, is_confirmed=self._backend.is_durable
            )
        self._pending = None

    def _write(self, rows: list[Row]) -> dict[str, int]:
        """Hand rows over; returns how many were set aside, by journal."""
        if not rows:
            return {}
        if self._is_careful:
            return self._write_one_by_one(rows)
        try:
            self._backend.write(rows)
        except WillNeverWork as error:
            # Which row it was, and how far it came, is not known: look, and go on row by row.
            self._is_careful = True
            raise TryAgain(str(error)) from error
        return {}

    def _doubt(self) -> None:
        """After a hand-over that broke off: what the tracker holds is not known, and a client with
        a queue may have lost it.
        """
        self._unsettle()
        if self._backend.is_durable:
            return
        self._is_open = False
        with suppress(BackendError):
            self._backend.close(None, GRACE_S)
        self._pending = None
        self._cursor.take_back()
        self._feed.rewind(lambda journal: self._cursor.place(journal).confirmed)

    def _write_one_by_one(self, rows: list[Row]) -> dict[str, int]:
        """Find the rows that the tracker refuses; if it refuses everything, it is the tracker that
        is at fault.
        """
        refused: list[tuple[Row, str]] = []
        num_in_a_row = 0
        for row in rows:
            try:
                self._backend.write([row])
                num_in_a_row = 0
            except WillNeverWork as error:
                refused.append((row, self._safe_text(error)))
                num_in_a_row += 1
                if num_in_a_row >= NUM_REFUSALS_IN_A_ROW:
                    raise
        num_aside: dict[str, int] = {}
        for row, reason in refused:
            self._aside.add(row, reason, self.name)
            num_aside[row.journal] = num_aside.get(row.journal, 0) + 1
        return num_aside

    # -- trying again, and the end
    # ------------------------------------------------------------------------------------------

    def _keep_trying(self, step: Callable[[], None]) -> bool:
        """Do a step until it works; False when the time is up, or when the tracker refuses and
        the job is over.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            self.stepped_at_s = time.monotonic()
            try:
                step()
                if self._cursor.state in ("waiting", "refused"):
                    self._settle("delivering", "")
                return True
            except TryAgain as error:
                self._settle("waiting", self._safe_text(error))
                longest_s = LONGEST_PAUSE_S
            except WillNeverWork as error:
                self._settle("refused", self._safe_text(error))
                if self._stop.is_set():
                    return False
                pause_s, longest_s = max(pause_s, REFUSED_PAUSE_S), LONGEST_REFUSED_PAUSE_S
                self._is_open = False
            if time.monotonic() >= self._deadline:
                return False
            self._pause(pause_s)
            pause_s = min(2 * pause_s, longest_s)

    def _pause(self, pause_s: float) -> None:
        pause_s *= random.uniform(0.7, 1.3)  # noqa: S311 - so that many processes do not knock together
        if self._stop.is_set():
            time.sleep(max(0.0, min(1.0, pause_s, self._deadline - time.monotonic())))
        else:
            self._stop.wait(pause_s)

    def _release(self) -> None:
        if not self._cursor.is_closed:
            try:
                self._backend.close(None, 1.0)
            except Exception as error:  # the result says already that it is not closed
                logger.debug("slime_logging: closing %s: %s", self.name, self._safe_text(error))
        self._feed.close()

    def _settle(self, state: str, reason: str) -> None:
        if state == "waiting" and self._cursor.state == "opening":
            logger.warning(
                "slime_logging: %s cannot be reached now (%s); rows are kept and delivered later",
                self.name,
                reason,
            )
        if state == "refused" and self._cursor.state != "refused":
            logger.error(
                "slime_logging: %s refuses this run (%s); rows are kept in %s",
                self.name,
                reason,
                self._directory.path,
            )
        has_changed = state != self._cursor.state
        self._cursor.state, self._cursor.reason = state, reason
        self._save_cursor(now=has_changed)

    def _save_cursor(self, *, now: bool = False, is_late: bool = False) -> None:
        """Save it at most once a second, but `now`; `is_late` only where the last change was not
        saved.
        """
        self._is_saved &= is_late
        is_due = time.monotonic() - self._saved_at >= CURSOR_INTERVAL_S
        if self._is_saved or not (now or is_due):
            return
        self._saved_at = time.monotonic()
        try:
            self._cursor.save(self._directory)
            self._is_saved = True
        except OSError as error:
            logger.debug("slime_logging: the cursor of %s could not be saved: %s", self.name, error)
