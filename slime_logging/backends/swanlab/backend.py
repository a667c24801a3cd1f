"""SwanLab: one run, the whole configuration searchable with the other roles' under `<role>/`, rows
with explicit steps.

`role_diff` in the configuration has what differs between the roles. SwanLab shows runs in its cloud
only: offline, its files go to `swanlab` in the run's directory, to be uploaded by `swanlab sync`.

Policy: SwanLab's client has a queue of its own, so rows are certain only when `close` returned.
Offline, each writer makes a directory of its own with the run's id, and everything can be read back
from them; online nothing can.
"""

from __future__ import annotations

import math
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from slime_logging.backends.base import Writer
from slime_logging.backends.judging import judged
from slime_logging.backends.storable import (
    Notices,
    as_double,
    as_text,
    clean_text,
    digest,
    flatten,
    role_diff,
    storable,
)
from slime_logging.backends.swanlab import client as swanlab_client
from slime_logging.backends.swanlab.place import mode
from slime_logging.backends.table import require_packages
from slime_logging.errors import NotReadable, WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import as_table, read_samples, references

_EXACT = 2**53
_STEP_MAX = 2**48
_KEY_CHARACTERS, _PROJECT_CHARACTERS, _ID_CHARACTERS = 500, 100, 500
_ORPHAN_S = 1.0
"""Within so long a killed client is gone."""

_TEXT_SUFFIX = "/text"
_TABLE_SUFFIX = "/table"
_AGAIN = re.compile(r"~\d+$")


class SwanlabBackend:
    """Writes through SwanLab's client."""

    name = "swanlab"
    is_durable = False

    def __init__(self) -> None:
        self._notices = Notices(self.name)
        self._run: RunFacts | None = None
        self._client: swanlab_client.SwanlabRun | None = None

    def open(self, run: RunFacts, writer: Writer) -> None:  # noqa: ARG002 - one writer, whoever it is
        """Start a run (offline), or continue the one with this id (online)."""
        require_packages("swanlab")
        self._notices.begin()
        os.umask(0o077)
        client = swanlab_client.SwanlabRun()
        workspace = run.options.get("swanlab_workspace")
        facts = {
            "project": _project(run),
            "workspace": workspace,
            "name": run.name[:512],
            "group": run.group,
            "job_type": run.options.get("tracking_job_type"),
            "description": run.options.get("tracking_notes"),
            "tags": [tag for tag in str(run.options.get("tracking_tags") or "").split(",") if tag],
        }
        with judged("swanlab", swanlab_client.is_passing):
            client.open(_mode(run), _place(run), facts, _id(run))
        self._run, self._client = run, client

    def settle_s(self, run: RunFacts) -> float:  # noqa: ARG002 - of whatever run
        """Until a killed client is gone."""
        return _ORPHAN_S

    def set_config(self, config: RunConfig) -> None:
        """Update the run's configuration with what changed."""
        client = self._opened()
        with judged("swanlab", swanlab_client.is_passing):
            client.set_config(self.config_as_held(config))

    def write(self, rows: Sequence[Row]) -> None:
        """Put the rows into the client's queue."""
        client = self._opened()
        directory = self._run.directory if self._run else Path()
        with judged("swanlab", swanlab_client.is_passing):
            client.write(
                [(_step(row), _microseconds(row), dict(self._values(row))) for row in rows]
            )
            for row in rows:
                for name, file in references(row.metrics):
                    client.samples(f"{_key(name)}{_TABLE_SUFFIX}", _step(row), directory, file)

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Flush, with the final state success, crashed, or aborted after a signal."""
        del timeout_s  # it cannot be told: whoever waits ends the process
        client, self._client = self._client, None
        if client is None:
            return
        state = None if exit_code is None else _state(exit_code)
        error = f"exit code {exit_code}" if state in ("crashed", "aborted") else None
        with judged("swanlab", swanlab_client.is_passing):
            client.finish(state, error)

    def points(self, row: Row) -> list[Point]:
        """One point a value: key, microseconds, step, and the number or text."""
        values = ((key, _comparable(value)) for key, value in self._values(row))
        return [(_again(key), _microseconds(row), _step(row), value) for key, value in values]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """Everything in the run's local files; raises NotReadable online."""
        _check_readable(run)
        with judged("swanlab", swanlab_client.is_passing):
            for key, microseconds, step, value in swanlab_client.read_points(_place(run), _id(run)):
                yield key, microseconds, step, _comparable(value)

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The tables of samples, by key, step and digest."""
        found: dict[str, Point] = {}
        for name, file in references(row.metrics):
            with suppress(OSError, ValueError):
                columns, data = as_table(read_samples(run.directory, file))
                lines: list[Json] = [dict(zip(columns, line, strict=True)) for line in data]
                found[name] = f"{_key(name)}{_TABLE_SUFFIX}", _step(row), digest([*columns, lines])
        return found

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """The tables in the run's local files; raises NotReadable online."""
        _check_readable(run)
        with judged("swanlab", swanlab_client.is_passing):
            for key, step, table in swanlab_client.read_tables(_place(run), _id(run)):
                columns = [column["field"] for column in table["colDefs"]]
                yield key, step, digest([*columns, table["rowData"]])

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """The flat view; None as text, since SwanLab makes `{}` of it."""
        if any(value is None for value in config.values.values()):
            self._notices.once("None", "None in the configuration is stored as the text None")
        held = {
            clean_text(key): "None" if value is None else storable(value)
            for key, value in config.values.items()
        }
        if len(config.roles) > 1:
            held["role_diff"] = storable({key: dict(by) for key, by in role_diff(config).items()})
        return held

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The configuration in the newest of the run's local files; raises NotReadable online."""
        _check_readable(run)
        with judged("swanlab", swanlab_client.is_passing):
            return swanlab_client.read_config(_place(run), _id(run))

    def _values(self, row: Row) -> Iterator[tuple[str, float | str]]:
        """Numbers, and texts under keys of their own, because a column of SwanLab has values of one
        kind.
        """
        metrics = flatten(row.metrics)
        if _step(row) != row.step:
            self._notices.once(
                "step", f"step {row.step} is no whole number from 0 to 2**48: see {row.step_key}"
            )
            metrics.setdefault(clean_text(row.step_key), row.step)
        for key, value in metrics.items():
            name = _key(key)
            if name != key:
                self._notices.once(
                    "key", f"{key!r} is no name for a column: it is stored as {name!r}"
                )
            if isinstance(value, (int, float)):
                yield name, self._number(key, value)
            else:
                self._notices.once(
                    "text",
                    f"{key} and others like it are no numbers: stored as texts, in <key>/text",
                )
                yield f"{name}{_TEXT_SUFFIX}", "None" if value is None else as_text(value)

    def _number(self, key: str, value: float) -> float:
        if isinstance(value, int) and abs(value) > _EXACT:
            self._notices.once(
                "int", f"{key} and others like it are rounded to a double, being beyond 2**53"
            )
        number = as_double(value)
        if math.isinf(number):
            self._notices.once(
                "infinity",
                f"{key} is infinite, of which SwanLab makes NaN: the largest number is kept",
            )
            return math.copysign(sys.float_info.max, number)
        return number

    def _opened(self) -> swanlab_client.SwanlabRun:
        if self._client is None or self._run is None:
            raise WillNeverWork("swanlab: not open")
        return self._client


def _mode(run: RunFacts) -> str:
    return mode(run.options, os.environ)


def _place(run: RunFacts) -> str:
    return str(run.directory / "swanlab")


def _project(run: RunFacts) -> str:
    """SwanLab takes letters, digits and _ - + . here."""
    name = run.options.get("swanlab_project") or os.environ.get("SWANLAB_PROJ_NAME") or run.project
    return re.sub(r"[^0-9a-zA-Z_\-+.]", "_", name)[:_PROJECT_CHARACTERS]


def _id(run: RunFacts) -> str:
    return re.sub(r"[^0-9a-zA-Z_\-.]", "_", run.run_id)[:_ID_CHARACTERS]


def _key(key: str) -> str:
    """A column's name: SwanLab cuts spaces, dots and slashes off both ends, and drops control
    characters' owners.
    """
    name = re.sub(r"[\x00-\x1f\x7f]", lambda found: f"_x{ord(found[0]):02x}_", key)
    if not name or name != name.strip(" ./"):
        name = f"_{name}_"
    if name.startswith("__swanlab__"):
        name = f"_{name}"
    if len(name) > _KEY_CHARACTERS:
        name = f"{name[: _KEY_CHARACTERS - 9]}-{zlib.crc32(name.encode()):08x}"
    return (
        f"{name}_" if _AGAIN.search(name) or name.endswith((_TEXT_SUFFIX, _TABLE_SUFFIX)) else name
    )


def _again(key: str) -> str:
    """The name without `~2`, by which a second value at a step goes to a column of its own."""
    return _AGAIN.sub("", key)


def _step(row: Row) -> int:
    return max(0, min(_STEP_MAX, int(row.step)))


def _microseconds(row: Row) -> int:
    return round(row.time_s * 1e6)


def _comparable(value: float | str) -> float | str:
    """NaN is not equal to itself, but NaN was held where NaN was given."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _state(exit_code: int) -> str:
    """SwanLab's final state for an exit code: aborted for a job that was asked to end, by SIGTERM
    or Ctrl-C, and crashed for one that failed or vanished.
    """
    if exit_code == 0:
        return "success"
    return "aborted" if exit_code in (130, 143, -2, -15) else "crashed"


def _check_readable(run: RunFacts) -> None:
    if _mode(run) == "online":
        raise NotReadable("swanlab: an online run cannot be read back; only its own page can tell")
