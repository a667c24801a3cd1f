"""Trackio: one of its runs for each role, all in the group of the job, with that role's
configuration un-prefixed.

In its run comparer, "Diff only" then shows what differs between actor and critic. Rows of a role
are in the role's run; those of processes whose role has no configuration (driver, rollout, system)
in a run named like the job. That one has what belongs to no role (overrides, facts), and what all
roles have in common, or else every key would differ where it is shown too.

Policy: files only, no account, no network. A row is stored when `write` returns, with its own time
and step, once however often it is delivered. Where: TRACKIO_DIR, else `trackio` in the
tracking directory, where several jobs may write at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from slime_logging.backends.base import Writer
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
from slime_logging.backends.table import require_packages
from slime_logging.backends.trackio import store
from slime_logging.errors import WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

_RESERVED_METRICS = frozenset({"project", "run", "timestamp", "step", "time", "metrics"})
"""Trackio's reader overwrites these (utils.RESERVED_KEYS in 0.43); like its own client we store
them as `__<name>`.
"""

_IGNORED_VARIABLES = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")
_REMOTE_VARIABLES = (*_IGNORED_VARIABLES, "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID", "HF_TOKEN")
_STATE_KEY = "run_state"
_LABELS = {
    "run_tags": "tracking_tags",
    "run_notes": "tracking_notes",
    "run_job_type": "tracking_job_type",
}
"""Trackio has no place for these but the configuration, which its page shows and filters by."""
_OWN_KEYS = {_STATE_KEY, *_LABELS}
_STATES = {0: "finished", 143: "preempted (SIGTERM)"}


class TrackioBackend:
    """Writes Trackio's database through its own storage."""

    name = "trackio"
    is_durable = True

    def __init__(self) -> None:
        self._notices = Notices(self.name)
        self._run: RunFacts | None = None
        self._configs: dict[str, dict[str, Json]] = {}

    def open(self, run: RunFacts, writer: Writer) -> None:  # noqa: ARG002 - one writer, whoever it is
        """Create the project's database."""
        require_packages("trackio")
        self._notices.begin()
        for variable in _IGNORED_VARIABLES:
            if os.environ.get(variable):
                self._notices.once(
                    variable,
                    f"{variable} is set, but rows would lose their times there: everything is"
                    f" stored in {_directory(run)}. Move it when the job is over: trackio sync"
                    f" --project {run.project}",
                )
        _prepare(run)
        with judged("trackio", store.is_passing):
            store.open_project(run.project)
        self._run = run

    def settle_s(self, run: RunFacts) -> float:  # noqa: ARG002 - of whatever run
        """None: what was written is there."""
        return 0.0

    def set_config(self, config: RunConfig) -> None:
        """Replace the configuration of every role's run whose configuration changed."""
        held = self._opened()
        changed = {
            role: values
            for role, values in self._by_role(config).items()
            if self._configs.get(role) != values
        }
        state = {_STATE_KEY: "running"}
        self._log([_config_batch(held, role, values | state) for role, values in changed.items()])
        self._configs |= changed

    def write(self, rows: Sequence[Row]) -> None:
        """Store the rows; those stored before are recognised by their id and skipped."""
        held = self._opened()
        batches: dict[str, dict[str, Any]] = {}
        for row in rows:
            role = row.role if row.role in held.roles else JOB
            batch = batches.setdefault(role, _batch(held, role))
            batch["metrics_list"].append(self._metrics(row))
            batch["steps"].append(_step(row))
            batch["timestamps"].append(_timestamp(row.time_s))
            batch["log_ids"].append(f"{_mark(held)}{row.row_id}")
        self._log(list(batches.values()))

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Note the final state in each configuration."""
        del timeout_s
        run = self._run
        if run is not None and exit_code is not None:
            word = _STATES.get(exit_code, f"failed (exit code {exit_code})")
            batches = [
                _config_batch(run, role, values | {_STATE_KEY: word})
                for role, values in self._configs.items()
            ]
            self._log(batches)
        self._run = None

    def points(self, row: Row) -> list[Point]:
        """One point a row: its id, step, time and metrics, as Trackio keeps them."""
        return [(row.row_id, _step(row), _timestamp(row.time_s), canonical(self._metrics(row)))]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The rows in the database, in the order stored."""
        prefix = _mark(run)
        _prepare(run)
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
        prefix = _mark(run)
        _prepare(run)
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
        _prepare(run)
        with judged("trackio", store.is_passing):
            for run_id, held in store.configs(run.project):
                if run_id.startswith(_mark(run)):
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

    def _log(self, batches: list[dict[str, Any]]) -> None:
        directory = self._opened().directory
        with judged("trackio", store.is_passing):
            store.log(batches, directory)

    def _opened(self) -> RunFacts:
        if self._run is None:
            raise WillNeverWork("trackio: not open")
        return self._run


def _directory(run: RunFacts) -> Path:
    return Path(run_place("trackio", run).address)


def _batch(run: RunFacts, role: str) -> dict[str, Any]:
    """An empty call of Trackio's storage for the run of one role."""
    return {
        "project": run.project,
        "run": f"{run.name}-{role}" if role else run.name,
        "run_id": f"{_mark(run)}{role}",
        "metrics_list": [],
        "steps": [],
        "timestamps": [],
        "log_ids": [],
    }


def _config_batch(run: RunFacts, role: str, values: Mapping[str, Json]) -> dict[str, Any]:
    """The call that replaces a configuration.

    Trackio stores one together with rows only, hence the empty row, which is the same at every call
    and so stored once.
    """
    own = {
        "_Username": None,
        "_Created": _timestamp(run.created_s),
        "_Group": run.group or run.name,
    }
    return _batch(run, role) | {
        "metrics_list": [{}],
        "steps": [0],
        "timestamps": [_timestamp(run.created_s)],
        "log_ids": [f"{_mark(run)}config:{role}"],
        "config": {**values, **own, **_labels(run)},
    }


def _labels(run: RunFacts) -> dict[str, str]:
    found = {key: run.options.get(option) for key, option in _LABELS.items()}
    return {key: clean_text(str(value)) for key, value in found.items() if value}


def _step(row: Row) -> int:
    """Trackio's steps are whole numbers; the exact one is in the row under its step key."""
    return int(row.step)


def _timestamp(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, timezone.utc).isoformat(timespec="microseconds")


def _role(run: RunFacts, run_id: str) -> str:
    return run_id.removeprefix(_mark(run))


def _mark(run: RunFacts) -> str:
    """How the ids of the job's runs and rows begin, and nobody else's."""
    return f"{quote(run.run_id, safe='')}/"


def _prepare(run: RunFacts) -> None:
    """Before Trackio is imported, which copies its directory into constants of many modules."""
    for variable in _REMOTE_VARIABLES:
        os.environ.pop(variable, None)
    if not os.environ.get("TRACKIO_DIR"):
        os.umask(0o077)
    os.environ |= {"TRACKIO_DIR": str(_directory(run)), "HF_HUB_OFFLINE": "1"}
