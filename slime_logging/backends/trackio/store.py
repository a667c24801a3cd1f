"""Trackio's own storage, as called in the process that `vendor_process` starts.

Why its storage and not `trackio.log`: the storage takes each row's own time, tells a row delivered
twice by its id, and has stored the rows when it returns. `trackio.log` stamps rows on arrival, and
0.5 s of them are lost with the process (measured). Why a process: Trackio copies TRACKIO_DIR into
constants of many modules when it is imported.
"""

from __future__ import annotations

import html
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from slime_logging.backends.forms import digest
from slime_logging.values.json_value import Json
from slime_logging.values.samples import KIND, read_samples

_KIND_KEY = "/media"
_TABLE = "trackio.table"


def _open(project: str) -> None:
    from trackio.sqlite_storage import SQLiteStorage

    SQLiteStorage.validate_project_name(project)
    SQLiteStorage.init_db(project)


def _log(batches: Sequence[Mapping[str, Any]], directory: str) -> None:
    """Store rows; a reference to samples of the run in `directory` gets their table beside it."""
    from trackio.sqlite_storage import SQLiteStorage

    for batch in batches:
        rows = [row | tables(row, Path(directory)) for row in batch["metrics_list"]]
        SQLiteStorage.bulk_log(**{**batch, "metrics_list": rows})


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


def _is_table(value: Json) -> bool:
    return isinstance(value, dict) and value.get("_type") == _TABLE


def _rows(project: str, prefix: str) -> Iterator[tuple[str, int, str, dict[str, Json]]]:
    """Id, step, time and metrics of the rows whose id starts with `prefix`, in the order stored."""
    columns = "log_id, step, timestamp, metrics"
    query = f"SELECT {columns} FROM metrics WHERE substr(log_id, 1, ?) = ? ORDER BY id"  # noqa: S608 - constants
    for log_id, step, timestamp, metrics in _select(project, query, (len(prefix), prefix)):
        held = json.loads(metrics)
        own = {key: value for key, value in held.items() if not _is_table(value)}
        yield log_id, step, timestamp, own


def _held_tables(project: str, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Id of the row, name and digest of every table in such rows."""
    where = "substr(log_id, 1, ?) = ? AND instr(CAST(metrics AS TEXT), ?)"
    query = f"SELECT log_id, metrics FROM metrics WHERE {where}"  # noqa: S608 - constants
    for log_id, metrics in _select(project, query, (len(prefix), prefix, _TABLE)):
        for name, value in json.loads(metrics).items():
            if _is_table(value):
                yield log_id, name, digest(value)


def _configs(project: str) -> Iterator[tuple[str, dict[str, Json]]]:
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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "open": _open,
    "log": _log,
    "rows": _rows,
    "tables": _held_tables,
    "configs": _configs,
}


def is_passing(error: Exception) -> bool:
    """A locked database or a full disk may work later; a refused value never will."""
    return isinstance(error, (OSError, sqlite3.OperationalError))
