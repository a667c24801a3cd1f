"""Rows that a tracker refuses for good, noted with the reason beside its cursor; they stay in the
journals.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Row

logger = logging.getLogger("slime_logging")

SUFFIX = ".aside.jsonl"
MAX_READ_BYTES = 16 * 2**20
"""By those who show what was set aside: some 150,000 rows."""


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """The rows that one destination refused for one reason: how many, and the first of them."""

    destination: str
    reason: str
    num_rows: int
    first_row_id: str


class AsideFile:
    """The note of one delivery, made when there is something to note.

    Args:
        directory: the run's.
        destination: where the rows were to go (see `backends.destination`).
        label: the delivery's.
    """

    def __init__(self, directory: RunDirectory, destination: str, label: str) -> None:
        self._path: Path = directory.delivery / f"{destination}@{label}{SUFFIX}"
        self._has_warned = False

    def add(self, row: Row, reason: str, tracker: str) -> None:
        """Note a row; the first one is told."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "slime_logging: %s refuses a row for good (%s); it stays in the journal",
                tracker,
                reason,
            )
        try:
            fd = os.open(
                self._path,
                os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW,
                0o600,
            )
            with os.fdopen(fd, "ab") as file:
                file.write(orjson.dumps({"row_id": row.row_id, "reason": reason}) + b"\n")
        except OSError:
            logger.warning("slime_logging: could not note that row %s was set aside", row.row_id)


def read_set_aside(directory: RunDirectory) -> list[SetAside]:
    """What was set aside, and why, most rows first; a row that two deliveries set aside counts
    once. `MAX_READ_BYTES` are read at most.
    """
    rows: dict[tuple[str, str], dict[str, None]] = {}
    num_bytes = 0
    for path in sorted(directory.delivery.glob(f"*@*{SUFFIX}")):
        try:
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                data = file.read(MAX_READ_BYTES - num_bytes)
        except OSError:
            continue
        num_bytes += len(data)
        for row_id, reason in _notes(data):
            rows.setdefault((path.name.partition("@")[0], reason), {})[row_id] = None
    found = [
        SetAside(
            destination=destination, reason=reason, num_rows=len(ids), first_row_id=next(iter(ids))
        )
        for (destination, reason), ids in rows.items()
    ]
    return sorted(found, key=lambda item: -item.num_rows)


def _notes(data: bytes) -> Iterator[tuple[str, str]]:
    for line in data.splitlines():
        try:
            noted = orjson.loads(line)
            yield str(noted["row_id"]), str(noted["reason"])
        except (ValueError, KeyError, TypeError):  # a torn or damaged line
            continue
