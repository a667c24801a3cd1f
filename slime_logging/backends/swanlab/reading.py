"""What SwanLab should hold of a run, and what its local files do hold."""

from __future__ import annotations

import math
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress

from slime_logging.backends.judging import judged
from slime_logging.backends.storable import (
    Notices,
    as_double,
    as_text,
    clean_text,
    comparable,
    digest,
    metrics_at,
    role_diff,
    storable,
)
from slime_logging.backends.swanlab import client as swanlab_client
from slime_logging.backends.swanlab.place import mode
from slime_logging.errors import NotReadable
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import as_table, read_samples, references

_EXACT = 2**53

_STEP_MAX = 2**48

_KEY_CHARACTERS, _ID_CHARACTERS = 500, 500

_TEXT_SUFFIX = "/text"

TABLE_SUFFIX = "/table"

_AGAIN = re.compile(r"~\d+$")


class SwanlabReader:
    """Reads the local files back; online nothing can be read."""

    def __init__(self) -> None:
        self._notices = Notices("swanlab")

    def points(self, row: Row) -> list[Point]:
        """One point a value: key, microseconds, step, and the number or text."""
        values = ((key, comparable(value)) for key, value in self._values(row))
        return [(_again(key), microseconds(row), step_of(row), value) for key, value in values]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """Everything in the run's local files; raises NotReadable online."""
        _check_readable(run)
        with judged("swanlab", swanlab_client.is_passing):
            for key, microseconds, step, value in swanlab_client.read_points(
                place_of(run), id_of(run)
            ):
                yield key, microseconds, step, comparable(value)

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The tables of samples, by key, step and digest."""
        found: dict[str, Point] = {}
        for name, file in references(row.metrics):
            with suppress(OSError, ValueError):
                columns, data = as_table(read_samples(run.directory, file))
                lines: list[Json] = [dict(zip(columns, line, strict=True)) for line in data]
                found[name] = (
                    f"{key_form(name)}{TABLE_SUFFIX}",
                    step_of(row),
                    digest([*columns, lines]),
                )
        return found

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """The tables in the run's local files; raises NotReadable online."""
        _check_readable(run)
        with judged("swanlab", swanlab_client.is_passing):
            for key, step, table in swanlab_client.read_tables(place_of(run), id_of(run)):
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
            return swanlab_client.read_config(place_of(run), id_of(run))

    def _values(self, row: Row) -> Iterator[tuple[str, float | str]]:
        """Numbers, and texts under keys of their own, because a column of SwanLab has values of one
        kind.
        """
        if step_of(row) != row.step:
            self._notices.once(
                "step", f"step {row.step} is no whole number from 0 to 2**48: see {row.step_key}"
            )
        for key, value in metrics_at(row, step_of(row)).items():
            name = key_form(key)
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


def mode_of(run: RunFacts) -> str:
    """SwanLab's mode for the run: online or offline."""
    return mode(run.options, os.environ)


def place_of(run: RunFacts) -> str:
    """Where the run's local files are."""
    return str(run.directory / "swanlab")


def id_of(run: RunFacts) -> str:
    """The run's id in the characters that SwanLab takes."""
    return re.sub(r"[^0-9a-zA-Z_\-.]", "_", run.run_id)[:_ID_CHARACTERS]


def key_form(key: str) -> str:
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
        f"{name}_" if _AGAIN.search(name) or name.endswith((_TEXT_SUFFIX, TABLE_SUFFIX)) else name
    )


def _again(key: str) -> str:
    """The name without `~2`, by which a second value at a step goes to a column of its own."""
    return _AGAIN.sub("", key)


def step_of(row: Row) -> int:
    """Steps are whole numbers from 0 to 2**48; another one is in the row under its step key."""
    return max(0, min(_STEP_MAX, int(row.step)))


def microseconds(row: Row) -> int:
    """The row's own time."""
    return round(row.time_s * 1e6)


def _check_readable(run: RunFacts) -> None:
    if mode_of(run) == "online":
        raise NotReadable("swanlab: an online run cannot be read back; only its own page can tell")
