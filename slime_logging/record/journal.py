"""A process's journal: an append-only file of its own that is the queue to every tracker.

Policy:

- `append` returns once the line is with the operating system: it survives `kill -9`. A background
  thread brings it to the disk (`fdatasync`) within about a second; only a power cut in between can
  take it.
- A file is opened once for writing, by the process that created it, and never again: no repair in
  place, no second writer, no forked child. Names are unique across hosts, pids, restarts and forks.
- A line is written by one `write`. A short write ends the journal: what follows it could not be
  told from its torn half. So does the loss of the file itself (deleted, its directory removed),
  which is noticed within a second.
- `append` may be interrupted anywhere by a signal handler that raises, or that appends itself: a
  number is never given twice.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import socket
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from slime_logging.record.entries import MAX_LINE_BYTES, ROW_PREFIX

SUFFIX = ".jsonl"
SYNC_INTERVAL_S = 0.5
READ_BYTES = 1 << 20
MAX_DEPTH = 64
"""Levels of nesting in a line that is read; what this package writes has 40 at most
(`config.serialize`).
"""


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

    Args:
        directory: an existing directory.
        name: from `journal_name`.
        on_broken: told once why the journal takes nothing more; called in whichever thread notices.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(
        self, directory: Path, name: str, on_broken: Callable[[str], None] = lambda _: None
    ) -> None:
        self.name = name
        self.path = directory / (name + SUFFIX)
        self._fd = os.open(
            self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        self._on_broken = on_broken
        self._lock = threading.RLock()  # a signal handler may log while its thread is in `append`
        self._numbers = itertools.count()
        self._num_given = 0
        self._pid = os.getpid()
        self._is_broken = False
        self._is_dirty = True
        self._is_closed = threading.Event()
        self._syncer = threading.Thread(
            target=self._sync_often, name="slime-logging-fsync", daemon=True
        )
        self._syncer.start()

    @property
    def is_mine(self) -> bool:
        """Whether this process created the journal: False in a forked child."""
        return self._pid == os.getpid()

    @property
    def num_records(self) -> int:
        """How many sequence numbers were given: as many as lines were acknowledged, unless one was
        interrupted.
        """
        return self._num_given

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed.is_set()

    def append(self, line: Callable[[int], bytes]) -> int:
        """Append one line, made by `line(seq)`, and return its sequence number.

        Raises:
            JournalBroken: it could not be written whole; the journal takes nothing more.
            ValueError: the line is longer than `MAX_LINE_BYTES`; nothing was written.
        """
        with self._lock:
            if self._is_broken or self._is_closed.is_set():
                raise JournalBroken(f"journal {self.path} is closed")
            seq = next(self._numbers)  # one step, which no signal can split
            self._num_given = max(self._num_given, seq + 1)
            data = line(seq)
            if len(data) > MAX_LINE_BYTES:
                raise ValueError(f"a record of {len(data)} bytes; the most is {MAX_LINE_BYTES}")
            try:
                num_written = os.write(self._fd, data)
            except OSError as error:
                if (
                    error.errno is None
                ):  # not the system's: a signal handler of the job raised it, a TimeoutError say
                    raise
                raise self._broken(error.strerror or str(error)) from error
            if num_written != len(data):
                raise self._broken(f"only {num_written} of {len(data)} bytes were written")
        self._is_dirty = True
        return seq

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted under us: lines would still be taken, but nobody could find
        them.
        """
        try:
            mine, found = os.fstat(self._fd), self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # not readable any more, which is not gone
            return False
        return (mine.st_dev, mine.st_ino) != (found.st_dev, found.st_ino)

    def close(self) -> None:
        """Bring everything to the disk and close the file. May be called twice."""
        with self._lock:
            if self._is_closed.is_set() or not self.is_mine:
                return
            self._is_closed.set()
        self._syncer.join(timeout=10)

    def abandon(self) -> None:
        """In a forked child: give up the inherited descriptor, and touch nothing of the parent's
        file. May be called twice.
        """
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _broken(self, reason: str) -> JournalBroken:
        if not self._is_broken:
            self._is_broken = True
            self._on_broken(reason)
        return JournalBroken(reason)

    def _sync_often(self) -> None:
        while not self._is_closed.wait(SYNC_INTERVAL_S):
            self._sync()
            if not self._is_broken and self.is_gone:
                self._broken("the file was deleted, or its directory")
        self._sync()
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _sync(self) -> None:
        if not self._is_dirty:
            return
        self._is_dirty = False
        try:
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
        except OSError as error:
            self._broken(error.strerror or str(error))


class JournalReader:
    """The reading end of a journal: complete lines from a byte offset on, while it may still grow.

    Torn or damaged lines are never returned; `num_damaged` counts the complete lines that do not
    parse. Memory is bounded by `MAX_LINE_BYTES` whatever the file holds. The file stays open, so
    that one deleted while it is read is still read to its end.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.num_damaged = 0
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        self._is_skipping = False
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            self.close()
            raise OSError(f"{path} is not a regular file")

    def num_bytes_left(self) -> int:
        """How many bytes lie behind the offset now, a torn tail included."""
        return max(0, os.fstat(self._fd).st_size - self.offset)

    def read(
        self, max_bytes: int = READ_BYTES, *, has_rows: bool = True
    ) -> list[tuple[int, dict[str, Any]]]:
        """The next complete records, each with the offset behind it; empty when there is none yet.

        Args:
            max_bytes: about how many bytes to take at once; one line longer than that is still
            taken whole.
            has_rows: False passes over the metrics rows without parsing them.
        """
        records = []
        for end, line in self._lines(max_bytes):
            if not has_rows and line.startswith(ROW_PREFIX):
                continue
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                record = None
            if isinstance(record, dict) and not _is_too_deep(line, record):
                records.append((end, record))
            else:
                self.num_damaged += 1
        return records

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _lines(self, max_bytes: int) -> Iterator[tuple[int, bytes]]:
        data = os.pread(self._fd, max_bytes, self.offset)
        while data and b"\n" not in data and len(data) < MAX_LINE_BYTES:
            more = os.pread(
                self._fd, max(max_bytes, len(data)), self.offset + len(data)
            )  # doubling: linear in the line
            if not more:
                return
            data += more
        cut = data.rfind(b"\n") + 1
        if data and not cut:
            self._skip_overlong(len(data))
            return
        start = 0
        while start < cut:
            end = data.index(b"\n", start) + 1
            self.offset += end - start
            if self._is_skipping:
                self._is_skipping = False
                self.num_damaged += 1
            else:
                yield self.offset, data[start:end]
            start = end

    def _skip_overlong(self, num_bytes: int) -> None:
        self.offset += num_bytes
        self._is_skipping = True


def _is_too_deep(line: bytes, record: object) -> bool:
    """Whether a foreign line is nested deeper than any of ours, which would end the readers'
    recursion.
    """
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    level: list[Any] = [record]
    for _ in range(MAX_DEPTH):
        level = [item for each in level if isinstance(each, (dict, list)) for item in _items(each)]
        if not level:
            return False
    return True


def _items(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
