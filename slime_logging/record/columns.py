"""Rows of a journal as a column a metric, so that a million of them are read within seconds.

Policy: only what is exactly a row of plain values is read this way, a batch of lines at a time;
of any other batch `decode` gives None, and its lines are to be read one by one. Both ways give the
same values. A decoder knows the names that it was taught, and needs no order of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter, le
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from slime_logging.record.entries import NONFINITE
from slime_logging.values.json_value import Json

MAX_NAMES = 4_096
"""Of the metrics of one journal that are read at once."""

_Value = int | float | str | bool | None | UnsetType

Column = tuple[str, Sequence[float], Sequence[Json], float | None]
"""A metric's name, its steps, as many values in the order of their rows, and their `total`."""


def total(values: Sequence[Any]) -> float | None:
    """The sum of values; None where they are not all numbers, or where a whole number is beyond all
    doubles. True and False are numbers.
    """
    try:
        return sum(values, 0.0)
    except (TypeError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows over one step key; their columns can be gone through once."""

    step_key: str
    steps: Sequence[float]
    columns: Iterable[Column]

    @property
    def are_rising(self) -> bool:
        """Whether all steps are finite, and none is below the one before."""
        steps = self.steps
        return math.isfinite(sum(steps)) and all(map(le, steps, islice(steps, 1, None)))

    def before(self, end: float) -> Rows:
        """Those of the rows whose step is lower."""
        if end == math.inf:
            return self
        kept = (_before(end, *column) for column in self.columns)
        return Rows(self.step_key, [step for step in self.steps if step < end], kept)


def _before(
    end: float, name: str, steps: Sequence[float], values: Sequence[Json], _: float | None
) -> Column:
    places = [n for n, step in enumerate(steps) if step < end]
    values = [values[n] for n in places]
    return name, [steps[n] for n in places], values, total(values)


class RowBatch:
    """Lines that are all rows.

    Args:
        rows: as they were decoded.
        names: of the metrics, in the order of the fields.
    """

    def __init__(self, rows: Sequence[Any], names: Iterable[str]) -> None:
        self._rows = rows
        self._names = tuple(names)
        self.num_rows = len(rows)
        self.last_seq: int = max(map(attrgetter("seq"), rows))
        self.last_s: float = max(map(attrgetter("time_s"), rows))

    def columns(self) -> list[Rows]:
        """The rows, by step key."""
        by_key: dict[str, list[Any]] = {}
        for row in self._rows:
            by_key.setdefault(row.step_key, []).append(row)
        return [self._columns(step_key, rows) for step_key, rows in by_key.items()]

    def _columns(self, step_key: str, rows: Sequence[Any]) -> Rows:
        steps = [float(row.step) for row in rows]
        values = zip(*(astuple(row.metrics) for row in rows), strict=True)
        return Rows(step_key, steps, map(partial(_column, steps), self._names, values))


def _column(steps: Sequence[float], name: str, values: Sequence[Any]) -> Column:
    """Of rows that may not have the metric."""
    if (found := total(values)) is not None:
        return name, steps, values, found
    places = [n for n, value in enumerate(values) if value is not UNSET]
    values = [values[n] for n in places]
    return name, [steps[n] for n in places], values, total(values)


class RowDecoder:
    """Reads the rows of one journal."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Know the names of the metrics in records that were read one by one."""
        num_known = len(self._names)
        for record in records:
            for part in map(record.get, ("metrics", "nonfinite")):
                for name in part if isinstance(part, dict) else ():
                    if name not in self._names and len(self._names) < MAX_NAMES and _is_plain(name):
                        self._names[name] = f"m{len(self._names)}"
        if len(self._names) > num_known:
            self.__dict__.pop("_decoder", None)

    def decode(self, lines: bytes) -> RowBatch | None:
        """Whole lines; None where one is no row, or not of plain values with known names."""
        if not (self._names and lines):
            return None
        try:
            rows = self._decoder.decode_lines(lines)
            for row in rows:
                if row.nonfinite is not UNSET:
                    for name, word in row.nonfinite.items():
                        setattr(row.metrics, self._names[name], NONFINITE[word])
        except (msgspec.MsgspecError, ValueError, KeyError, RecursionError):
            return None
        return RowBatch(rows, self._names)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        metrics = msgspec.defstruct(
            "_Metrics",
            [(field, _Value, UNSET) for field in self._names.values()],
            rename={field: name for name, field in self._names.items()},
            forbid_unknown_fields=True,
            gc=False,
        )
        row = msgspec.defstruct(
            "_Row",
            [
                ("seq", int),
                ("time_s", float),
                ("step_key", str),
                ("step", float),
                ("metrics", metrics),
                ("nonfinite", dict[str, str] | UnsetType, UNSET),
            ],
            tag_field="kind",
            tag="row",
            forbid_unknown_fields=True,
            gc=False,
        )
        return msgspec.json.Decoder(row)


def _is_plain(name: str) -> bool:
    """Whether JSON writes a name as it is: the decoder takes no other."""
    return not any(c in '"\\' or c < " " for c in name)
