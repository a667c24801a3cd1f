"""What a journal holds: one JSON object a line, and how rows and configuration become such lines
and come back.

    {"kind":"open", "schema":1, "run_id":..., "journal":..., "role":..., "host":..., "pid":...,
    "start":1, ...} first line
    {"kind":"config","seq":1,"time_s":...,"scope":"critic","rank":1,"values":{...}}
    {"kind":"row","seq":2,"time_s":...,"step_key":"train/step","step":3,"metrics":{...},"nonfinite":{"train/x":"NaN"}}
    {"kind":"finish","seq":3,"time_s":...,"exit_code":0}

Policy: a line is a record only if it ends in a newline and parses; `seq` counts from 0 without a
gap, so that a hole shows. JSON has no NaN: the metrics that are not finite stand in `nonfinite` by
name, so text `"NaN"` stays text; integers beyond 64 bits stand in `large`, hexadecimal. A row's
`num_lost` counts what of it could not be kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from slime_logging.values.json_value import Json
from slime_logging.values.row import Row

SCHEMA = 1
KEEP, MARK, DROP = REWINDS = ("keep", "mark", "drop")

MAX_LINE_BYTES = 64 * 2**20
"""The longest line that is written or read; a bound on what a hostile run directory can make a
reader hold.
"""

MAX_DIGITS = 2_600
"""Hexadecimal ones, of an integer that is read: more than `values.json_scalars.MAX_DECIMAL_BITS`
can have, and fewer than Python writes as decimal ones.
"""

ROW_PREFIX = b'{"kind":"row",'

NONFINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """The first line of a journal: which process wrote it, for which start of the run.

    `start` counts the starts of the run (1, then 2 after the first resume). `delivers` names the
    trackers to which this process delivers its journal itself, so that the primary leaves them out.
    `owner` is the process's main journal, where this is a further one (the host's system metrics).
    `rewind` says what becomes of the steps that an earlier start logged too: `keep`, `mark` or
    `drop`.
    """

    run_id: str
    journal: str
    role: str | None
    is_primary: bool
    host: str
    pid: int
    start: int
    time_s: float
    delivers: tuple[str, ...] = ()
    owner: str | None = None
    rewind: str = KEEP

    @property
    def process(self) -> str:
        """What people call the process: its role, `primary`, or the module that had it join."""
        return self.role or ("primary" if self.is_primary else self.journal.partition("-")[0])

    def to_body(self) -> dict[str, Json]:
        """The line's content, without `kind` and `seq`."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "delivers"} | {
            "schema": SCHEMA,
            "delivers": list(self.delivers),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Opening:
        """Read it back; raises `ValueError` when it is not an opening line that this version
        understands.
        """
        if record.get("kind") != "open":
            raise ValueError("it does not begin as a journal does")
        if record.get("schema") != SCHEMA:
            raise ValueError(
                f"it has schema {record.get('schema')!r}, and this version understands {SCHEMA}"
            )
        delivers = record.get("delivers") or ()
        if not isinstance(delivers, list | tuple):
            raise ValueError("its first line is damaged: `delivers` is no list")
        role = record.get("role")
        return cls(
            run_id=str(record.get("run_id")),
            journal=str(record.get("journal")),
            role=None if role is None else str(role),
            is_primary=record.get("is_primary") is True,
            host=str(record.get("host")),
            pid=_whole(record.get("pid")),
            start=_whole(record.get("start")),
            time_s=_number(record.get("time_s")),
            delivers=tuple(str(name) for name in delivers),
            owner=None if record.get("owner") is None else str(record["owner"]),
            rewind=str(record.get("rewind", KEEP)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigEntry:
    """Configuration that one process recorded: values of one scope, and how they rank against
    others of the same key.

    `scope` is a role with prefixed keys, or "" for the un-prefixed ones. `rank`: -1 what the
    primary says of a role that may join, 0 what it expects of a role, 1 what the role itself says
    at its start, 2 what was said later (`log_config`).
    """

    journal: str
    start: int
    rank: int
    time_s: float
    scope: str
    values: Mapping[str, Json]


def encode(kind: str, body: Mapping[str, Json]) -> Callable[[int], bytes]:
    """A line waiting for its sequence number: call the result with it.

    The costly part is done here, outside of the journal's lock.
    """
    try:
        tail = orjson.dumps(body)
    except TypeError:  # a name of a subclass of `str`; rarely needed, and half as fast
        tail = orjson.dumps(body, option=_OPTIONS)
    head = b'{"kind":"' + kind.encode() + b'","seq":'
    rest = b"," + tail[1:] + b"\n" if len(tail) > 2 else b"}\n"
    return lambda seq: head + str(seq).encode() + rest


def split_numbers(metrics: dict[str, Json]) -> dict[str, Json]:
    """Take the numbers that JSON, or its readers, cannot hold out of `metrics`: floats that are not
    finite, and integers beyond 64 bits.
    """
    bad: dict[str, Json] = {}
    large: dict[str, Json] = {}
    for name, value in metrics.items():
        if type(value) is float and value - value != 0.0:
            bad[name] = _float_text(value)
        elif type(value) is int and not -(2**63) <= value < 2**64:
            large[name] = hex(value)
    for name in (*bad, *large):
        del metrics[name]
    found: dict[str, Json] = {}
    if bad:
        found["nonfinite"] = bad
    if large:
        found["large"] = large
    return found


def decode_row(record: Mapping[str, Any], opening: Opening) -> Row:
    """A parsed line of kind `row` as the row that was logged; raises `ValueError` when it is
    malformed.
    """
    step_key, step, metrics = decode_metrics(record)
    if not isinstance(record.get("seq"), int):
        raise ValueError("a row without a sequence number")
    return Row(
        journal=opening.journal,
        seq=record["seq"],
        time_s=_number(record.get("time_s")),
        role=opening.role,
        step_key=step_key,
        step=step,
        metrics=metrics,
        start=opening.start,
        is_replacing=opening.start > 1 and opening.rewind == DROP,
    )


def decode_metrics(record: Mapping[str, Any]) -> tuple[str, float, dict[str, Json]]:
    """Step key, step and metrics of a parsed line of kind `row`; raises `ValueError` when it is
    malformed.
    """
    metrics = record.get("metrics")
    nonfinite, large = record.get("nonfinite"), record.get("large")
    step_key = record.get("step_key")
    step = record.get("step")
    if not isinstance(metrics, dict) or not isinstance(step_key, str):
        raise ValueError("a row without metrics or step key")
    if isinstance(step, str):
        step = NONFINITE.get(step)
    if not isinstance(step, (int, float)):
        raise ValueError("a row without a step")
    if not nonfinite and not large:
        return step_key, step, metrics
    if not isinstance(nonfinite or {}, dict) or not isinstance(large or {}, dict):
        raise ValueError("a row whose odd numbers have no names")
    return (
        step_key,
        step,
        {
            **metrics,
            **{k: NONFINITE.get(str(v), math.nan) for k, v in (nonfinite or {}).items()},
            **{k: int(str(v)[:MAX_DIGITS], 16) for k, v in (large or {}).items()},
        },
    )


def decode_config(record: Mapping[str, Any], opening: Opening) -> ConfigEntry:
    """A parsed line of kind `config`; raises `ValueError` when it is malformed."""
    values = record.get("values")
    if not isinstance(values, dict):
        raise ValueError("a config record without values")
    return ConfigEntry(
        journal=opening.journal,
        start=opening.start,
        rank=_whole(record.get("rank")),
        time_s=_number(record.get("time_s")),
        scope=str(record.get("scope") or ""),
        values=values,
    )


def _float_text(value: Json) -> str:
    if value != value:
        return "NaN"
    return "Infinity" if value == math.inf else "-Infinity"


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
