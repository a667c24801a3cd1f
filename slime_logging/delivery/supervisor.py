"""The process that sees to it that a run is delivered: one child a tracker, until nobody writes.

Policy: crash-only. A child that dies or hangs is started again and goes on from its cursor. The
supervisor outlives the job's primary: it finds out how that ended, has the children deliver and
close within the finish timeout, goes on while other processes of the run still write, and then
ends. SIGTERM (a scheduler that ends the job) leaves it `TERM_GRACE_S`. A new start of the run makes
it leave at once. It also samples its host and brings its journals to the disk.

One that follows a run for `sync --follow` is the same, but a child of that command: it dies with
it, SIGTERM means that the command ends, and it makes room for the job's own delivery.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from slime_logging.delivery.child import die_with_parent
from slime_logging.delivery.crew import Crew
from slime_logging.delivery.ending import Ending, Process, find_ending, read_ending, record_ending
from slime_logging.delivery.host import Host
from slime_logging.delivery.notices import NoticeHandler
from slime_logging.delivery.spec import DeliverySpec
from slime_logging.delivery.writers import Writers
from slime_logging.errors import RunNotFoundError
from slime_logging.record.run import RUN_FILE, RunDirectory, RunFile

TICK_S = 0.1
TERM_GRACE_S = 16.0
TERM_PATIENCE_S = 8.0
"""How long after SIGTERM the primary may go on before the trackers are left as they are."""

RECORD_S = 5.0
"""How long a follower waits for the job's own word of how it ended."""

_PR_SET_CHILD_SUBREAPER = 36


def main(starter: int = -1) -> None:
    """Deliver the run of the spec on standard input; `starter` is a descriptor of who asked."""
    spec = msgspec.json.decode(sys.stdin.buffer.read(), type=DeliverySpec)
    if spec.is_following:
        die_with_parent()
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.close(devnull)
    _adopt_orphans()
    supervisor = Supervisor(spec, Process(spec.pid, starter))
    signal.signal(signal.SIGTERM, supervisor.on_sigterm)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    supervisor.run()
    os._exit(0)


class Supervisor:
    """One run's delivery, from its start to its end."""

    def __init__(self, spec: DeliverySpec, process: Process) -> None:
        self._spec = spec
        self._process = process
        self._directory = RunDirectory(Path(spec.directory))
        logger = logging.getLogger("slime_logging")
        logger.addHandler(NoticeHandler(self._directory, spec.pid))
        self._writers = Writers(self._directory, spec)
        self._crew = Crew(self._directory, spec, is_sync=spec.is_following)
        self._patience_s = 0.0 if spec.is_following else TERM_PATIENCE_S
        self._host = Host(self._directory, spec)
        self._term_at_s: float | None = None
        self._run = _RunFile(self._directory)

    def on_sigterm(self, *_: Any) -> None:
        """The job's scheduler ends everything: deliver what can be delivered soon."""
        if self._term_at_s is None:
            self._term_at_s = time.monotonic()

    def run(self) -> None:
        """Deliver until nobody writes any more and everything is confirmed, or time is up."""
        if not self._is_the_one():
            return
        self._host.begin()
        try:
            self._deliver_while(self._writers.is_owner_alive)
            ending = self._ending()
            self._end(ending)
            while self._wait_for_further_rows():
                self._deliver_while(self._writers.are_others_at_work)
                self._end(ending)
        finally:
            self._host.end()
            self._crew.kill()

    def _is_the_one(self) -> bool:
        """Be the run's only supervisor; wait for one of an earlier start to leave."""
        locks = self._directory.locks
        if self._spec.is_following:
            return True
        if not self._spec.is_primary and self._spec.only is None:
            return self._host.is_wanted()
        is_mine = locks.supervise if self._spec.is_primary else lambda: True
        while not (is_mine() and (not self._spec.trackers or locks.share_delivery())):
            if self._is_superseded() or self._is_out_of_grace(0.0):
                return False
            time.sleep(TICK_S)
        return True

    def _deliver_while(self, goes_on: Callable[[], bool]) -> None:
        self._crew.begin()
        while goes_on():
            if self._is_superseded() or self._is_out_of_grace(self._patience_s):
                return
            self._tick()

    def _wait_for_further_rows(self) -> bool:
        """Whether a process that outlives the primary wrote again; False when there is none."""
        if not self._spec.trackers:
            return False
        while True:
            is_alive = self._writers.are_others_alive()
            if self._is_superseded() or self._term_at_s is not None:
                return False
            if self._writers.have_grown():
                return True
            if not is_alive:
                return self._writers.have_grown(is_certain=True)
            self._tick()

    def _ending(self) -> Ending | None:
        """How the job ended; None where it goes on, or this delivery is not the run's."""
        if not self._spec.is_primary or self._writers.is_owner_alive():
            return None
        ending = self._recorded_ending() or find_ending(
            self._directory,
            self._spec.start,
            self._process,
            is_terminated=self._term_at_s is not None and not self._spec.is_following,
        )
        if self._is_superseded():
            return None
        try:
            record_ending(self._directory, ending)
        except OSError:
            return ending
        return ending

    def _recorded_ending(self) -> Ending | None:
        """How the job ended by the word of its own supervisor, which a follower waits for."""
        deadline_s = time.monotonic() + RECORD_S
        while self._spec.is_following:
            ending = read_ending(self._directory, self._spec.start)
            is_expected = self._directory.locks.has_living_supervisor
            if ending or not is_expected or time.monotonic() > deadline_s:
                return ending
            self._tick()
        return None

    def _end(self, ending: Ending | None) -> None:
        """Have the trackers deliver and close, in bounded time."""
        if self._is_superseded():
            self._crew.kill()
            return
        self._host.end()
        self._writers.note_end()
        deadline_s = time.monotonic() + self._spec.finish_timeout_s
        if self._term_at_s is not None:
            deadline_s = min(deadline_s, self._term_at_s + TERM_GRACE_S)
        self._crew.end(None if ending is None else ending.exit_code, deadline_s)
        while self._crew.is_working() and time.monotonic() < deadline_s + 1.0:
            if self._term_at_s is not None:
                deadline_s = min(deadline_s, self._term_at_s + TERM_GRACE_S)
            self._tick()
        self._crew.kill()

    def _tick(self) -> None:
        self._crew.look_after(time.monotonic())
        self._host.sync_journals(time.monotonic())
        time.sleep(TICK_S)

    def _is_superseded(self) -> bool:
        """Whether the run was started anew, its directory is gone, or a follower is in the way of
        the job's own delivery.
        """
        try:
            run = self._run.read()
            if self._spec.is_following and delivers_itself(self._directory, run):
                return True
            return run.num_starts > self._spec.start
        except RunNotFoundError:
            return not self._directory.path.exists()

    def _is_out_of_grace(self, grace_s: float) -> bool:
        return self._term_at_s is not None and time.monotonic() >= self._term_at_s + grace_s


class _RunFile:
    """What `run.json` says. It is replaced as a whole, and so read again only where it was."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._known: tuple[tuple[int, int], RunFile] | None = None

    def read(self) -> RunFile:
        """Raises `RunNotFoundError` where there is none."""
        try:
            found = (self._directory.path / RUN_FILE).stat()
        except OSError:
            return self._directory.read()
        if self._known is None or self._known[0] != (found.st_ino, found.st_mtime_ns):
            self._known = (found.st_ino, found.st_mtime_ns), self._directory.read()
        return self._known[1]


def delivers_itself(directory: RunDirectory, run: RunFile) -> bool:
    """Whether a living process of the job delivers the run, or waits to do so."""
    return run.is_delivered and directory.locks.has_living_supervisor


def _adopt_orphans() -> None:
    """Processes that a dead child leaves behind become ours, to be ended (Linux)."""
    import ctypes

    try:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    except (AttributeError, OSError):
        return
