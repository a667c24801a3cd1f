"""Rows that a tracker refuses for good, noted with the reason beside its cursor; they stay in the
journals.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from slime_logging.backends.base import Backend
from slime_logging.delivery.assignment import Assignment
from slime_logging.errors import WillNeverWork
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Row

logger = logging.getLogger("slime_logging")

SUFFIX = ".aside.jsonl"
NUM_REFUSALS_IN_A_ROW = 20
"""When so many rows in a row are refused and none is taken, it is the tracker that refuses, not the
rows.
"""

MAX_READ_BYTES = 16 * 2**20
"""By those who show what was set aside: some 150,000 rows."""


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """The rows that one destination refused for one reason: how many, and the first of them."""

    destination: str
    reason: str
    num_rows: int
    first_row_id: str


class RefusedRows:
    """The note of one delivery, made when there is something to note.

    Args:
        assignment: what is delivered.
        safe_text: makes a foreign exception's text fit to be written down.
    """

    def __init__(self, assignment: Assignment, safe_text: Callable[[BaseException], str]) -> None:
        name = f"{assignment.where}@{assignment.writer.label}{SUFFIX}"
        self._path: Path = assignment.directory.delivery / name
        self._tracker = assignment.tracker
        self._safe_text = safe_text
        self._has_warned = False

    def write_others(self, backend: Backend, rows: Sequence[Row]) -> Counter[str]:
        """Hand rows over one by one, and note those that the tracker refuses; returns how many, by
        journal.

        Raises:
            WillNeverWork: it refuses so many in a row that it is the tracker that is at fault.
            TryAgain: passing trouble.
        """
        refused: list[tuple[Row, str]] = []
        num_in_a_row = 0
        for row in rows:
            try:
                backend.write([row])
                num_in_a_row = 0
            except WillNeverWork as error:
                refused.append((row, self._safe_text(error)))
                num_in_a_row += 1
                if num_in_a_row >= NUM_REFUSALS_IN_A_ROW:
                    raise
        for row, reason in refused:
            self._note(row, reason)
        return Counter(row.journal for row, _ in refused)

    def _note(self, row: Row, reason: str) -> None:
        """Note a row; the first one is told."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "slime_logging: %s refuses a row for good (%s); it stays in the journal",
                self._tracker,
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
