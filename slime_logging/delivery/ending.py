"""How a job ended, told truly.

    finished    the job said 0, or ended by itself without an error
    failed      the job said another code, or ended by itself with one
    preempted   SIGTERM
    crashed     the primary vanished: `kill -9`, out of memory, `os._exit`, a signal

Policy: what the primary said counts first, then the status that it left behind (`exit_status`),
then what the system says of its process, where it says anything (`PIDFD_GET_INFO`, Linux 6.15, or
/proc while nobody has collected it).
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import orjson

from slime_logging.record import exit_status
from slime_logging.record.locks import PRIMARY_LOCK
from slime_logging.record.reading import read_opening, read_records
from slime_logging.record.run import RunDirectory, write_whole

PREEMPTED_CODE = 128 + signal.SIGTERM
UNKNOWN_CODE = 255
"""The exit code of a process that vanished, where nobody says which signal it was."""

_GET_INFO = 0xC040FF0B
_HAS_EXIT = 1 << 3
_ASK_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How one start of the run ended; `exit_code` is as a shell would report it."""

    start: int
    exit_code: int
    state: str

    @classmethod
    def of_code(cls, start: int, exit_code: int) -> Ending:
        """The ending of a job that said its exit code; one below 0 is a signal's number."""
        code = exit_code if exit_code >= 0 else 128 - exit_code
        state = {0: "finished", PREEMPTED_CODE: "preempted"}.get(code, "failed")
        return cls(start=start, exit_code=code, state=state)


class Process:
    """Another process of this host, held so that its end can be waited for and asked about.

    Args:
        pid: the process's number.
        fd: a descriptor of `os.pidfd_open`; -1 where the system has none.
    """

    def __init__(self, pid: int, fd: int) -> None:
        self._pid = pid
        self._fd = fd

    def has_ended(self, timeout_s: float = 0.0) -> bool:
        """Whether it ended, after waiting for that at most so long; True where nobody can tell."""
        if self._fd < 0:
            return True
        return bool(select.select([self._fd], [], [], timeout_s)[0])

    def wait_status(self) -> int | None:
        """Its status as `os.waitpid` would give it; None where the system does not say."""
        deadline_s = time.monotonic() + _ASK_S
        while self._fd >= 0 and time.monotonic() < deadline_s:
            status = self._collected_status()
            if status is None:
                status = self._uncollected_status()
            if status is not None:
                return status
            time.sleep(0.01)
        return None

    def _collected_status(self) -> int | None:
        info = bytearray(_HAS_EXIT.to_bytes(8, "little") + bytes(56))
        try:
            fcntl.ioctl(self._fd, _GET_INFO, info)
        except OSError:
            return None
        if not int.from_bytes(info[:8], "little") & _HAS_EXIT:
            return None
        return int.from_bytes(info[60:64], "little", signed=True)

    def _uncollected_status(self) -> int | None:
        try:
            fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            return None
        return int(fields[-1]) if fields and fields[0] in ("Z", "X") else None


def find_ending(
    directory: RunDirectory, start: int, process: Process | None, *, is_terminated: bool
) -> Ending:
    """How the primary of this start ended; call it when its lock is free.

    Args:
        directory: the run's.
        start: which start of the run.
        process: the primary's, where it was on this host.
        is_terminated: whether this process was asked to end by SIGTERM, as the job's group is.
    """
    has_said, code = _said(directory, start)
    if code is not None:
        return Ending.of_code(start, code)
    if process is not None and has_said:
        process.has_ended(_ASK_S)  # the status is left behind a moment later than the lock
    code = exit_status.read(directory.path / PRIMARY_LOCK)
    if code is not None:
        return Ending.of_code(start, code)
    status = process.wait_status() if process is not None and process.has_ended(_ASK_S) else None
    if status is not None and os.WIFSIGNALED(status):
        code = 128 + os.WTERMSIG(status)
    elif status is not None:
        code = os.WEXITSTATUS(status) or UNKNOWN_CODE
    elif is_terminated:
        code = PREEMPTED_CODE
    elif has_said:
        return Ending.of_code(start, 0)
    if code == PREEMPTED_CODE:
        return Ending.of_code(start, code)
    return Ending(start=start, exit_code=UNKNOWN_CODE if code is None else code, state="crashed")


def record_ending(directory: RunDirectory, ending: Ending) -> None:
    """Keep it beside the cursors, for those who look at the run."""
    write_whole(_path(directory), orjson.dumps(asdict(ending)))


def read_ending(directory: RunDirectory, start: int) -> Ending | None:
    """How this start of the run ended; None where nobody recorded it."""
    try:
        path = _path(directory)
        if path.is_symlink() or path.stat().st_size > 4096:
            return None
        ending = msgspec.json.decode(path.read_bytes(), type=Ending)
    except (OSError, msgspec.MsgspecError):
        return None
    return ending if ending.start == start else None


def _path(directory: RunDirectory) -> Path:
    return directory.delivery / "ending.json"


def _said(directory: RunDirectory, start: int) -> tuple[bool, int | None]:
    """Whether the primary of this start ended its journal, and the exit code that it gave."""
    has_said, code = False, None
    for path in directory.journal_paths():
        opening = read_opening(path)
        if opening is None or not opening.is_primary or opening.start != start:
            continue
        for _, _, record in read_records(path, has_rows=False):
            if record.get("kind") == "finish":
                has_said = True
                code = record["exit_code"] if type(record.get("exit_code")) is int else code
    return has_said, code
