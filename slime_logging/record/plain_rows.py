"""Rows of plain numbers, which nearly all rows are: written as bytes at once.

Policy: what is not plain is left to `rows`, and both write the same bytes for the same row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from slime_logging.record.metric_names import MetricNames
from slime_logging.record.steps import LARGEST_INT, SMALLEST_INT
from slime_logging.values.distinct import distinct

_NUMBERS = frozenset({float, int, bool})
_LINE = b'{"kind":"row","seq":%d,"time_s":%a,"step_key":%b,"step":%d,"metrics":%b}\n'
"""As `entries.encode` writes it."""


class PlainRows:
    """Makes the lines of rows whose names stay as they are and whose values are finite numbers.

    Args:
        names: those of the process's metrics.
        steps: the last step of each axis, by its name; kept true.
        attempt: the number of the run's start, where rows tell it.
    """

    def __init__(
        self, names: MetricNames, steps: dict[str, int | float], attempt: int | None
    ) -> None:
        self._names = names
        self._steps = steps
        self._attempt = attempt
        self._keys: dict[str, bytes] = {}

    def line(self, metrics: Mapping[str, object], step_key: str) -> Callable[[int], bytes] | None:
        """The row's line, waiting for its sequence number; None for a row that is not plain."""
        if type(metrics) is not dict:
            return None
        values = metrics.copy()
        step = values.pop(step_key, None)
        if (
            type(step) is not int
            or not SMALLEST_INT <= step <= LARGEST_INT
            or not _NUMBERS.issuperset(map(type, values.values()))
            or not self._names.unchanged.issuperset(metrics)
        ):
            return None
        number_attempt(self._attempt, values, step_key)
        try:
            tail = orjson.dumps(values)
        except TypeError:  # an integer is too large
            return None
        if b":null" in tail:  # a number that is not finite
            return None
        key = self._keys.get(step_key) or self._keys.setdefault(step_key, orjson.dumps(step_key))
        self._steps[step_key] = step
        time_s = time.time()
        return lambda seq: _LINE % (seq, time_s, key, step, tail)


def number_attempt(
    attempt: int | None, metrics: dict[str, Any], step_key: str, others: Iterable[str] = ()
) -> None:
    """Put the number of the attempt, where there is one, beside the row's metrics, as
    `<axis>/attempt`; no metric of that name, nor one of `others`, is touched.
    """
    if attempt is not None:
        axis, slash, _ = step_key.rpartition("/")
        metrics[distinct(f"{axis}{slash}attempt", {step_key, *metrics, *others})] = attempt
