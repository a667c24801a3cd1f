"""One call of `log` as the body of a journal's line.

Policy: total. Whatever objects are logged, `body` returns a row with every name. Values are exact
where JSON can say them; what is too long for a line is whole in a file of the run; what cannot be
kept is a marker in angle brackets and counted in `num_lost`. A name once given to a metric stays,
whatever is learned later.

A step that is missing or no finite number (None, NaN, a text) is never 0: the row stands at the
last step of its axis in this process, with one warning, and `step_given` says what was given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slime_logging.record.entries import encode, split_numbers
from slime_logging.record.long_values import LongValues
from slime_logging.record.media import MediaStore, NotKept
from slime_logging.record.metric_names import MetricNames
from slime_logging.record.plain_rows import PlainRows, number_attempt
from slime_logging.record.run import now_s
from slime_logging.record.steps import as_step, fits
from slime_logging.redaction.redact import Redactor
from slime_logging.values.distinct import distinct
from slime_logging.values.fields import read_pairs
from slime_logging.values.json_scalars import digits, float_json, shortened, text_json
from slime_logging.values.json_value import Json
from slime_logging.values.metric import metric_to_json
from slime_logging.values.walk import key_text

logger = logging.getLogger("slime_logging")

_MAX_WARNED = 100
_NAME_CHARS = 1_000
"""Of a name that is no text."""

_NO_STEP_KEY = object()
_FOREIGN = (Exception, SystemExit, GeneratorExit)
"""What an object's own code may raise."""


class RowWriter:
    """Makes the bodies of one process's rows.

    Args:
        directory: the run's, for files of media.
        stem: the journal's name.
        redactor: hides secrets in names and texts.
        attempt: the number of the run's start, where rows tell it.
    """

    def __init__(
        self, directory: Path, stem: str, redactor: Redactor, attempt: int | None = None
    ) -> None:
        self.redactor = redactor
        self.media = MediaStore(directory, stem, redactor.text, redactor.overwritten)
        self.names = MetricNames(redactor)
        self._attempt = attempt
        self._steps: dict[str, int | float] = {}
        self._plain_rows = PlainRows(self.names, self._steps, attempt)
        self._warned: set[str] = set()

    def line(self, metrics: Mapping[str, object], step_key: str) -> Callable[[int], bytes]:
        """The row's line, waiting for its sequence number.

        Raises:
            ValueError, TypeError: it cannot be written at all.
        """
        plain = self._plain_rows.line(metrics, step_key)
        return plain or encode("row", self.body(metrics, step_key))

    def body(self, metrics: Mapping[str, object], step_key: str) -> dict[str, Any]:
        """The content of a row of any objects."""
        try:
            body: dict[str, Any] = self._any_body(metrics, step_key)
        except _FOREIGN:
            body = self._bare_body(metrics, step_key)
        odd = (name for part in ("nonfinite", "large") for name in body.get(part, ()))
        number_attempt(self._attempt, body["metrics"], body["step_key"], odd)
        return body

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
                row.add(self.names.shown(key), value)
        for key, value in odd:
            if issubclass(type(key), str) and key == step_key:
                given = value
            else:
                row.add(self.names.shown(_text_of(key)), value)
        return row.body(step_key, given)

    def _bare_body(self, metrics: Any, step_key: str) -> dict[str, Json]:
        """The row of something that cannot be read as a mapping: whatever single items can be."""
        row = _Row(self)
        row.num_lost += 1
        try:
            given = metrics[step_key]
        except KeyError:
            given = _NO_STEP_KEY
        except _FOREIGN:
            given = None
        return row.body(step_key, given)

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


class _Row:
    """One row while it is made."""

    def __init__(self, writer: RowWriter) -> None:
        self.num_lost = 0
        self._writer = writer
        self._values: dict[str, Json] = {}
        self._given: dict[str, Json] = {}
        self._lengths = LongValues(writer.media, self._lose)

    def add(self, name: str, value: object) -> None:
        """A metric, under a name that no other has."""
        unique = distinct(name, self._values)
        kind = type(value)
        is_plain = kind is float or kind is bool or value is None
        if is_plain or (kind is int and fits(value)):  # type: ignore[arg-type]
            self._values[unique] = value  # type: ignore[assignment]
            return
        try:
            self._values[unique] = self._plain(unique, value)
        except _FOREIGN as error:
            self.num_lost += 1
            self._values[unique] = f"<not kept: {type(error).__name__}>"

    def body(self, step_key: str, given: Any) -> dict[str, Json]:
        """The whole row."""
        step_name = self._writer.names.shown(step_key)
        body: dict[str, Json] = {"time_s": now_s(), "step_key": step_name}
        step = None if given is _NO_STEP_KEY else as_step(given)
        if step is None:
            step = self._writer.last_step(step_name)
            self._tell_of_step(step_name, given)
        else:
            self._writer.remember(step_name, step)
        body["step"] = step
        self._redact()
        for value in self._given.values():
            body["step_given"] = _sayable(value)
        body["metrics"] = self._values
        body.update(split_numbers(self._values))
        if self.num_lost:
            body["num_lost"] = self.num_lost
        return body

    def _tell_of_step(self, step_name: str, given: Any) -> None:
        fault = f"no finite number, but a {type(given).__name__}"
        if given is _NO_STEP_KEY:
            fault = f"missing in a row that has: {', '.join(self._values)[:300]}"
        else:
            self._given = {step_name: self._plain(step_name, given)}
        self._writer.warn(
            f"step {step_name}",
            f"{step_name} is {fault}: such rows stand at the last step of that axis",
        )

    def _plain(self, name: str, value: Any) -> Json:
        before = self.num_lost
        plain = metric_to_json(value, self._special, self._lose)
        if self.num_lost > before or (isinstance(plain, str) and not _is_text(value)):
            self._writer.warn(
                "",
                f"{name} is a {type(value).__name__}, which no tracker can chart; it is logged as"
                " text",
            )
        return plain

    def _redact(self) -> None:
        """Hide the secrets of all texts at once: the time that it may take is that of a row."""
        whole = [*self._values.items(), *self._given.items()]
        texts = {name: value for name, value in whole if isinstance(value, (str, list, dict))}
        if texts:
            found = self._writer.redactor.row(texts).values()
            for name, value in zip(texts, found, strict=True):
                held = self._given if name in self._given else self._values
                held[name] = self._lengths.fitting(value)

    def _special(self, value: Any) -> Json:
        try:
            return self._writer.media.plain(value)
        except _FOREIGN as error:  # the object's own code, or a disk that is full
            if not isinstance(error, NotKept):
                logger.debug("slime_logging: %s: %s", type(value).__name__, type(error).__name__)
            return None

    def _lose(self) -> None:
        self.num_lost += 1


def _sayable(value: Json) -> Json:
    """The value as JSON can hold it, text where that is no number."""
    if type(value) is int and not fits(value):
        return digits(value)
    return float_json(value) if type(value) is float else value


def _is_text(value: Any) -> bool:
    return issubclass(type(value), (str, bytes, bytearray))


def _text_of(key: Any) -> str:
    try:
        if issubclass(type(key), str):
            return text_json(key)
        return shortened(key_text(key), _NAME_CHARS)
    except _FOREIGN:
        return "<unreadable name>"
