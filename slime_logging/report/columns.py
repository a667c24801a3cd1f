"""Rows that were read one by one, turned into a column a metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from slime_logging.backends.storable import as_double, flatten
from slime_logging.record.columns import Rows, total
from slime_logging.record.entries import decode_metrics
from slime_logging.values.json_value import Json
from slime_logging.values.samples import references

Refer = Callable[[str, str, float, str], None]
"""Takes the step key, name, step and file of a table of samples."""


def columns_of(records: Iterable[Mapping[str, Any]], refer: Refer) -> list[Rows]:
    """The rows among the records, by step key. Malformed ones are passed over, like by every
    reader; mappings among their values are metrics of their own.

    Args:
        records: of one process, in their order.
        refer: called for each table of samples.
    """
    columns: dict[str, dict[str, tuple[list[float], list[Json]]]] = {}
    all_steps: dict[str, list[float]] = {}
    for step_key, step, metrics in _rows(records, refer):
        all_steps.setdefault(step_key, []).append(step)
        of_key = columns.setdefault(step_key, {})
        for name, value in metrics.items():
            if name not in of_key:
                of_key[name] = [], []
            steps, values = of_key[name]
            steps.append(step)
            values.append(value)
    return [
        Rows(key, steps, [(name, *c, total(c[1])) for name, c in columns[key].items()])
        for key, steps in all_steps.items()
    ]


def _rows(
    records: Iterable[Mapping[str, Any]], refer: Refer
) -> Iterator[tuple[str, float, Mapping[str, Json]]]:
    """Step key, step and flat metrics of each row."""
    for record in records:
        if record.get("kind") != "row":
            continue
        try:
            step_key, step, metrics = decode_metrics(record)
        except ValueError:
            continue
        step = as_double(step)
        if dict in map(type, metrics.values()):
            for name, file in list(references(metrics)):
                refer(step_key, name, step, file)
                del metrics[name]
            metrics = flatten(metrics)
        yield step_key, step, metrics
