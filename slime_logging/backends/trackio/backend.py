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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.judging import judged
from slime_logging.backends.storable import (
    JOB,
    clean_text,
)
from slime_logging.backends.table import require_packages
from slime_logging.backends.trackio import store
from slime_logging.backends.trackio.reading import (
    IGNORED_VARIABLES,
    LABELS,
    STATE_KEY,
    TrackioReader,
    directory_of,
    mark_of,
    prepare,
    step_of,
    timestamp,
)
from slime_logging.errors import WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts

_STATES = {0: "finished", 143: "preempted (SIGTERM)"}


class TrackioBackend(TrackioReader):
    """Writes Trackio's database through its own storage."""

    name = "trackio"
    is_durable = True

    def __init__(self) -> None:
        super().__init__()
        self._run: RunFacts | None = None
        self._configs: dict[str, dict[str, Json]] = {}

    def open(self, run: RunFacts, writer: Writer) -> None:  # noqa: ARG002 - one writer, whoever it is
        """Create the project's database."""
        require_packages("trackio")
        self._notices.begin()
        for variable in IGNORED_VARIABLES:
            if os.environ.get(variable):
                self._notices.once(
                    variable,
                    f"{variable} is set, but rows would lose their times there: everything is"
                    f" stored in {directory_of(run)}. Move it when the job is over: trackio sync"
                    f" --project {run.project}",
                )
        prepare(run)
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
        state = {STATE_KEY: "running"}
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
            batch["steps"].append(step_of(row))
            batch["timestamps"].append(timestamp(row.time_s))
            batch["log_ids"].append(f"{mark_of(held)}{row.row_id}")
        self._log(list(batches.values()))

    def drop(self, rows: Iterable[Row]) -> None:
        """Delete the rows."""
        held = self._opened()
        with judged("trackio", store.is_passing):
            store.delete(held.project, (f"{mark_of(held)}{row.row_id}" for row in rows))

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Note the final state in each configuration."""
        del timeout_s
        run = self._run
        if run is not None and exit_code is not None:
            word = _STATES.get(exit_code, f"failed (exit code {exit_code})")
            batches = [
                _config_batch(run, role, values | {STATE_KEY: word})
                for role, values in self._configs.items()
            ]
            self._log(batches)
        self._run = None

    def _log(self, batches: list[dict[str, Any]]) -> None:
        directory = self._opened().directory
        with judged("trackio", store.is_passing):
            store.log(batches, directory)

    def _opened(self) -> RunFacts:
        if self._run is None:
            raise WillNeverWork("trackio: not open")
        return self._run


def _batch(run: RunFacts, role: str) -> dict[str, Any]:
    """An empty call of Trackio's storage for the run of one role."""
    return {
        "project": run.project,
        "run": f"{run.name}-{role}" if role else run.name,
        "run_id": f"{mark_of(run)}{role}",
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
        "_Created": timestamp(run.created_s),
        "_Group": run.group or run.name,
    }
    return _batch(run, role) | {
        "metrics_list": [{}],
        "steps": [0],
        "timestamps": [timestamp(run.created_s)],
        "log_ids": [f"{mark_of(run)}config:{role}"],
        "config": {**values, **own, **_labels(run)},
    }


def _labels(run: RunFacts) -> dict[str, str]:
    found = {key: run.options.get(option) for key, option in LABELS.items()}
    return {key: clean_text(str(value)) for key, value in found.items() if value}
