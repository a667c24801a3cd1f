"""What the processes that deliver have to say: kept in the run, and told to the job while it lives.

Policy: a message of a delivery process is a line of `delivery/notices.jsonl`. A warning also goes
to the standard error of the job's primary, if that is a terminal or a pipe, without ever waiting
for a reader; what could not be told there is told by `finish_tracking`.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import orjson

from slime_logging.record.run import RunDirectory, now_s

NAME = "notices.jsonl"
MAX_READ_BYTES = 2**20


class NoticeHandler(logging.Handler):
    """Keeps what is logged in this process as notices of a run.

    Args:
        directory: the run's.
        pid: the job's primary, on this host; None where there is none to tell.
    """

    def __init__(self, directory: RunDirectory, pid: int | None) -> None:
        super().__init__(logging.WARNING)
        self._path = directory.delivery / NAME
        self._pid = pid

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, and tell it."""
        text = record.getMessage()
        is_told = self._pid is not None and _tell(self._pid, text)
        line = {"time_s": now_s(), "level": record.levelname, "text": text, "is_told": is_told}
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(self._path, flags, 0o600)
            try:
                os.write(fd, orjson.dumps(line) + b"\n")
            finally:
                os.close(fd)
        except OSError:
            return


def read_notices(directory: RunDirectory, *, since_s: float = 0.0) -> Iterator[tuple[str, bool]]:
    """The messages after a time (Unix seconds), and whether each was told to the job."""
    try:
        path = directory.delivery / NAME
        if path.is_symlink():
            return
        with path.open("rb") as file:
            lines = file.read(MAX_READ_BYTES).splitlines()
    except OSError:
        return
    for line in lines:
        try:
            notice = orjson.loads(line)
            if float(notice["time_s"]) >= since_s:
                yield str(notice["text"]), notice["is_told"] is True
        except (ValueError, KeyError, TypeError):  # a torn or foreign line
            continue


def _tell(pid: int, text: str) -> bool:
    """Write a line to a process's standard error; False where that is no place to write to."""
    path = Path(f"/proc/{pid}/fd/2")
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            return False  # its own place in a file is not known: the text would be written over
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    data = f"{text}\n".encode(errors="replace")
    try:
        return os.write(fd, data) == len(data)
    except OSError:
        return False
    finally:
        os.close(fd)
