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

import glob
import json
import os
import socket
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.storable import (
    JOB,
    as_text,
    by_role,
    clean_text,
    int64_step,
    markdown_diff,
)
from slime_logging.backends.table import require_packages
from slime_logging.backends.tensorboard import events as events
from slime_logging.backends.tensorboard.media import media_summaries
from slime_logging.backends.tensorboard.reading import (
    CONFIG_SUFFIX,
    ROWS_SUFFIX,
    SAMPLES_DIRECTORY,
    SAMPLES_SUFFIX,
    TensorboardReader,
    directory_of,
    listing,
    mark_of,
    place_of,
)
from slime_logging.errors import TryAgain, WillNeverWork
from slime_logging.values.media import media_in
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import references

_CONFIG_FILE = "events.out.tfevents.0000000000"
"""Sorts before every file of rows: TensorBoard reads the files of a directory in the order of their
names.
"""


class TensorboardBackend(TensorboardReader):
    """Writes event files."""

    name = "tensorboard"
    is_durable = True

    def __init__(self) -> None:
        super().__init__()
        self._run: RunFacts | None = None
        self._files: dict[str, events.EventFile] = {}
        self._config: RunConfig | None = None

    def open(self, run: RunFacts, writer: Writer) -> None:  # noqa: ARG002 - one writer, whoever it is
        """Create the run's directory, with a link from ours where TENSORBOARD_DIR or the flags put
        it elsewhere.
        """
        require_packages("tensorboard")
        try:
            place, link = place_of(run), run.directory / "tensorboard"
            place.mkdir(mode=0o700 if place == link else 0o777, parents=True, exist_ok=True)
            if not link.exists():
                link.unlink(missing_ok=True)  # it can lead to where nothing is any more
                link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                link.symlink_to(place, target_is_directory=True)
        except OSError as error:
            raise TryAgain(f"tensorboard: cannot create {place_of(run)}: {error}") from error
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
            records.setdefault(directory_of(row.role), []).append(
                events.event(row.time_s, int64_step(row), summaries)
            )
            for name, file in references(row.metrics):
                try:
                    text = listing(run, file)
                except (OSError, ValueError) as error:
                    text = f"not readable: {as_text(str(error))}"
                summary = events.text(clean_text(name), text)
                event = events.event(row.time_s, int64_step(row), [summary])
                records.setdefault(SAMPLES_DIRECTORY, []).append(event)
            for summary in media_summaries(row.metrics, run.directory):
                event = events.event(row.time_s, int64_step(row), [summary])
                records.setdefault(SAMPLES_DIRECTORY, []).append(event)
        for directory, batch in records.items():
            try:
                if directory not in self._files:
                    suffix = SAMPLES_SUFFIX if directory == SAMPLES_DIRECTORY else ROWS_SUFFIX
                    self._files[directory] = events.EventFile(
                        place_of(run) / directory / _file_name(run, suffix),
                        is_private=_is_inside(run),
                    )
                self._files[directory].append(batch)
            except OSError as error:
                # The file may end in half a record, behind which nothing would be found: the next
                # rows get a new one.
                self._forget(directory)
                raise TryAgain(f"tensorboard: cannot write in {place_of(run)}: {error}") from error

    def drop(self, rows: Iterable[Row]) -> None:
        """Write the files anew that hold some of these rows, without them. TensorBoard's own way, a
        restart that purges from a step on, would take the other axes of a directory along.
        """
        run = self._opened()
        gone: dict[str, set[int]] = {}
        for row in rows:
            tags = tuple(tag for tag, _ in self._tags(row))
            gone.setdefault(directory_of(row.role), set()).add(
                hash((row.time_s, int64_step(row), tags))
            )
            names = {name for name, _ in (*references(row.metrics), *media_in(row.metrics))}
            gone.setdefault(SAMPLES_DIRECTORY, set()).update(
                hash((row.time_s, int64_step(row), (clean_text(name),))) for name in names
            )
        for directory, marks in gone.items():
            self._forget(directory)
            suffix = SAMPLES_SUFFIX if directory == SAMPLES_DIRECTORY else ROWS_SUFFIX
            try:
                for path in place_of(run).glob(
                    f"{glob.escape(directory)}/*.{mark_of(run)}{suffix}"
                ):
                    events.thin_out(path, marks, is_private=_is_inside(run))
            except OSError as error:
                raise TryAgain(f"tensorboard: cannot write in {place_of(run)}: {error}") from error

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

    def _write_config(self, config: RunConfig, exit_code: int | None) -> None:
        run = self._opened()
        for role, values in by_role(config).items():
            hparams = {clean_text(key): self._hparam(key, value) for key, value in values.items()}
            listing = clean_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False))
            summaries = [
                events.session_start(f"{directory_of(role)} {run.name}", hparams, run.created_s),
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
                place_of(run) / directory_of(role), events.event(run.created_s, 0, summaries)
            )

    def _replace_config(self, place: Path, record: bytes) -> None:
        """Put a file with one event in the place of the one there; a reader sees either, whole."""
        partial = place / f".{uuid.uuid4().hex}"
        try:
            replacement = events.EventFile(partial, is_private=_is_inside(self._opened()))
            replacement.append([record])
            replacement.close()
            partial.replace(place / f"{_CONFIG_FILE}.{mark_of(self._opened())}{CONFIG_SUFFIX}")
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise TryAgain(
                f"tensorboard: cannot write the configuration in {place}: {error}"
            ) from error

    def _forget(self, directory: str) -> None:
        closing = self._files.pop(directory, None)
        if closing is not None:
            closing.close()

    def _opened(self) -> RunFacts:
        if self._run is None:
            raise WillNeverWork("tensorboard: not open")
        return self._run


def _is_inside(run: RunFacts) -> bool:
    """Whether the files are in the run's directory, which is its user's alone."""
    return place_of(run) == (run.directory / "tensorboard").resolve()


def _file_name(run: RunFacts, suffix: str) -> str:
    """A name like tensorboard's own, but unique: theirs are the same for two writers that start in
    one second.
    """
    host, unique = socket.gethostname(), uuid.uuid4().hex[:12]
    made = f"{int(time.time()):010d}.{host}.{os.getpid()}.{unique}"
    return f"events.out.tfevents.{made}.{mark_of(run)}{suffix}"


def _summary(tag: str, value: float | str) -> Any:
    return events.text(tag, value) if isinstance(value, str) else events.scalar(tag, value)
