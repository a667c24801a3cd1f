"""What Trackio's database should hold of a run, and what it does hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

from slime_logging.backends.judging import judged
from slime_logging.backends.place import run_place
from slime_logging.backends.storable import (
    JOB,
    Notices,
    by_role,
    canonical,
    clean_text,
    digest,
    flatten,
    role_diff,
    storable,
)
from slime_logging.backends.trackio import store
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

_RESERVED_METRICS = frozenset({"project", "run", "timestamp", "step", "time", "metrics"})
"""Trackio's reader overwrites these (utils.RESERVED_KEYS in 0.43); like its own client we store
them as `__<name>`.
"""

IGNORED_VARIABLES = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")

_REMOTE_VARIABLES = (*IGNORED_VARIABLES, "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID", "HF_TOKEN")

STATE_KEY = "run_state"

LABELS = {
    "run_tags": "tracking_tags",
    "run_notes": "tracking_notes",
    "run_job_type": "tracking_job_type",
}
"""Trackio has no place for these but the configuration, which its page shows and filters by."""

_OWN_KEYS = {STATE_KEY, *LABELS}


class TrackioReader:
    """Reads the database back."""

    def __init__(self) -> None:
        self._notices = Notices("trackio")

    def points(self, row: Row) -> list[Point]:
        """One point a row: its id, step, time and metrics, as Trackio keeps them."""
        return [(row.row_id, step_of(row), timestamp(row.time_s), canonical(self._metrics(row)))]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The rows in the database, in the order stored."""
        prefix = mark_of(run)
        prepare(run)
        with judged("trackio", store.is_passing):
            for log_id, step, timestamp, metrics in store.rows(run.project, prefix):
                row_id = log_id.removeprefix(prefix)
                if not row_id.startswith("config:"):
                    yield row_id, step, timestamp, canonical(metrics)

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The tables beside a row, by row id, name and digest."""
        found = store.tables(self._metrics(row), run.directory)
        return {name: (row.row_id, name, digest(table)) for name, table in found.items()}

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """The tables in the database."""
        prefix = mark_of(run)
        prepare(run)
        with judged("trackio", store.is_passing):
            for log_id, name, content in store.held_tables(run.project, prefix):
                yield log_id.removeprefix(prefix), name, content

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """`<role>: <key>` -> value, the job's own without a role."""
        return {
            f"{role}: {key}": value
            for role, held in self._by_role(config).items()
            for key, value in held.items()
        }

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """What Trackio shows as configuration of the runs in the job's group."""
        found: dict[str, Json] = {}
        prepare(run)
        with judged("trackio", store.is_passing):
            for run_id, held in store.configs(run.project):
                if run_id.startswith(mark_of(run)):
                    role = _role(run, run_id)
                    found |= {
                        f"{role}: {k}": v
                        for k, v in held.items()
                        if k[:1] != "_" and k not in _OWN_KEYS
                    }
        return found

    def _by_role(self, config: RunConfig) -> dict[str, dict[str, Json]]:
        roles = by_role(config)
        differing = role_diff(config)
        common = {
            key: value
            for values in config.roles.values()
            for key, value in values.items()
            if key not in differing
        }
        roles[JOB] = common | roles[JOB]
        return {
            role: {self._key(k): storable(v) for k, v in values.items()}
            for role, values in roles.items()
        }

    def _key(self, key: str) -> str:
        if not key.startswith("_") and key not in _OWN_KEYS:
            return clean_text(key)
        self._notices.once(
            "_", f"configuration keys like {key!r} are its own: they are stored as key:<name>"
        )
        return clean_text(f"key:{key}")

    def _metrics(self, row: Row) -> dict[str, Json]:
        flat = flatten(row.metrics)
        flat.setdefault(clean_text(row.step_key), row.step)
        held: dict[str, Json] = {}
        for key, value in flat.items():
            is_reserved = key in _RESERVED_METRICS or key.startswith("__")
            if is_reserved:
                self._notices.once(
                    key, f"the metric name {key!r} is its own: it is stored as __{key}"
                )
            held[f"__{key}" if is_reserved else key] = storable(value)
        return held


def directory_of(run: RunFacts) -> Path:
    """Where Trackio's databases are."""
    return Path(run_place("trackio", run).address)


def step_of(row: Row) -> int:
    """Trackio's steps are whole numbers; the exact one is in the row under its step key."""
    return int(row.step)


def timestamp(time_s: float) -> str:
    """A time as Trackio keeps it."""
    return datetime.fromtimestamp(time_s, timezone.utc).isoformat(timespec="microseconds")


def _role(run: RunFacts, run_id: str) -> str:
    return run_id.removeprefix(mark_of(run))


def mark_of(run: RunFacts) -> str:
    """How the ids of the job's runs and rows begin, and nobody else's."""
    return f"{quote(run.run_id, safe='')}/"


def prepare(run: RunFacts) -> None:
    """Before Trackio is imported, which copies its directory into constants of many modules."""
    for variable in _REMOTE_VARIABLES:
        os.environ.pop(variable, None)
    if not os.environ.get("TRACKIO_DIR"):
        os.umask(0o077)
    os.environ |= {"TRACKIO_DIR": str(directory_of(run)), "HF_HUB_OFFLINE": "1"}
