"""Rows turned into a column a metric, so that a million of them are taken in within seconds.

Policy: rows are held up to a bound, then handed on, each metric's values in the order of their
rows. Rows with the same names in the same order, which is nearly all, are turned round at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from slime_logging.backends.forms import as_double, clean_text, flatten
from slime_logging.values.json_value import Json
from slime_logging.values.samples import references

MAX_ROWS = 4_096
MAX_VALUES = 500_000
"""Rows and values that are held at once."""

Take = Callable[[str, str, Sequence[float], Sequence[Json]], None]
"""Takes the name of a metric, its step key, steps, and as many values."""

Refer = Callable[[str, float, str], None]
"""Takes the name, step and file of a table of samples."""

_Group = tuple[list[int], list[float], list[tuple[Json, ...]]]
"""Numbers of rows, their steps, and their values."""

_Piece = tuple[Sequence[int], Sequence[float], Sequence[Json]]
"""Numbers of rows, their steps, and the values of one metric."""


class Columns:
    """The rows of one process.

    Args:
        take: called with each metric whenever enough rows have come.
        refer: called with the name, step and file of each table of samples.
    """

    def __init__(self, take: Take, refer: Refer) -> None:
        self._take = take
        self._refer = refer
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._key: tuple[str, ...] = ()
        self._group: _Group = ([], [], [])
        self._num_rows = self._num_values = 0

    def add(self, step_key: str, step: float, metrics: dict[str, Any]) -> None:
        """One more row."""
        key = (step_key, *metrics)
        if key != self._key:
            self._key, self._group = key, self._groups.setdefault(key, ([], [], []))
        numbers, steps, rows = self._group
        numbers.append(self._num_rows)
        steps.append(step)
        rows.append(tuple(metrics.values()))
        self._num_rows += 1
        self._num_values += len(metrics)
        if self._num_rows >= MAX_ROWS or self._num_values >= MAX_VALUES:
            self.flush()

    def flush(self) -> None:
        """Hand on what is held."""
        pieces: dict[tuple[str, str], list[_Piece]] = {}
        for (step_key, *names), numbers, steps, columns in self._flat():
            for name, column in zip(names, columns, strict=True):
                pieces.setdefault((step_key, name), []).append((numbers, steps, column))
        for (step_key, name), parts in pieces.items():
            self._take(clean_text(name), step_key, *_in_order(parts))
        self._groups, self._key = {}, ()
        self._num_rows = self._num_values = 0

    def _flat(
        self,
    ) -> Iterator[tuple[tuple[str, ...], list[int], list[float], Sequence[Sequence[Json]]]]:
        """The groups as columns, with mappings among their values turned into metrics of their
        own.
        """
        for key, (numbers, own_steps, rows) in self._groups.items():
            steps = [as_double(step) for step in own_steps]
            columns = list(zip(*rows, strict=True))
            if not any(dict in map(type, column) for column in columns):
                yield key, numbers, steps, columns
                continue
            for number, step, row in zip(numbers, steps, rows, strict=True):
                metrics = dict(zip(key[1:], row, strict=True))
                for name, file in list(references(metrics)):
                    self._refer(name, step, file)
                    del metrics[name]
                flat = flatten(metrics)
                yield (key[0], *flat), [number], [step], [[value] for value in flat.values()]


def _in_order(parts: Sequence[_Piece]) -> tuple[Sequence[float], Sequence[Json]]:
    """The steps and values of a metric that stands in rows of several kinds, in the order of the
    rows.
    """
    if len(parts) == 1:
        return parts[0][1:]
    numbered = sorted(
        (row for part in parts for row in zip(*part, strict=True)), key=lambda row: row[0]
    )
    return [step for _, step, _ in numbered], [value for _, _, value in numbered]
