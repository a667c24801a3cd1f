"""Trackio's own storage.

Why its storage and not `trackio.log`: the storage takes each row's own time, tells a row delivered
twice by its id, and has stored the rows when it returns. `trackio.log` stamps rows on arrival, and
0.5 s of them are lost with the process (measured).
"""

from __future__ import annotations

import html
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from slime_logging.backends.storable import digest
from slime_logging.values.json_value import Json
from slime_logging.values.media import media_file, media_in
from slime_logging.values.samples import KIND, read_samples

_KIND_KEY = "/media"
_TABLE = "trackio.table"
_KINDS = {
    "image": "Image",
    "histogram": "Histogram",
    "audio": "Audio",
    "video": "Video",
    "html": "Html",
}


def open_project(project: str) -> None:
    """Create the project's database where there is none."""
    from trackio.sqlite_storage import SQLiteStorage

    SQLiteStorage.validate_project_name(project)
    SQLiteStorage.init_db(project)


def log(batches: Sequence[Mapping[str, Any]], directory: Path) -> None:
    """Store rows; a reference to samples of the run in `directory` gets their table beside it."""
    from trackio.sqlite_storage import SQLiteStorage

    for batch in batches:
        steps = batch["steps"]
        rows = [
            row | tables(row, directory) | _media(row, directory, batch, step)
            for row, step in zip(batch["metrics_list"], steps, strict=True)
        ]
        SQLiteStorage.bulk_log(**{**batch, "metrics_list": rows})


def delete(project: str, log_ids: Iterable[str]) -> None:
    """Delete rows by their ids; its storage itself deletes whole runs only."""
    from trackio.sqlite_storage import SQLiteStorage

    path = SQLiteStorage.init_db(project)
    with SQLiteStorage._get_process_lock(project), SQLiteStorage._get_connection(path) as database:
        database.executemany("DELETE FROM metrics WHERE log_id = ?", ((each,) for each in log_ids))


def tables(row: Mapping[str, Json], directory: Path) -> dict[str, Json]:
    """Trackio's tables of the samples that a row refers to. Its page shows a cell as HTML, so the
    cells are escaped: what a model wrote stays text.
    """
    found: dict[str, Json] = {}
    for kind in [key for key, value in row.items() if value == KIND and key.endswith(_KIND_KEY)]:
        name = kind.removesuffix(_KIND_KEY)
        with suppress(OSError, ValueError):
            rows: list[Json] = [
                {
                    column: html.escape(value, quote=False) if isinstance(value, str) else value
                    for column, value in sample.items()
                }
                for sample in read_samples(directory, str(row.get(f"{name}/file")))
            ]
            found[f"{name}/table"] = {"_type": _TABLE, "_value": rows}
    return found


def _media(
    row: Mapping[str, Json], directory: Path, batch: Mapping[str, Any], step: int
) -> dict[str, Json]:
    """Trackio's own images, histograms, sound, films and pages beside the plain forms, which stand
    flat in the row: `<name>/media`, `<name>/file`.
    """
    made: dict[str, Json] = {}
    for name, form in _forms(row):
        with suppress(OSError, ValueError, TypeError, KeyError):
            made[f"{name}/{form['media']}"] = _own(form, directory, batch, step)
    return made


def _forms(row: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    for key in [key for key, value in row.items() if key.endswith(_KIND_KEY) and value in _KINDS]:
        name = key.removesuffix(_KIND_KEY)
        parts = ("media", "file", "caption", "counts", "edges")
        yield name, {part: row.get(f"{name}/{part}") for part in parts}
    lists = {key: value for key, value in row.items() if isinstance(value, list)}
    yield from (found for found in media_in(lists) if found[1]["media"] in _KINDS)


def _own(form: Mapping[str, Any], directory: Path, batch: Mapping[str, Any], step: int) -> Json:
    import trackio

    kind = form["media"]
    if kind == "histogram":
        made: Any = trackio.Histogram(np_histogram=(form["counts"], form["edges"]))
        return made._to_dict()  # type: ignore[no-any-return]
    caption = form.get("caption")
    make = getattr(trackio, _KINDS[kind])
    made = make(str(media_file(directory, form)), caption=None if caption is None else str(caption))
    made._save(batch["project"], batch["run"], step)
    return made._to_dict()  # type: ignore[no-any-return]


def _is_own(value: Json) -> bool:
    return isinstance(value, dict) and str(value.get("_type")).startswith("trackio.")


def rows(project: str, prefix: str) -> Iterator[tuple[str, int, str, dict[str, Json]]]:
    """Id, step, time and metrics of the rows whose id starts with `prefix`, in the order stored."""
    columns = "log_id, step, timestamp, metrics"
    query = f"SELECT {columns} FROM metrics WHERE substr(log_id, 1, ?) = ? ORDER BY id"  # noqa: S608 - constants
    for log_id, step, timestamp, metrics in _select(project, query, (len(prefix), prefix)):
        held = json.loads(metrics)
        own = {key: value for key, value in held.items() if not _is_own(value)}
        yield log_id, step, timestamp, own


def held_tables(project: str, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Id of the row, name and digest of every table in rows whose id starts with `prefix`."""
    where = "substr(log_id, 1, ?) = ? AND instr(CAST(metrics AS TEXT), ?)"
    query = f"SELECT log_id, metrics FROM metrics WHERE {where}"  # noqa: S608 - constants
    for log_id, metrics in _select(project, query, (len(prefix), prefix, _TABLE)):
        for name, value in json.loads(metrics).items():
            if isinstance(value, dict) and value.get("_type") == _TABLE:
                yield log_id, name, digest(value)


def configs(project: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Run id and configuration of every run in the project."""
    for run_id, config in _select(project, "SELECT run_id, config FROM configs", ()):
        yield run_id, json.loads(config)


def _select(project: str, query: str, values: tuple[str | int, ...]) -> Iterator[tuple[Any, ...]]:
    from trackio.sqlite_storage import SQLiteStorage

    path = Path(SQLiteStorage.get_project_db_path(project))
    if path.exists():
        with closing(
            sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30.0)
        ) as database:
            yield from database.execute(query, values)


def is_passing(error: Exception) -> bool:
    """A locked database or a full disk may work later; a refused value never will."""
    return isinstance(error, (OSError, sqlite3.OperationalError))
