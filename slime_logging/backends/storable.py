"""The nearest forms of values that a tracker cannot hold as they are, and the warning that says so
once.

Policy: pure functions of plain JSON values; nothing raises, nothing is dropped, and equal values
give equal forms. What each tracker stores in another form is listed in docs/backends.md.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping
from hashlib import sha256

from slime_logging.values.distinct import by_distinct_name
from slime_logging.values.json_value import Json
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig

_LOGGER = logging.getLogger("slime_logging")

INT64_MIN, INT64_MAX, UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1
"""What orjson, and so Trackio's and most other JSON stores, take as an integer."""

JOB = ""
"""Stands for the job itself where others name a role."""

_CELL_CHARACTERS = 200


class Notices:
    """Says each thing once, at warning level, in the name of one backend; nothing before `begin`.

    The forms are asked for without writing anything too, to compare what a tracker holds: that
    warns about nothing.
    """

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._said: set[str] = set()
        self._has_begun = False

    def begin(self) -> None:
        """From now on things are stored, so that it matters in which form."""
        self._has_begun = True

    def once(self, topic: str, message: str) -> None:
        """Warn with `message`, unless something was said about `topic` before."""
        if self._has_begun and topic not in self._said:
            self._said.add(topic)
            _LOGGER.warning("%s: %s", self._backend, _printable(message))


def _printable(text: str) -> str:
    """The text of a foreign name without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def canonical(value: Json) -> str:
    """One text for equal JSON values, whatever the order of keys; NaN equals NaN, 1 differs from
    1.0 and from true.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: Json) -> str:
    """The same text for equal JSON values, of 64 characters."""
    return sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def clean_text(text: str) -> str:
    """The text without lone surrogates, which no tracker can encode; they become `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def as_text(value: Json) -> str:
    """A value as people write it: text as it stands, everything else as JSON."""
    return clean_text(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_number(value: Json) -> bool:
    """True for int and float, False for bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_double(value: float) -> float:
    """The nearest double; an integer beyond them all is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def comparable(value: float | str) -> float | str:
    """NaN as text: it is not equal to itself, but NaN was held where NaN was given."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def storable(value: Json) -> Json:
    """The value for a strict JSON store: non-finite floats and integers beyond 64 bits become
    text.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if is_number(value) and not INT64_MIN <= value <= UINT64_MAX:  # type: ignore[operator]
        return str(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): storable(item) for key, item in value.items()}
    return value


def flatten(values: Mapping[str, Json]) -> dict[str, Json]:
    """Nested mappings as flat names, `{"a": {"b": 1}}` -> `{"a/b": 1}`; lists and empty mappings
    stay values.

    Two values that would get one name both stay: the later one's name ends in `~2`, `~3` and so on.
    """
    return by_distinct_name(_leaves("", values))


def int64_step(row: Row) -> int:
    """The nearest step that is a 64-bit whole number."""
    return max(-INT64_MAX, min(INT64_MAX, int(row.step)))


def metrics_at(row: Row, step: float) -> dict[str, Json]:
    """The row's metrics by flat names; the exact step is among them, under its step key, where the
    tracker's is another.
    """
    metrics = flatten(row.metrics)
    if step != row.step:
        metrics.setdefault(clean_text(row.step_key), row.step)
    return metrics


def by_role(config: RunConfig) -> dict[str, dict[str, Json]]:
    """Every value of the configuration once: each role's own un-prefixed, and under `JOB` what
    belongs to no role.
    """
    owned: dict[str, Json] = {}
    for role, values in config.roles.items():
        for key, value in values.items():
            prefixed = f"{role}/{key}"
            owned[prefixed if prefixed in config.values else key] = value
    job = {
        key: value
        for key, value in config.values.items()
        if key not in owned or canonical(owned[key]) != canonical(value)
    }
    return {role: dict(values) for role, values in config.roles.items()} | {JOB: job}


def role_diff(config: RunConfig) -> dict[str, dict[str, Json]]:
    """The keys that are not the same for every role: key -> role -> value; a role that lacks the
    key is left out.
    """
    keys = dict.fromkeys(key for values in config.roles.values() for key in values)
    rows = {key: {role: vs[key] for role, vs in config.roles.items() if key in vs} for key in keys}
    return {
        key: row
        for key, row in sorted(rows.items())
        if len(row) < len(config.roles) or len({canonical(value) for value in row.values()}) > 1
    }


def markdown_diff(config: RunConfig) -> str:
    """The same as a Markdown table with a column for each role."""
    roles = list(config.roles)
    rows = [["key", *roles], ["---"] * (len(roles) + 1)]
    for key, by in role_diff(config).items():
        rows.append([key, *(as_text(by[role]) if role in by else "" for role in roles)])
    return "\n".join("| " + " | ".join(_cell(text) for text in row) + " |" for row in rows)


def _cell(text: str) -> str:
    for character, form in (
        ("\\", "\\\\"),
        ("|", "\\|"),
        ("`", "\\`"),
        ("*", "\\*"),
        ("<", "&lt;"),
        ("\r", " "),
        ("\n", " "),
    ):
        text = text.replace(character, form)
    return text if len(text) <= _CELL_CHARACTERS else f"{text[:_CELL_CHARACTERS]}..."


def _leaves(prefix: str, values: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for key, value in values.items():
        name = f"{prefix}{clean_text(str(key))}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(f"{name}/", value)
        else:
            yield name, value
