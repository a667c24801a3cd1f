"""Rows and configuration in the form in which W&B holds them.

Policy: pure functions, no connection, no vendor. What W&B's client would drop or mangle (client
0.31.0) is put in the nearest form that it keeps, the same in every process, so that what is written
can be compared with what is read:

- a row carries two keys of ours: `_timestamp`, its own time in Unix seconds, which W&B keeps as the
  row's time, and `_row`, its id in the run, which makes every row findable; both are kept offline
  and online;
- nested mappings are flattened with dots, as W&B shows them; an empty mapping is the text `{}` (W&B
  drops it);
- keys that W&B reserves, and the empty key (its client drops the value), get a prefix;
- integers beyond 2**53 are floats in rows (W&B's charts have no others), and text in the
  configuration;
- texts and lists of `MAX_VALUE_BYTES` are whole: as much as the journal itself holds; longer ones,
  and longer texts of a configuration, are shortened with a mark of their length, and a row of more
  than `MAX_LINE_BYTES` is split into several history rows with the same step: the client skips
  longer lines without a word to its caller.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from slime_logging.backends.wandb.media import without_objects
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row

TIME_KEY = "_timestamp"
ROW_KEY = "_row"
RESERVED_KEYS = frozenset({TIME_KEY, ROW_KEY, "_step", "_runtime", "_wandb"})
RESERVED_CONFIG_KEYS = frozenset({"_wandb", "wandb_version"})
RESERVED_PREFIX = "user"
EMPTY_KEY = "(empty key)"
EMPTY_MAPPING = "{}"
MAX_EXACT_INT = 2**53
MAX_VALUE_BYTES = 4 << 20
MAX_CONFIG_TEXT_BYTES = 1 << 20
MAX_LINE_BYTES = 4 << 20
_SIZED = frozenset({str, list})


def history_rows(row: Row) -> list[dict[str, Any]]:
    """The history rows that one row becomes: one, or several of the same step where it is too long
    for a line.

    Each holds the step key, `_timestamp` and `_row`, which is `<row_id>` for the first and
    `<row_id>#<n>` for the others.
    """
    step = {row.step_key: _number(row.step)}
    return [
        {
            **part,
            **step,
            TIME_KEY: row.time_s,
            ROW_KEY: f"{row.row_id}#{number}" if number else row.row_id,
        }
        for number, part in enumerate(_parts(_flat(row.metrics)))
    ]


def history_point(held: Mapping[str, Any]) -> Point | None:
    """(row id, digest of its step and metrics) of one history row as W&B holds it; None for a row
    that is not ours.

    The digest does not see the order of the keys, nor the difference between 1 and 1.0, which JSON
    loses.
    """
    row_id = held.get(ROW_KEY)
    if not isinstance(row_id, str):
        return None
    metrics = {
        key: value for key, value in without_objects(held).items() if key not in RESERVED_KEYS
    }
    return row_id, _digest(_flat(metrics))


def config_form(values: Mapping[str, Json]) -> dict[str, Json]:
    """The configuration in W&B's nearest form: dashes at the ends of a key, which it strips, become
    `_`.
    """
    held: dict[str, Json] = {}
    for key, value in values.items():
        name = _config_key(key)
        while name in held or (name != key and name in values):
            name += "_"
        held[name] = _config_value(value)
    return held


def comparable(value: Any) -> Any:
    """The value as JSON keeps it: whole floats are integers, NaN and infinities are text."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return _comparable_number(value)
    if isinstance(value, Mapping):
        return {str(key): comparable(item) for key, item in value.items()}
    return [comparable(item) for item in value]


def _comparable_number(value: int | float) -> int | float | str:
    if isinstance(value, int):
        return value if abs(value) <= MAX_EXACT_INT else float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return int(value) if value.is_integer() and abs(value) <= MAX_EXACT_INT else value


def _digest(metrics: Mapping[str, Any]) -> str:
    text = json.dumps(comparable(metrics), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _flat(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in metrics.items():
        name = f"{prefix}{key}" if prefix else _metric_key(key)
        if type(value) is float:  # nearly all are
            flat[name] = value
        elif isinstance(value, Mapping) and value:
            flat.update(_flat(value, f"{name}."))
        else:
            flat[name] = _metric_value(value)
    return flat


@lru_cache(maxsize=65_536)
def _metric_key(key: str) -> str:
    key = _text(key)
    if not key:
        return EMPTY_KEY
    return f"{RESERVED_PREFIX}{key}" if key in RESERVED_KEYS else key


def _metric_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return EMPTY_MAPPING
    if isinstance(value, str):
        return _shortened(_text(value))
    if isinstance(value, (list, tuple)):
        items = [_listed(item) for item in value]
        num_bytes = _num_bytes(items)
        return (
            items
            if num_bytes <= MAX_VALUE_BYTES
            else f"<list of {len(items)} items, {num_bytes} bytes: too long for W&B>"
        )
    return _number(value)


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_text(str(key)): _listed(item) for key, item in value.items()}
    return (
        [_listed(item) for item in value]
        if isinstance(value, (list, tuple))
        else _metric_value(value)
    )


def _number(value: Any) -> Any:
    is_large = isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_EXACT_INT
    if not is_large:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _text(text: str) -> str:
    """The text without lone surrogates, which protobuf refuses."""
    return text.encode("utf-8", "backslashreplace").decode()


def _shortened(text: str, most_bytes: int = MAX_VALUE_BYTES) -> str:
    if len(text) <= most_bytes // 4:
        return text
    num_bytes = len(text.encode())
    if num_bytes <= most_bytes:
        return text
    return f"{text[: most_bytes // 4]}... <{num_bytes} bytes: too long for W&B>"


def _num_bytes(value: Any) -> int:
    """As a line holds it, which the client writes again in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _parts(metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The metrics in pieces of at most `MAX_LINE_BYTES`; most rows are one, judged by their
    count.
    """
    if len(metrics) <= 100 and _SIZED.isdisjoint(map(type, metrics.values())):
        yield metrics
        return
    part: dict[str, Any] = {}
    part_bytes = 0
    for key, value in metrics.items():
        is_sized = isinstance(value, (str, list))
        num_bytes = _num_bytes(key) + (_num_bytes(value) if is_sized else 32)
        if part and part_bytes + num_bytes > MAX_LINE_BYTES:
            yield part
            part, part_bytes = {}, 0
        part[key] = value
        part_bytes += num_bytes
    yield part


def _config_key(key: str) -> str:
    key = _text(key)
    if key in RESERVED_CONFIG_KEYS:
        return f"{RESERVED_PREFIX}{key}"
    body = key.strip("-")
    if not body:
        return "_" * len(key) if key else EMPTY_KEY
    start = len(key) - len(key.lstrip("-"))
    return "_" * start + body + "_" * (len(key) - start - len(body))


def _config_value(value: Json) -> Json:
    if isinstance(value, Mapping):
        return (
            {_text(str(key)): _config_value(item) for key, item in value.items()}
            if value
            else EMPTY_MAPPING
        )
    if isinstance(value, (list, tuple)):
        return [_config_value(item) for item in value]
    if isinstance(value, str):
        return _shortened(_text(value), MAX_CONFIG_TEXT_BYTES)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_EXACT_INT:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(comparable(value))
    return value
