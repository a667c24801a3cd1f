"""TensorBoard: one directory for each role, with its hyperparameters un-prefixed and its rows as
scalars and text.

The hparams page shows actor and critic as two lines of one table; the text page has a table of what
differs, and every value as JSON, because the hparams page loads 1,000 keys at most. Rows of
processes without a role are in `job`.

Policy: rows are in the file when `write` returns, an event each, with the row's own time, so that
they can be read back one by one. Files are written by tensorboard's `RecordWriter` and not by its
`EventFileWriter`: that imports TensorFlow where it is installed, and loses its queue when the
process is killed. A new writer opens new files.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import struct
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from slime_logging.backends.base import Writer
from slime_logging.backends.place import run_place
from slime_logging.backends.storable import (
    JOB,
    Notices,
    as_double,
    as_text,
    by_role,
    clean_text,
    digest,
    flatten,
    is_number,
    markdown_diff,
)
from slime_logging.backends.table import require_packages
from slime_logging.backends.tensorboard import events as events
from slime_logging.backends.tensorboard.media import media_summaries
from slime_logging.errors import TryAgain, WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import read_samples, references

_EXACT = 2**53
"""Integers up to here are exact as doubles."""

_SINGLE_MAX = struct.unpack("<f", struct.pack("<I", 0x7F7FFFFF))[0]
_INT64_MAX = 2**63 - 1
_ROWS_SUFFIX, _CONFIG_SUFFIX = ".rows", ".config"
_JOB_DIRECTORY = "job"
_SAMPLES_DIRECTORY, _SAMPLES_SUFFIX = "~samples", ".samples"
"""Samples are shown as texts of their own; no role is called like this."""

_SAFE = " -_.~"
_MARKUP = re.compile(r"[^\w .()-]")
_CONFIG_FILE = "events.out.tfevents.0000000000"
"""Sorts before every file of rows: TensorBoard reads the files of a directory in the order of their
names.
"""


class TensorboardBackend:
    """Writes event files."""

    name = "tensorboard"
    is_durable = True

    def __init__(self) -> None:
        self._notices = Notices(self.name)
        self._run: RunFacts | None = None
        self._files: dict[str, events.EventFile] = {}
        self._config: RunConfig | None = None

    def open(self, run: RunFacts, writer: Writer) -> None:  # noqa: ARG002 - one writer, whoever it is
        """Create the run's directory, with a link from ours where TENSORBOARD_DIR or the flags put
        it elsewhere.
        """
        require_packages("tensorboard")
        try:
            place, link = _place(run), run.directory / "tensorboard"
            place.mkdir(mode=0o700 if place == link else 0o777, parents=True, exist_ok=True)
            if not link.exists():
                link.unlink(missing_ok=True)  # it can lead to where nothing is any more
                link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                link.symlink_to(place, target_is_directory=True)
        except OSError as error:
            raise TryAgain(f"tensorboard: cannot create {_place(run)}: {error}") from error
        self._run = run
        self._notices.begin()

    def settle_s(self, run: RunFacts) -> float:  # noqa: ARG002 - of whatever run
        """None: what was written is there."""
        return 0.0

    def set_config(self, config: RunConfig) -> None:
        """Replace the file that holds the configuration of each role; TensorBoard shows the first
        one it finds.
        """
        self._write_config(config, exit_code=None)
        self._config = config

    def write(self, rows: Sequence[Row]) -> None:
        """Append the rows to the files of their roles."""
        run = self._opened()
        records: dict[str, list[bytes]] = {}
        for row in rows:
            summaries = [_summary(tag, value) for tag, value in self._tags(row)]
            records.setdefault(_directory(row.role), []).append(
                events.event(row.time_s, _step(row), summaries)
            )
            for name, file in references(row.metrics):
                try:
                    listing = _listing(run, file)
                except (OSError, ValueError) as error:
                    listing = f"not readable: {as_text(str(error))}"
                summary = events.text(clean_text(name), listing)
                event = events.event(row.time_s, _step(row), [summary])
                records.setdefault(_SAMPLES_DIRECTORY, []).append(event)
            for summary in media_summaries(row.metrics, run.directory):
                event = events.event(row.time_s, _step(row), [summary])
                records.setdefault(_SAMPLES_DIRECTORY, []).append(event)
        for directory, batch in records.items():
            try:
                if directory not in self._files:
                    suffix = _SAMPLES_SUFFIX if directory == _SAMPLES_DIRECTORY else _ROWS_SUFFIX
                    self._files[directory] = events.EventFile(
                        _place(run) / directory / _file_name(run, suffix),
                        is_private=_is_inside(run),
                    )
                self._files[directory].append(batch)
            except OSError as error:
                # The file may end in half a record, behind which nothing would be found: the next
                # rows get a new one.
                self._forget(directory)
                raise TryAgain(f"tensorboard: cannot write in {_place(run)}: {error}") from error

    def close(self, exit_code: int | None, timeout_s: float) -> None:  # noqa: ARG002 - nothing to wait for
        """Write how the run ended, for the hparams page, and close the files."""
        config, self._config = self._config, None
        try:
            if exit_code is not None and config is not None and self._run is not None:
                self._write_config(config, exit_code)
        finally:
            for directory in list(self._files):
                self._forget(directory)
            self._run = None

    def points(self, row: Row) -> list[Point]:
        """One point a row: its directory, time and step, and the tags with their values."""
        tags = tuple((tag, _comparable(value)) for tag, value in self._tags(row))
        return [(_directory(row.role), row.time_s, _step(row), tags)]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The events of rows in the run's files; half a record at the end of a file is the mark of
        a killed writer.
        """
        for directory, event in _read(run, _ROWS_SUFFIX):
            if event.HasField("summary"):
                tags = tuple(
                    (value.tag, _comparable(events.held_value(value)))
                    for value in event.summary.value
                )
                yield directory, event.wall_time, event.step, tags

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The texts of samples, by tag, step and digest."""
        found: dict[str, Point] = {}
        for name, file in references(row.metrics):
            with suppress(OSError, ValueError):
                text = _listing(run, file)
                found[name] = clean_text(name), _step(row), digest(text)
        return found

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """The texts in the run's files of samples."""
        for _, event in _read(run, _SAMPLES_SUFFIX):
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "text":  # not an image or the like
                    yield value.tag, event.step, digest(events.held_value(value))

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """`<directory>: <key>` -> value in the form of a hyperparameter: number, bool or text."""
        return {
            f"{_directory(role)}: {clean_text(key)}": self._hparam(key, value)
            for role, values in by_role(config).items()
            for key, value in values.items()
        }

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The hyperparameters of every role."""
        return {
            f"{directory}: {key}": held
            for directory, event in _read(run, _CONFIG_SUFFIX)
            for value in event.summary.value
            for key, held in events.hparams_of(value).items()
        }

    def _write_config(self, config: RunConfig, exit_code: int | None) -> None:
        run = self._opened()
        for role, values in by_role(config).items():
            hparams = {clean_text(key): self._hparam(key, value) for key, value in values.items()}
            listing = clean_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False))
            summaries = [
                events.session_start(f"{_directory(role)} {run.name}", hparams, run.created_s),
                events.text("config/json", f"```json\n{listing}\n```"),
            ]
            if role == JOB:
                summaries.append(
                    events.text("config/difference of the roles", markdown_diff(config))
                )
                about = {
                    name: run.options.get(f"tracking_{name}")
                    for name in ("tags", "notes", "job_type")
                }
                summaries += [
                    events.text(f"config/{name}", as_text(str(text)))
                    for name, text in about.items()
                    if text
                ]
            if exit_code is not None:
                summaries.append(events.session_end(exit_code == 0, time.time()))
            self._replace_config(
                _place(run) / _directory(role), events.event(run.created_s, 0, summaries)
            )

    def _replace_config(self, place: Path, record: bytes) -> None:
        """Put a file with one event in the place of the one there; a reader sees either, whole."""
        partial = place / f".{uuid.uuid4().hex}"
        try:
            replacement = events.EventFile(partial, is_private=_is_inside(self._opened()))
            replacement.append([record])
            replacement.close()
            partial.replace(place / f"{_CONFIG_FILE}.{_mark(self._opened())}{_CONFIG_SUFFIX}")
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise TryAgain(
                f"tensorboard: cannot write the configuration in {place}: {error}"
            ) from error

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
        metrics = flatten(row.metrics)
        if _step(row) != row.step:
            metrics.setdefault(clean_text(row.step_key), row.step)
        for key, value in metrics.items():
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

    def _forget(self, directory: str) -> None:
        closing = self._files.pop(directory, None)
        if closing is not None:
            closing.close()

    def _opened(self) -> RunFacts:
        if self._run is None:
            raise WillNeverWork("tensorboard: not open")
        return self._run


def _place(run: RunFacts) -> Path:
    return Path(run_place("tensorboard", run).address)


def _is_inside(run: RunFacts) -> bool:
    """Whether the files are in the run's directory, which is its user's alone."""
    return _place(run) == (run.directory / "tensorboard").resolve()


def _directory(role: str | None) -> str:
    return (
        re.sub(r"^\.+", lambda dots: "%2E" * len(dots[0]), quote(role, safe=_SAFE))
        if role and role != _JOB_DIRECTORY
        else f"{_JOB_DIRECTORY}{'~' if role else ''}"
    )


def _mark(run: RunFacts) -> str:
    """What tells the run's files from those of other runs in one directory."""
    return quote(run.run_id, safe="").replace(".", "%2E")


def _file_name(run: RunFacts, suffix: str) -> str:
    """A name like tensorboard's own, but unique: theirs are the same for two writers that start in
    one second.
    """
    host, unique = socket.gethostname(), uuid.uuid4().hex[:12]
    made = f"{int(time.time()):010d}.{host}.{os.getpid()}.{unique}"
    return f"events.out.tfevents.{made}.{_mark(run)}{suffix}"


def _read(run: RunFacts, suffix: str) -> Iterator[tuple[str, Any]]:
    """Directory and event of everything in the run's files of one kind."""
    try:
        for path in sorted(_place(run).glob(f"*/events.out.tfevents.*.{_mark(run)}{suffix}")):
            for event in events.read(path):
                yield path.parent.name, event
    except OSError as error:
        raise TryAgain(f"tensorboard: cannot read {_place(run)}: {error}") from error


def _listing(run: RunFacts, file: str) -> str:
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


def _summary(tag: str, value: float | str) -> Any:
    return events.text(tag, value) if isinstance(value, str) else events.scalar(tag, value)


def _step(row: Row) -> int:
    """Steps are 64-bit whole numbers; another one is in the row under its step key."""
    return max(-_INT64_MAX, min(_INT64_MAX, int(row.step)))


def _comparable(value: float | str) -> float | str:
    """NaN is not equal to itself, but NaN was held where NaN was given."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
