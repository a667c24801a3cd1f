"""SwanLab: one run, the whole configuration searchable with the other roles' under `<role>/`, rows
with explicit steps.

`role_diff` in the configuration has what differs between the roles. SwanLab shows runs in its cloud
only: offline, its files go to `swanlab` in the run's directory, to be uploaded by `swanlab sync`.

Policy: SwanLab's client has a queue of its own, so rows are certain only when `close` returned.
Offline, each writer makes a directory of its own with the run's id, and everything can be read back
from them; online nothing can.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from slime_logging.backends.base import Writer
from slime_logging.backends.judging import judged
from slime_logging.backends.swanlab import client as swanlab_client
from slime_logging.backends.swanlab.reading import (
    TABLE_SUFFIX,
    SwanlabReader,
    id_of,
    key_form,
    microseconds,
    mode_of,
    place_of,
    step_of,
)
from slime_logging.backends.table import require_packages
from slime_logging.errors import WillNeverWork
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import references

_ORPHAN_S = 1.0
"""Within so long a killed client is gone."""


_PROJECT_CHARACTERS = 100


class SwanlabBackend(SwanlabReader):
    """Writes through SwanLab's client."""

    name = "swanlab"
    is_durable = False

    def __init__(self) -> None:
        super().__init__()
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
            client.open(mode_of(run), place_of(run), facts, id_of(run))
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
                [(step_of(row), microseconds(row), dict(self._values(row))) for row in rows]
            )
            for row in rows:
                for name, file in references(row.metrics):
                    client.samples(f"{key_form(name)}{TABLE_SUFFIX}", step_of(row), directory, file)

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

    def _opened(self) -> swanlab_client.SwanlabRun:
        if self._client is None or self._run is None:
            raise WillNeverWork("swanlab: not open")
        return self._client


def _project(run: RunFacts) -> str:
    """SwanLab takes letters, digits and _ - + . here."""
    name = run.options.get("swanlab_project") or os.environ.get("SWANLAB_PROJ_NAME") or run.project
    return re.sub(r"[^0-9a-zA-Z_\-+.]", "_", name)[:_PROJECT_CHARACTERS]


def _state(exit_code: int) -> str:
    """SwanLab's final state for an exit code: aborted for a job that was asked to end, by SIGTERM
    or Ctrl-C, and crashed for one that failed or vanished.
    """
    if exit_code == 0:
        return "success"
    return "aborted" if exit_code in (130, 143, -2, -15) else "crashed"
