"""What event files should hold of a run, and what they do hold."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from slime_logging.backends.place import run_place
from slime_logging.backends.storable import (
    Notices,
    as_double,
    as_text,
    by_role,
    clean_text,
    comparable,
    digest,
    int64_step,
    is_number,
    metrics_at,
)
from slime_logging.backends.tensorboard import events as events
from slime_logging.errors import TryAgain
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import read_samples, references

_EXACT = 2**53
"""Integers up to here are exact as doubles."""

_SINGLE_MAX = struct.unpack("<f", struct.pack("<I", 0x7F7FFFFF))[0]
_JOB_DIRECTORY = "job"
ROWS_SUFFIX, CONFIG_SUFFIX = ".rows", ".config"
SAMPLES_DIRECTORY, SAMPLES_SUFFIX = "~samples", ".samples"
"""Samples are shown as texts of their own; no role is called like this."""

_SAFE = " -_.~"
_MARKUP = re.compile(r"[^\w .()-]")


class TensorboardReader:
    """Reads the files back."""

    def __init__(self) -> None:
        self._notices = Notices("tensorboard")

    def points(self, row: Row) -> list[Point]:
        """One point a row: its directory, time and step, and the tags with their values."""
        tags = tuple((tag, comparable(value)) for tag, value in self._tags(row))
        return [(directory_of(row.role), row.time_s, int64_step(row), tags)]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The events of rows in the run's files; half a record at the end of a file is the mark of
        a killed writer.
        """
        for directory, event in _read(run, ROWS_SUFFIX):
            if event.HasField("summary"):
                tags = tuple(
                    (value.tag, comparable(events.held_value(value)))
                    for value in event.summary.value
                )
                yield directory, event.wall_time, event.step, tags

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The texts of samples, by tag, step and digest."""
        found: dict[str, Point] = {}
        for name, file in references(row.metrics):
            with suppress(OSError, ValueError):
                text = listing(run, file)
                found[name] = clean_text(name), int64_step(row), digest(text)
        return found

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """The texts in the run's files of samples."""
        for _, event in _read(run, SAMPLES_SUFFIX):
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "text":  # not an image or the like
                    yield value.tag, event.step, digest(events.held_value(value))

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """`<directory>: <key>` -> value in the form of a hyperparameter: number, bool or text."""
        return {
            f"{directory_of(role)}: {clean_text(key)}": self._hparam(key, value)
            for role, values in by_role(config).items()
            for key, value in values.items()
        }

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The hyperparameters of every role."""
        return {
            f"{directory}: {key}": held
            for directory, event in _read(run, CONFIG_SUFFIX)
            for value in event.summary.value
            for key, held in events.hparams_of(value).items()
        }

    def _hparam(self, key: str, value: Json) -> Json:
        """Hyperparameters are doubles, bools and texts."""
        if isinstance(value, bool):
            return value
        if is_number(value) and abs(value) <= _EXACT:  # type: ignore[arg-type]
            return float(value)  # type: ignore[arg-type]
        if not isinstance(value, str):
            self._notices.once(
                "hparam",
                f"{key} and others like it (None, lists, mappings) are hyperparameters as text",
            )
        return "None" if value is None else as_text(value)

    def _tags(self, row: Row) -> list[tuple[str, float | str]]:
        """What is shown for a row; text has tags of its own, because TensorBoard shows one kind of
        value for a tag.
        """
        tags: list[tuple[str, float | str]] = []
        for key, value in metrics_at(row, int64_step(row)).items():
            if isinstance(value, (int, float)):
                tags.append((key, self._single(key, value)))
            else:
                self._notices.once(
                    "text", f"{key} and others like it are not numbers: they are on the text page"
                )
                tags.append((f"{key}/text_summary", "None" if value is None else as_text(value)))
        return tags

    def _single(self, key: str, value: float) -> float:
        """The nearest number in single precision."""
        number = as_double(value)
        if math.isfinite(number) and abs(number) > _SINGLE_MAX:
            self._notices.once(
                "range", f"{key} is beyond the range of TensorBoard's numbers: the largest is kept"
            )
            return math.copysign(_SINGLE_MAX, number)
        (single,) = struct.unpack("<f", struct.pack("<f", number))
        if isinstance(value, int) and single != value:
            self._notices.once(
                "int", f"{key} and others like it are rounded to TensorBoard's 24 bits"
            )
        return float(single)


def place_of(run: RunFacts) -> Path:
    """Where the run's files are."""
    return Path(run_place("tensorboard", run).address)


def directory_of(role: str | None) -> str:
    """The folder of a role's files."""
    return (
        re.sub(r"^\.+", lambda dots: "%2E" * len(dots[0]), quote(role, safe=_SAFE))
        if role and role != _JOB_DIRECTORY
        else f"{_JOB_DIRECTORY}{'~' if role else ''}"
    )


def mark_of(run: RunFacts) -> str:
    """What tells the run's files from those of other runs in one directory."""
    return quote(run.run_id, safe="").replace(".", "%2E")


def _read(run: RunFacts, suffix: str) -> Iterator[tuple[str, Any]]:
    """Directory and event of everything in the run's files of one kind."""
    try:
        for path in sorted(place_of(run).glob(f"*/events.out.tfevents.*.{mark_of(run)}{suffix}")):
            for event in events.read(path):
                yield path.parent.name, event
    except OSError as error:
        raise TryAgain(f"tensorboard: cannot read {place_of(run)}: {error}") from error


def listing(run: RunFacts, file: str) -> str:
    """Samples as Markdown: each text as a block of code, so that nothing in it is markup."""
    parts = []
    for number, sample in enumerate(read_samples(run.directory, file)):
        parts.append(f"**sample {number}**")
        for column, value in sample.items():
            lines = clean_text(as_text(value)).splitlines() or [""]
            parts.append(
                f"{_MARKUP.sub(' ', column)}:\n\n" + "\n".join(f"    {line}" for line in lines)
            )
    return "\n\n".join(parts)
