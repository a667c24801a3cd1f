"""Rows that a tracker refuses for good, noted with the reason beside its cursor; they stay in the journals."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import orjson

from slime_logging.backends.base import Row
from slime_logging.record.run import RunDirectory

logger = logging.getLogger("slime_logging")


class AsideFile:
    """The note of one delivery, made when there is something to note.

    Args:
        directory: the run's.
        destination: where the rows were to go (see `backends.destination`).
        label: the delivery's.
    """

    def __init__(self, directory: RunDirectory, destination: str, label: str) -> None:
        self._path: Path = directory.delivery / f"{destination}@{label}.aside.jsonl"
        self._has_warned = False

    def add(self, row: Row, reason: str, tracker: str) -> None:
        """Note a row; the first one is told."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning("slime_logging: %s refuses a row for good (%s); it stays in the journal", tracker, reason)
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "ab") as file:
                file.write(orjson.dumps({"row_id": row.row_id, "reason": reason}) + b"\n")
        except OSError:
            logger.warning("slime_logging: could not note that row %s was set aside", row.row_id)
