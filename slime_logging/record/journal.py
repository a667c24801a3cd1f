"""A process's journal: an append-only file of its own that is the queue to every tracker.

Policy:

- `append` returns once the line is with the operating system: it survives `kill -9`. The delivery
  process of the host brings it to the disk (`fdatasync`) within about a second; only a power cut in
  between can take it.
- A file is opened once for writing, by the process that created it, and never again: no repair in
  place, no second writer, no forked child. Names are unique across hosts, pids, restarts and forks.
- A line is written by one `write`. A short write ends the journal: what follows it could not be
  told from its torn half. So does the loss of the file itself (deleted, its directory removed),
  which is noticed within a second.
- `append` may be interrupted anywhere by a signal handler that raises, or that appends itself: a
  number is never given twice.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from slime_logging.record.entries import MAX_LINE_BYTES

SUFFIX = ".jsonl"
GONE_CHECK_INTERVAL_S = 1.0
NUM_LOCK_TRIES = 100


class JournalBroken(OSError):
    """The journal cannot take lines any more: disk full, read-only, directory gone."""


def journal_name(role: str | None, rank: int | None = None) -> str:
    """A name that no other journal has: role, host and pid to be read by people, 64 random bits to
    be unique.
    """
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:32] or "host"
    label = re.sub(r"[^A-Za-z0-9_-]", "-", role or "main")[:32]
    rank_part = "" if rank is None else f"-r{rank}"
    return f"{label}{rank_part}-{host}-{os.getpid()}-{secrets.token_hex(8)}"


class Journal:
    """The writing end. Thread-safe; not usable in a forked child (`is_mine` tells).

    It holds one descriptor, and on it a lock that says that the writer lives.

    Args:
        directory: an existing directory.
        name: from `journal_name`.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.path = directory / (name + SUFFIX)
        self._fd = os.open(
            self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        _hold(self._fd)
        self._lock = threading.RLock()  # a signal handler may log while its thread is in `append`
        self._numbers = itertools.count()
        self._num_given = 0
        self._pid = os.getpid()
        self._is_over = False
        self._look_at_s = time.monotonic() + GONE_CHECK_INTERVAL_S

    @property
    def is_mine(self) -> bool:
        """Whether this process created the journal: False in a forked child."""
        return self._pid == os.getpid()

    @property
    def num_records(self) -> int:
        """How many sequence numbers were given: one for each line that was acknowledged."""
        return self._num_given

    def append(self, line: Callable[[int], bytes]) -> int:
        """Append one line, made by `line(seq)`, and return its sequence number.

        Raises:
            JournalBroken: it could not be written whole; the journal takes nothing more.
            ValueError: the line is longer than `MAX_LINE_BYTES`; nothing was written.
        """
        with self._lock:
            if self._is_over:
                raise JournalBroken(f"journal {self.path} is closed")
            seq = next(self._numbers)  # one step, which no signal can split
            if seq >= self._num_given:
                self._num_given = seq + 1
            data = line(seq)
            if len(data) > MAX_LINE_BYTES:
                raise ValueError(f"a record of {len(data)} bytes; the most is {MAX_LINE_BYTES}")
            if time.monotonic() >= self._look_at_s:
                self._raise_if_gone()
            try:
                num_written = os.write(self._fd, data)
            except OSError as error:
                # Without a number it is not the system's: a signal handler of the job raised it.
                if error.errno is None:
                    raise
                raise self._broken(error.strerror or str(error)) from error
            if num_written != len(data):
                raise self._broken(f"only {num_written} of {len(data)} bytes were written")
        return seq

    def close(self) -> None:
        """Close the file, and so tell that its writer is done. May be called twice."""
        with self._lock:
            if self.is_mine:
                self._is_over = True
                self.abandon()

    def abandon(self) -> None:
        """Give up the descriptor and touch nothing of the file. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _raise_if_gone(self) -> None:
        """Look once a second whether the file was deleted: lines would be taken all the same."""
        self._look_at_s = time.monotonic() + GONE_CHECK_INTERVAL_S
        if os.fstat(self._fd).st_nlink == 0:
            raise self._broken("the file was deleted, or its directory")

    def _broken(self, reason: str) -> JournalBroken:
        self._is_over = True
        return JournalBroken(reason)


def _hold(fd: int) -> None:
    """Lock the file as its writer; somebody who asks whether it is locked holds it for a moment."""
    for _ in range(NUM_LOCK_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:  # a file system without locks: nobody can tell who lives there
            return
        else:
            return


def is_written(path: Path) -> bool:
    """Whether the writer of a journal lives, as far as its lock tells; False for a file that is
    not there.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False
