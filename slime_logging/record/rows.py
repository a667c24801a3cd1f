"""One call of `log` as the body of a journal's line.

Policy: total. Whatever objects are logged, `body` returns a row with every name; only a missing
step key is the caller's. Values are exact where JSON can say them; what is too long for a line is
whole in a file of the run; what cannot be kept is a marker in angle brackets and counted in
`num_lost`. A name once given to a metric stays, whatever is learned later.

A step that is no finite number (None, NaN, a text) is never 0: the row stands at the last step of
its axis in this process, with one warning, and `step_given` says what was given.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from slime_logging.record.entries import split_numbers
from slime_logging.record.media import MediaStore, NotKept
from slime_logging.record.run import now_s
from slime_logging.redaction.redact import Redactor
from slime_logging.values.fields import read_pairs
from slime_logging.values.json_scalars import digits, float_json, shortened, text_json
from slime_logging.values.json_value import Json
from slime_logging.values.metric import metric_to_json
from slime_logging.values.serialize import key_text

logger = logging.getLogger("slime_logging")

MAX_CACHED_NAMES = 200_000
"""Metric names whose redacted form is remembered; more are redacted again each time, so that memory
stays bounded.
"""
MAX_TEXT_CHARS = 2**20
MAX_STRUCTURE_BYTES = 2**22
MAX_ROW_BYTES = 2**24
"""What a line holds of one text, of one list or mapping, and of all of them; longer ones go to
files of the run.
"""
_MAX_WARNED = 100
_SHOWN_CHARS = 1_000
"""Of a value that went to a file."""

_LARGEST_INT = 2**64 - 1
_SMALLEST_INT = -(2**63)
_NUMBERS = frozenset({float, int, bool})
_NO_STEP_KEY = object()
_FOREIGN = (Exception, SystemExit, GeneratorExit)
"""What an object's own code may raise."""


class RowWriter:
    """Makes the bodies of one process's rows.

    Args:
        directory: the run's, for files of media.
        stem: the journal's name.
        redactor: hides secrets in names and texts.
    """

    def __init__(self, directory: Path, stem: str, redactor: Redactor) -> None:
        self.redactor = self._redactor = redactor
        self.media = MediaStore(directory, stem, redactor.text)
        self._names: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._plain_names: set[str] = set()
        self._steps: dict[str, int | float] = {}
        self._warned: set[str] = set()

    def body(self, metrics: Mapping[str, object], step_key: str) -> dict[str, Json]:
        """The row's body, without sequence number.

        Raises:
            KeyError: `metrics` has no `step_key`; the caller's mistake.
        """
        try:
            body = self._plain_body(metrics, step_key)
            return self._any_body(metrics, step_key) if body is None else body
        except KeyError as error:
            if error.args[:1] == (_NO_STEP_KEY,):
                raise self._no_step_key(metrics, step_key) from None
            return self._bare_body(metrics, step_key)
        except _FOREIGN:
            return self._bare_body(metrics, step_key)

    def _plain_body(self, metrics: Mapping[str, object], step_key: str) -> dict[str, Json] | None:
        """The row if each name stays as it is and each value is a finite number: most are, judged
        without a loop.
        """
        if type(metrics) is not dict:
            return None
        values = metrics.copy()
        step = values.pop(step_key, None)
        kinds = set(map(type, values.values()))
        if (
            type(step) is not int
            or not kinds <= _NUMBERS
            or not self._plain_names.issuperset(values)
        ):
            return None
        if int in kinds and not all(
            _fits(value) for value in values.values() if type(value) is int
        ):
            return None
        try:
            total = sum(values.values())
        except OverflowError:
            return None
        if total - total != 0 or not _fits(step) or step_key not in self._plain_names:
            return None  # a value is not finite, or all of them together are not
        self._steps[step_key] = step
        return {"time_s": now_s(), "step_key": step_key, "step": step, "metrics": values}

    def _any_body(self, metrics: Mapping[str, object], step_key: str) -> dict[str, Json]:
        row = _Row(self)
        given: Any = _NO_STEP_KEY
        odd = []
        for key, value in read_pairs(metrics, 2**31):
            if type(key) is not str:  # after the others, whose names are their own
                odd.append((key, value))
            elif key == step_key:
                given = value
            else:
                row.add(self.name(key), value)
        for key, value in odd:
            if issubclass(type(key), str) and key == step_key:
                given = value
            else:
                row.add(self.name(_text_of(key)), value)
        if given is _NO_STEP_KEY:
            raise KeyError(_NO_STEP_KEY)
        return row.body(step_key, given)

    def _bare_body(self, metrics: Any, step_key: str) -> dict[str, Json]:
        """The row of something that cannot be read as a mapping: whatever single items can be."""
        row = _Row(self)
        row.num_lost += 1
        return row.body(step_key, metrics[step_key])

    def last_step(self, step_name: str) -> int | float:
        """The last step of an axis in this process, 0 before any."""
        return self._steps.get(step_name, 0)

    def remember(self, step_name: str, step: int | float) -> None:
        """This is the last step of an axis now."""
        self._steps[step_name] = step

    def warn(self, topic: str, message: str) -> None:
        """Warn, unless something was said of the topic before."""
        if topic not in self._warned and len(self._warned) < _MAX_WARNED:
            self._warned.add(topic)
            logger.warning("slime_logging: %s", message)

    def _no_step_key(self, metrics: Any, step_key: str) -> KeyError:
        known = ", ".join(self._redactor.key(_text_of(key)) for key, _ in read_pairs(metrics, 50))
        return KeyError(
            f"the metrics have no step key {self._redactor.key(step_key)!r}; they have:"
            f" {known[:500]}"
        )

    def name(self, key: str) -> str:
        """The metric's name in the run: for one key always the same."""
        known = self._names.get(key)
        if known is not None:
            return known
        name = plain = self._redactor.key(text_json(key))
        number = 1
        while self._owners.get(name, key) != key:  # names that differ only in what is hidden
            number += 1
            name = f"{plain}~{number}"
        if len(self._names) < MAX_CACHED_NAMES:
            self._names[key] = name
            self._owners[name] = key
            if name == key:
                self._plain_names.add(name)
        return name


class _Row:
    """One row while it is made."""

    def __init__(self, writer: RowWriter) -> None:
        self.num_lost = 0
        self._writer = writer
        self._values: dict[str, Json] = {}
        self._num_bytes = 0

    def add(self, name: str, value: object) -> None:
        """A metric, under a name that no other has."""
        unique, number = name, 2
        while unique in self._values:
            unique, number = f"{name}~{number}", number + 1
        kind = type(value)
        is_plain = kind is float or kind is bool or value is None
        if is_plain or (kind is int and _fits(value)):  # type: ignore[arg-type]
            self._values[unique] = value  # type: ignore[assignment]
            return
        try:
            self._values[unique] = self._plain(unique, value)
        except _FOREIGN as error:
            self.num_lost += 1
            self._values[unique] = f"<not kept: {type(error).__name__}>"

    def body(self, step_key: str, given: Any) -> dict[str, Json]:
        """The whole row."""
        step_name = self._writer.name(step_key)
        body: dict[str, Json] = {"time_s": now_s(), "step_key": step_name}
        body["step"] = step = _as_step(given)
        if step is None:
            body["step"] = self._writer.last_step(step_name)
            body["step_given"] = _sayable(self._plain(step_name, given))
            self._writer.warn(
                step_name,
                f"{step_name} is no finite number, but a {type(given).__name__}: such rows stand at"
                " the last step of that axis",
            )
        else:
            self._writer.remember(step_name, step)
        body["metrics"] = self._values
        body.update(split_numbers(self._values))
        if self.num_lost:
            body["num_lost"] = self.num_lost
        return body

    def _plain(self, name: str, value: Any) -> Json:
        before = self.num_lost
        plain = metric_to_json(value, self._special, self._lose)
        if self.num_lost > before or (isinstance(plain, str) and not _is_text(value)):
            self._writer.warn(
                "",
                f"{name} is a {type(value).__name__}, which no tracker can chart; it is logged as"
                " text",
            )
        if isinstance(plain, (str, list, dict)):
            plain = next(iter(self._writer.redactor.row({name: plain}).values()))
            return self._sized(plain)
        return plain

    def _special(self, value: Any) -> Json:
        try:
            return self._writer.media.plain(value)
        except _FOREIGN as error:  # the object's own code, or a disk that is full
            if not isinstance(error, NotKept):
                logger.debug("slime_logging: %s: %s", type(value).__name__, type(error).__name__)
            return None

    def _lose(self) -> None:
        self.num_lost += 1

    def _sized(self, plain: Json) -> Json:
        """The value itself, or what stands for it where it is too long for the line."""
        is_text = isinstance(plain, str)
        num_bytes = len(plain) if isinstance(plain, str) else len(orjson.dumps(plain))
        most = MAX_TEXT_CHARS if is_text else MAX_STRUCTURE_BYTES
        if num_bytes <= most and self._num_bytes + num_bytes <= MAX_ROW_BYTES:
            self._num_bytes += num_bytes
            return plain
        data = plain.encode() if isinstance(plain, str) else orjson.dumps(plain)
        text = data[: 4 * _SHOWN_CHARS].decode(errors="ignore")[:_SHOWN_CHARS]
        try:
            file = self._writer.media.write(data, ".txt" if is_text else ".json")
        except OSError:
            self.num_lost += 1
            return f"{text}... <shortened: {num_bytes} characters>"
        kind = plain.get("media") if isinstance(plain, dict) else None
        if kind == "table" and isinstance(plain, dict):
            rows = plain.pop("rows")
            num_rows = len(rows) if isinstance(rows, list) else 0
            return {**plain, "file": file, "num_rows": num_rows}
        return {"media": "text" if is_text else "json", "file": file, "start": text}


def _fits(number: int) -> bool:
    return _SMALLEST_INT <= number <= _LARGEST_INT


def _sayable(value: Json) -> Json:
    """The value as JSON can hold it, text where that is no number."""
    if type(value) is int and not _fits(value):
        return digits(value)
    return float_json(value) if type(value) is float else value


def _is_text(value: Any) -> bool:
    return issubclass(type(value), (str, bytes, bytearray))


def _text_of(key: Any) -> str:
    try:
        if issubclass(type(key), str):
            return text_json(key)
        return shortened(key_text(key), _SHOWN_CHARS)
    except _FOREIGN:
        return "<unreadable name>"


def _as_step(given: Any) -> int | float | None:
    """The step as a finite number; None where it is none."""
    if type(given) is int and _fits(given):
        return given
    try:
        number = metric_to_json(given)
        if type(number) is int and _fits(number):
            return number
        real = float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return real if real - real == 0 else None
