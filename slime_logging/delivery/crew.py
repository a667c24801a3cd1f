"""The children of a supervisor: one process a tracker, started again when it dies."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import IO, Any

import orjson

from slime_logging.backends.descendants import kill_children
from slime_logging.delivery.child import CLOSED_CODE, LEFT_CODE
from slime_logging.delivery.spec import DeliverySpec
from slime_logging.delivery.start import start_tracker
from slime_logging.record.run import RunDirectory

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
CLOSE_SLACK_S = 1.0


@dataclass
class _Member:
    """A tracker's process, or what is left of it. `pause_s` grows with each early death."""

    tracker: str
    process: subprocess.Popen[bytes] | None = None
    errors: IO[bytes] | None = None
    started_s: float = 0.0
    due_s: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    is_done: bool = False


class Crew:
    """The processes that deliver to the trackers of a spec.

    Args:
        directory: the run's.
        spec: what is delivered.
        told: what each child is told besides.
    """

    def __init__(self, directory: RunDirectory, spec: DeliverySpec, **told: Any) -> None:
        self._directory = directory
        self._spec = spec
        self._told = told
        self._members = [_Member(tracker) for tracker in spec.trackers]
        self._end: tuple[int | None, float] | None = None

    def begin(self) -> None:
        """Start all children that are not running."""
        self._end = None
        for member in self._members:
            member.is_done, member.due_s, member.pause_s = False, 0.0, FIRST_PAUSE_S
        self.look_after(time.monotonic())

    def end(self, exit_code: int | None, deadline_s: float) -> None:
        """Have them deliver what is there and close, until a time of `time.monotonic`.

        Args:
            exit_code: the job's; None where the run is not over.
            deadline_s: when they must be done.
        """
        self._end = (exit_code, deadline_s)
        for member in self._members:
            member.due_s = 0.0
            if member.process is not None:
                self._tell_end(member)
        self.look_after(time.monotonic())

    def is_working(self) -> bool:
        """Whether any child has still something to do."""
        return any(not member.is_done for member in self._members)

    def look_after(self, now_s: float) -> None:
        """Take note of those that ended, and start them again when that is due."""
        for member in self._members:
            if member.process is not None and member.process.poll() is not None:
                self._bury(member, now_s)
            if member.process is None and not member.is_done and now_s >= member.due_s:
                self._start(member, now_s)

    def kill(self) -> None:
        """End all of them, and what they started."""
        for member in self._members:
            member.is_done = True
            if member.process is not None:
                member.process.kill()
                member.process.wait()
                self._forget(member)
        kill_children()

    def _start(self, member: _Member, now_s: float) -> None:
        member.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_forget`
        member.started_s = now_s
        try:
            member.process = start_tracker(
                "slime_logging.delivery.child", {}, member.errors.fileno()
            )
            self._say(member, _first_line(self._spec, member.tracker) | self._told)
        except OSError:
            self._pause(member, now_s)
            return
        if self._end is not None:
            self._tell_end(member)

    def _tell_end(self, member: _Member) -> None:
        assert self._end is not None
        exit_code, deadline_s = self._end
        timeout_s = max(0.0, deadline_s - time.monotonic() - CLOSE_SLACK_S)
        self._say(member, {"exit_code": exit_code, "timeout_s": timeout_s})

    def _say(self, member: _Member, line: dict[str, Any]) -> None:
        assert member.process is not None
        assert member.process.stdin is not None
        with contextlib.suppress(OSError):  # it is dead: the next look will see that
            member.process.stdin.write(orjson.dumps(line, default=str) + b"\n")
            member.process.stdin.flush()

    def _bury(self, member: _Member, now_s: float) -> None:
        assert member.process is not None
        code = member.process.returncode
        is_over = self._end is not None and code in (CLOSED_CODE, LEFT_CODE)
        self._forget(member)
        others = (each.process for each in self._members)
        kill_children(except_for=frozenset(each.pid for each in others if each is not None))
        if is_over:
            member.is_done = True
        else:
            self._pause(member, now_s)

    def _pause(self, member: _Member, now_s: float) -> None:
        if now_s - member.started_s > 2 * LONGEST_PAUSE_S:
            member.pause_s = FIRST_PAUSE_S
        member.due_s = now_s + member.pause_s
        longest_s = FIRST_PAUSE_S if self._end is not None else LONGEST_PAUSE_S
        member.pause_s = min(2 * member.pause_s, longest_s)

    def _forget(self, member: _Member) -> None:
        for file in (member.errors, member.process.stdin if member.process else None):
            if file is not None:
                with contextlib.suppress(OSError):
                    file.close()
        member.process, member.errors = None, None


def _first_line(spec: DeliverySpec, tracker: str) -> dict[str, Any]:
    """What a child is told of the spec: its own tracker's variables, and nobody else's."""
    return {
        "tracker": tracker,
        "directory": spec.directory,
        "label": spec.label,
        "only": spec.only,
        "start": spec.start,
        "pid": spec.pid,
        "is_shared": spec.is_shared,
        "options": spec.options,
        "environment": spec.environment.get(tracker, {}),
    }
