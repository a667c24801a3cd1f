"""Every run below some directories, delivered live by this process and its children: `slime-logging
sync --follow`.

Policy: one supervisor a run, the same program that a job starts for itself, which inherits the lock
of the run's delivery and dies with this process. A run that its job or another `sync` delivers is
left alone and looked at again. A run where nothing is new costs a few looks a minute and no
process.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from slime_logging.backends.place import place_of
from slime_logging.delivery.cursor import read_cursors
from slime_logging.delivery.spec import DeliverySpec
from slime_logging.delivery.start import start_follower
from slime_logging.delivery.supervisor import TERM_GRACE_S, delivers_itself
from slime_logging.errors import BackendError, RunConflictError, TrackingError
from slime_logging.record.run import RUN_FILE, RunDirectory

MAX_AT_ONCE = 16
"""Runs that are delivered at the same time; the others wait for their turn."""

MAX_DEPTH = 6
FIRST_PAUSE_S = 1.0
LONGEST_LOOK_S = 8.0
LONGEST_RETRY_S = 120.0

Plan = Callable[[RunDirectory], DeliverySpec]
"""What to deliver of a run; raises `TrackingError` where that must not be."""


@dataclass(kw_only=True)
class Followed:
    """One run. `rows` is by tracker what its client was given; `num_bytes_left` what the slowest
    one is still to be given. `seen` is how its journals were when all of them were delivered,
    `tried` how they were when a supervisor ended last.
    """

    directory: RunDirectory
    state: str = "waiting"
    reason: str = ""
    rows: dict[str, int] = field(default_factory=dict)
    num_bytes_left: int = 0
    spec: DeliverySpec | None = None
    process: subprocess.Popen[bytes] | None = None
    seen: tuple[object, ...] | None = None
    tried: tuple[object, ...] | None = None
    due_s: float = 0.0
    look_s: float = FIRST_PAUSE_S
    retry_s: float = FIRST_PAUSE_S


class Follower:
    """The runs that this process delivers.

    Args:
        plan: what to deliver of a run.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._runs: dict[Path, Followed] = {}

    @property
    def runs(self) -> list[Followed]:
        """How each run stood at the last look."""
        return list(self._runs.values())

    def look(self, directories: Iterable[RunDirectory]) -> None:
        """Take up what is new, note what ended.

        Args:
            directories: the runs that there are now.
        """
        now_s = time.monotonic()
        for directory in directories:
            self._runs.setdefault(directory.path, Followed(directory=directory))
        self._forget_what_is_gone()
        num_running = sum(run.process is not None for run in self._runs.values())
        for run in self._runs.values():
            if run.process is not None:
                _note(run, now_s)
            elif now_s >= run.due_s and num_running < MAX_AT_ONCE:
                self._begin(run, now_s)
                num_running += run.process is not None

    def end(self) -> None:
        """Have every client hand over what is there and close, in bounded time."""
        living = [run for run in self._runs.values() if run.process is not None]
        for run in living:
            assert run.process is not None
            run.process.terminate()
        deadline_s = time.monotonic() + TERM_GRACE_S + 2.0
        for run in living:
            assert run.process is not None
            with suppress(subprocess.TimeoutExpired):
                run.process.wait(max(0.0, deadline_s - time.monotonic()))
            _note(run, time.monotonic())

    def kill(self) -> None:
        """End all processes at once; another `sync` goes on where they were."""
        for run in self._runs.values():
            _kill(run)

    def _forget_what_is_gone(self) -> None:
        for path, run in list(self._runs.items()):
            if not os.path.exists(path / RUN_FILE):  # noqa: PTH110 - Path's own raises
                _kill(run)
                del self._runs[path]

    def _begin(self, run: Followed, now_s: float) -> None:
        """Start to deliver a run, if there is something to deliver and nobody else does it."""
        try:
            seen = _signature(run.directory)
            if seen == run.seen:
                run.look_s = min(2 * run.look_s, LONGEST_LOOK_S)
                run.due_s = now_s + run.look_s
                return
            run.look_s, run.due_s = FIRST_PAUSE_S, now_s + FIRST_PAUSE_S
            file = run.directory.read()
            if file.outpost_of is not None:
                run.state, run.reason, run.seen = "another run's rows", "merge brings them", seen
                return
            if delivers_itself(run.directory, file):
                run.state, run.reason = "left to its job", ""
                return
            run.spec = self._plan(run.directory)
            if not run.spec.trackers:
                run.state, run.reason, run.seen = "no tracker", "name one with --to", seen
                return
            is_closed = _measure(run)
            is_over = not run.directory.locks.has_living_primary
            if is_closed and is_over and run.num_bytes_left <= 0:
                run.state, run.reason, run.seen = "complete", "", seen
                return
            _start(run, run.spec)
            run.state, run.reason = "delivering", ""
        except RunConflictError:
            run.state, run.reason = "left to another sync", ""
        except (TrackingError, BackendError, OSError) as error:
            run.state, run.reason = "refused", str(error)
            _wait_longer(run, now_s)


def runs_below(place: Path) -> Iterator[RunDirectory]:
    """Every run at or below a directory; links are not followed."""
    for folder, folders, files in os.walk(place):
        if RUN_FILE in files:
            folders.clear()
            yield RunDirectory(Path(folder))
        elif len(Path(folder).relative_to(place).parts) >= MAX_DEPTH:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))


def _start(run: Followed, spec: DeliverySpec) -> None:
    locks = run.directory.locks
    locks.claim_delivery()

    def start(fd: int) -> None:
        run.process = start_follower(spec, fd)

    locks.give(start)


def _kill(run: Followed) -> None:
    if run.process is not None:
        run.process.kill()
        run.process.wait()


def _note(run: Followed, now_s: float) -> None:
    """How far a run is that is delivered, and whether its supervisor has ended."""
    assert run.process is not None
    assert run.spec is not None
    has_ended = run.process.poll() is not None
    try:
        is_closed, seen = _measure(run), _signature(run.directory)
    except (TrackingError, OSError) as error:  # a copy that is being written, a disk far away
        run.state, run.reason, is_closed, seen = "unreadable", str(error), False, ()
    if not has_ended:
        return
    run.process, run.due_s = None, now_s + FIRST_PAUSE_S
    # What is left may be rows that came at the last moment, or the torn end of a killed process's
    # journal: another supervisor tells.
    is_complete = is_closed and (run.num_bytes_left <= 0 or seen == run.tried)
    run.tried = seen
    if is_complete:
        run.state, run.reason, run.seen, run.retry_s = "complete", "", seen, FIRST_PAUSE_S
    elif not is_closed and seen[:1] == (run.spec.start,):
        _wait_longer(run, now_s)


def _wait_longer(run: Followed, now_s: float) -> None:
    run.due_s = now_s + run.retry_s
    run.retry_s = min(2 * run.retry_s, LONGEST_RETRY_S)


def _measure(run: Followed) -> bool:
    """Read how far each tracker is; whether all of them were closed."""
    assert run.spec is not None
    directory, spec = run.directory, run.spec
    options = {**spec.options, "run_name": directory.read().name}
    last = {cursor.destination: cursor for cursor in read_cursors(directory)}
    sizes = _sizes(directory)
    run.num_bytes_left, run.reason, is_closed = 0, "", True
    for tracker in spec.trackers:
        cursor = last.get(place_of(tracker, options, os.environ, directory.path).key)
        if cursor is None:
            run.num_bytes_left, is_closed = sum(sizes.values()), False
            continue
        places = {name: cursor.places.get(name) for name in sizes}
        left = sum(
            size - (0 if place is None else place.handed)
            for size, place in zip(sizes.values(), places.values(), strict=True)
        )
        run.rows[tracker] = sum(place.num_handed for place in cursor.places.values())
        run.num_bytes_left = max(run.num_bytes_left, left)
        is_closed &= cursor.is_closed
        if run.process is not None and not run.reason:
            run.state = "delivering" if cursor.state in ("opening", "closed") else cursor.state
            run.reason = f"{tracker}: {cursor.reason}" if cursor.reason else ""
    return is_closed


def _sizes(directory: RunDirectory) -> dict[str, int]:
    sizes = {}
    for path in directory.journal_paths():
        with suppress(OSError):
            sizes[path.stem] = path.lstat().st_size
    return sizes


def _signature(directory: RunDirectory) -> tuple[object, ...]:
    """What changes when there is something to deliver."""
    return (directory.read().num_starts, *sorted(_sizes(directory).items()))
