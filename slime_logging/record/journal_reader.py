"""The reading end of a journal: whole lines, while it may still grow."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from slime_logging.record.entries import MAX_LINE_BYTES, ROW_PREFIX

READ_BYTES = 1 << 20
MAX_DEPTH = 64
"""Levels of nesting in a line that is read; what this package writes has 40 at most
(`values.serialize`).
"""


class JournalReader:
    """The reading end of a journal: complete lines from a byte offset on, while it may still grow.

    Torn or damaged lines are never returned; `num_damaged` counts the complete lines that do not
    parse. Memory is bounded by `MAX_LINE_BYTES` whatever the file holds. The file is opened when it
    is read, and again after `close`.

    Raises:
        OSError: it cannot be opened, or is not a regular file; from the constructor on.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.num_damaged = 0
        self._fd = -1
        self._is_skipping = False
        self._open()

    @property
    def is_open(self) -> bool:
        """Whether it holds a descriptor now."""
        return self._fd >= 0

    def num_bytes_left(self) -> int:
        """How many bytes lie behind the offset now, a torn tail included; 0 where the file is
        gone.
        """
        try:
            found = os.fstat(self._fd) if self.is_open else self.path.stat()
        except OSError:
            return 0
        return max(0, found.st_size - self.offset)

    def read(
        self, max_bytes: int = READ_BYTES, *, has_rows: bool = True
    ) -> list[tuple[int, dict[str, Any]]]:
        """The next complete records, each with the offset behind it; empty when there is none yet.

        Args:
            max_bytes: about how many bytes to take at once; one line longer than that is still
            taken whole.
            has_rows: False passes over the metrics rows without parsing them.
        """
        return self.parsed(self.take(max_bytes), has_rows=has_rows)

    def take(self, max_bytes: int = READ_BYTES) -> bytes:
        """The same as they stand: the next complete lines, of which nothing is known."""
        self._open()
        data = os.pread(self._fd, max_bytes, self.offset)
        while data and b"\n" not in data and len(data) < MAX_LINE_BYTES:
            more = os.pread(
                self._fd, max(max_bytes, len(data)), self.offset + len(data)
            )  # doubling: linear in the line
            if not more:
                return b""
            data += more
        cut = data.rfind(b"\n") + 1
        is_overlong = bool(data) and not cut
        self.offset += len(data) if is_overlong else cut
        start = 0
        if cut and self._is_skipping:
            start = data.index(b"\n") + 1
            self.num_damaged += 1
        self._is_skipping = is_overlong or (self._is_skipping and not cut)
        return data[start:cut]

    def parsed(self, lines: bytes, *, has_rows: bool = True) -> list[tuple[int, dict[str, Any]]]:
        """The records in the lines that were taken last, each with the offset behind it."""
        end = self.offset - len(lines)
        ends, wanted = [], []
        for line in lines.split(b"\n")[:-1]:
            end += len(line) + 1
            if has_rows or not line.startswith(ROW_PREFIX):
                ends.append(end)
                wanted.append(line)
        records = []
        for end, line, record in zip(ends, wanted, _parsed(wanted), strict=True):
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

    def _open(self) -> None:
        if self.is_open:
            return
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(f"{self.path} is not a regular file")
        self._fd = fd


def _parsed(lines: Sequence[bytes]) -> Sequence[object]:
    """Each line as JSON, None where it is not. All at once takes half of the time."""
    with suppress(orjson.JSONDecodeError):
        if len(lines) < 2:
            return [orjson.loads(line) for line in lines]
        found: list[object] = orjson.loads(b"[" + b",".join(lines) + b"]")
        if len(found) == len(lines):
            return found
    return [_parsed_alone(line) for line in lines]


def _parsed_alone(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


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
