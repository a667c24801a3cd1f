"""The forms in which MLflow takes names, values and rows; limits from mlflow 3.17,
utils/validation.py.

Policy: pure functions. Names keep what is allowed (letters, digits, `_ - . : /` and spaces, no
empty, `.` or `..` part) and spell out the rest between colons, `pass@1` -> `pass:at:1`. A name that
could be taken for such a one has its colons spelled out too, so that different names stay
different.
"""

from __future__ import annotations

import json
import math
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from slime_logging.backends.storable import (
    as_double,
    canonical,
    clean_text,
    flatten,
    int64_step,
    metrics_at,
    storable,
)
from slime_logging.values.json_value import Json
from slime_logging.values.row import Row
from slime_logging.values.samples import as_table, read_samples

_KEY_CHARACTERS = 250
_VALUE_CHARACTERS = 6000
_FORBIDDEN = re.compile(r"[^\w\-. :/]")
_SPELLED = {
    "@": ":at:",
    "%": ":percent:",
    "#": ":number:",
    "+": ":plus:",
    "=": ":is:",
    "<": ":lt:",
    ">": ":gt:",
}
_PATHS = {"": ":empty:", ".": ":x2e:", "..": ":x2e::x2e:"}
_SPELT_OUT = re.compile(r"[^\w\-. /]")
_IS_SPELLED = re.compile(r":\w+:")
WHOLE_ELSEWHERE = ", whole in config.json)"
"""How a value ends that was cut."""


def key_form(key: str) -> str:
    """The name under which MLflow keeps a param, metric or tag."""
    text = clean_text(key)
    is_odd = _FORBIDDEN.search(text) or any(part in _PATHS for part in text.split("/"))
    if is_odd or _IS_SPELLED.search(text):
        text = _SPELT_OUT.sub(lambda found: _SPELLED.get(found[0], f":x{ord(found[0]):x}:"), text)
    unique = "/".join(_PATHS.get(part, part) for part in text.split("/"))
    if len(unique) <= _KEY_CHARACTERS:
        return unique
    return f"{unique[: _KEY_CHARACTERS - 9]}-{zlib.crc32(unique.encode()):08x}"


def value_form(value: Json) -> str:
    """A param's or tag's text: Python's for single values, like MLflow's, JSON for nested ones, cut
    at 6,000.
    """
    if isinstance(value, str):
        text = clean_text(value)
    else:
        text = canonical(value) if isinstance(value, (list, dict)) else str(value)
    if len(text) <= _VALUE_CHARACTERS:
        return text
    note = f"... ({len(text)} characters{WHOLE_ELSEWHERE}"
    return text[: _VALUE_CHARACTERS - len(note)] + note


def number_form(value: float) -> float:
    """A double; infinities are the largest ones, which is what MLflow's database makes of them."""
    number = as_double(value)
    return math.copysign(sys.float_info.max, number) if math.isinf(number) else number


def numbers(row: Row) -> Iterator[tuple[str, float, int, int]]:
    """Key, value, milliseconds and step of every number in a row; a fractional step stays under its
    step key.
    """
    milliseconds, step = max(0, round(row.time_s * 1000)), int64_step(row)
    for key, value in metrics_at(row, step).items():
        if isinstance(value, (int, float)):
            yield key_form(key), number_form(value), milliseconds, step


def lines(row: Row) -> Iterator[dict[str, Json]]:
    """A line for every value of a row that is not a number."""
    for key, value in flatten(row.metrics).items():
        if not isinstance(value, (int, float)):
            place: dict[str, Json] = {
                "row": row.row_id,
                "time_s": row.time_s,
                "step_key": row.step_key,
                "step": row.step,
            }
            yield place | {"role": row.role, "key": key, "value": storable(value)}


def line_text(line: dict[str, Json]) -> str:
    """The line as it is in the artifact."""
    return json.dumps(line, ensure_ascii=False, sort_keys=True)


def table_path(name: str, row: Row, file: str) -> str:
    """Where a table of samples stands among a run's artifacts."""
    return f"samples/{key_form(name)}/{row.step}-{Path(file).stem}.json"


def table_text(directory: Path, file: str) -> str:
    """Samples of the run in `directory` as one of the tables that MLflow's page shows.

    Raises:
        OSError, ValueError: they cannot be read.
    """
    columns, data = as_table(read_samples(directory, file))
    return json.dumps({"columns": columns, "data": data}, ensure_ascii=False)


def status_form(exit_code: int) -> str:
    """MLflow's final state for an exit code: KILLED for a job that was asked to end, by SIGTERM or
    Ctrl-C, and FAILED for one that vanished.
    """
    if exit_code == 0:
        return "FINISHED"
    return "KILLED" if exit_code in (130, 143, -2, -15) else "FAILED"
