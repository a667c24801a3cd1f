"""Trackio's own storage, as called in the process that `vendor_process` starts.

Why its storage and not `trackio.log`: the storage takes each row's own time, tells a row delivered
twice by its id, and has stored the rows when it returns. `trackio.log` stamps rows on arrival, and
0.5 s of them are lost with the process (measured). Why a process: Trackio copies TRACKIO_DIR into
constants of many modules when it is imported.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from slime_logging.values.json_value import Json


def _open(project: str) -> None:
    from trackio.sqlite_storage import SQLiteStorage

    SQLiteStorage.validate_project_name(project)
    SQLiteStorage.init_db(project)


def _log(batches: Sequence[Mapping[str, Any]]) -> None:
    from trackio.sqlite_storage import SQLiteStorage

    for batch in batches:
        SQLiteStorage.bulk_log(**batch)


def _rows(project: str, prefix: str) -> Iterator[tuple[str, int, str, dict[str, Json]]]:
    """Id, step, time and metrics of the rows whose id starts with `prefix`, in the order stored."""
    columns = "log_id, step, timestamp, metrics"
    query = f"SELECT {columns} FROM metrics WHERE substr(log_id, 1, ?) = ? ORDER BY id"  # noqa: S608 - constants
    for log_id, step, timestamp, metrics in _select(project, query, (len(prefix), prefix)):
        yield log_id, step, timestamp, json.loads(metrics)


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
    "configs": _configs,
}


def is_passing(error: Exception) -> bool:
    """A locked database or a full disk may work later; a refused value never will."""
    return isinstance(error, (OSError, sqlite3.OperationalError))
