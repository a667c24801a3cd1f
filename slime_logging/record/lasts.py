"""The last values of metrics, and how a run ended, from the ends of its journals: what it costs
does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from slime_logging.record.entries import ROW_PREFIX
from slime_logging.record.reading import read_opening
from slime_logging.record.run import RunDirectory

TAIL_BYTES = 1 << 16
MAX_TAIL_BYTES = 1 << 23
"""How far back a metric is looked for: one that was logged before that many bytes of a journal is
not found.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class LastValue:
    """The value of a metric that was logged last, at which step, at which Unix time."""

    name: str
    value: int | float
    step: int | float
    time_s: float


def last_value(directory: RunDirectory, choose: Callable[[str], int | None]) -> LastValue | None:
    """The last value of the metric that is wanted most.

    Args:
        directory: the run's.
        choose: a metric's name -> how much it is wanted, 0 the most; None where it is not.
    """
    best: dict[int, LastValue] = {}
    for path in directory.journal_paths():
        found: dict[int, LastValue] = {}
        for record in _from_the_end(path):
            for value in _values(record):
                if (rank := choose(value.name)) is not None:
                    found.setdefault(rank, value)
            if 0 in found:
                break
        for rank, value in found.items():
            if rank not in best or value.time_s > best[rank].time_s:
                best[rank] = value
    return best[min(best)] if best else None


def last_values(directory: RunDirectory) -> dict[str, LastValue]:
    """The last value of every metric that the ends of the journals hold, by name."""
    best: dict[str, LastValue] = {}
    for path in directory.journal_paths():
        found: dict[str, LastValue] = {}
        for record in _from_the_end(path):
            for value in _values(record):
                found.setdefault(value.name, value)
        for name, value in found.items():
            if name not in best or value.time_s > best[name].time_s:
                best[name] = value
    return best


def exit_code(directory: RunDirectory, start: int) -> int | None:
    """What the primary of this start ended with; None where it has not said so."""
    for path in directory.journal_paths():
        opening = read_opening(path)
        if opening is None or not opening.is_primary or opening.start != start:
            continue
        last = next(_from_the_end(path, has_rows_only=False), {})
        code = last.get("exit_code")
        return code if last.get("kind") == "finish" and isinstance(code, int) else None
    return None


def _values(record: dict[str, Any]) -> Iterator[LastValue]:
    """The numbers in a row."""
    metrics, step, time_s = record.get("metrics"), record.get("step"), record.get("time_s")
    if not isinstance(metrics, dict) or not isinstance(step, (int, float)):
        return
    for name, value in metrics.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and isinstance(time_s, (int, float)):
            yield LastValue(name=name, value=value, step=step, time_s=time_s)


def _from_the_end(path: Path, *, has_rows_only: bool = True) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal, last first, as far back as `MAX_TAIL_BYTES`."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            lower, tail = size, b""
            while lower > 0 and size - lower < MAX_TAIL_BYTES:
                upper, lower = lower, max(0, lower - TAIL_BYTES)
                file.seek(lower)
                data = file.read(upper - lower) + tail
                first, *lines = data.split(b"\n")
                tail = first
                if upper == size and lines:
                    lines.pop()  # empty, or a line that is being written
                if lower == 0:
                    lines.insert(0, first)
                for line in reversed(lines):
                    if line.startswith(ROW_PREFIX) or not has_rows_only:
                        record = _record(line)
                        if record is not None:
                            yield record
    except OSError:
        return


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
