"""What MLflow should hold of a run, and what it does hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from slime_logging.backends.judging import judged
from slime_logging.backends.local_store import local_store
from slime_logging.backends.mlflow import form as form
from slime_logging.backends.mlflow.client import MlflowRun, is_passing
from slime_logging.backends.mlflow.place import DATABASE
from slime_logging.backends.place import run_place
from slime_logging.backends.storable import (
    Notices,
    comparable,
    digest,
)
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import references

CHANGED = "config/"

_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}

_LIMITS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
"""MLflow's own are 120 s and 7 retries; delivery repeats by itself. Both can be set from
outside.
"""


class MlflowReader:
    """Reads the run back."""

    def __init__(self) -> None:
        self._notices = Notices("mlflow")

    def points(self, row: Row) -> list[Point]:
        """One point a number (key, value, milliseconds, step), and one a line for everything
        else.
        """
        numbers = [(key, comparable(value), ms, step) for key, value, ms, step in form.numbers(row)]
        return [*numbers, *(form.line_text(line) for line in form.lines(row))]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """What the server holds. MLflow keeps equal points of one run once, and so lines are told
        once.
        """
        with judged("mlflow", is_passing):
            client = client_of(run)
            if client.attach(address_of(run)["experiment"]):
                yield from client.points()
                yield from dict.fromkeys(
                    line for text in client.texts("rows") for line in text.split("\n") if line
                )

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The tables of samples, by path and digest."""
        found: dict[str, Point] = {}
        for name, file in references(row.metrics):
            with suppress(OSError, ValueError):
                text = form.table_text(run.directory, file)
                found[name] = form.table_path(name, row, file), digest(text)
        return found

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """The tables among the run's artifacts."""
        with judged("mlflow", is_passing):
            client = client_of(run)
            if client.attach(address_of(run)["experiment"]):
                yield from client.tables()

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """Param -> text, shortened to MLflow's length."""
        return dict(self._params_of(config))

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The params, and what the tags say of those that changed."""
        with judged("mlflow", is_passing):
            client = client_of(run)
            if not client.attach(address_of(run)["experiment"]):
                return {}
            params, tags = client.data("params"), client.data("tags")
        return {
            key: tags.get(form.key_form(f"{CHANGED}{key}"), text) for key, text in params.items()
        }

    def _params_of(self, config: RunConfig) -> dict[str, str]:
        params: dict[str, str] = {}
        for key, value in config.values.items():
            name, text = form.key_form(key), form.value_form(value)
            if name != key:
                self._notices.once(
                    "key",
                    f"names have letters, digits, _ - . : / only: {key!r} is stored as {name!r}",
                )
            if text.endswith(form.WHOLE_ELSEWHERE):
                self._notices.once(
                    "length",
                    f"{key} and others like it are cut at 6,000 characters, whole in config.json",
                )
            params[name] = text
        return params


def client_of(run: RunFacts) -> MlflowRun:
    """Settings that MLflow reads from the environment at each request, and a client for the run."""
    os.environ |= _ENVIRONMENT | {k: os.environ.get(k, v) for k, v in _LIMITS.items()}
    local = _local_store(run)
    if local:
        os.umask(0o077)
        local.mkdir(mode=0o700, parents=True, exist_ok=True)
    uri = run_place("mlflow", run).address
    return MlflowRun(uri, run.run_id, local / "lock" if local else None)


def address_of(run: RunFacts) -> dict[str, Any]:
    """The experiment's name, and the place of its artifacts where the store is ours."""
    local = _local_store(run)
    experiment = run.options.get("mlflow_experiment") or os.environ.get("MLFLOW_EXPERIMENT_NAME")
    return {
        "experiment": experiment or run.project,
        "artifacts": str(local / "artifacts") if local else None,
    }


def _local_store(run: RunFacts) -> Path | None:
    """Our own store's directory; None where the user chose another place."""
    own = local_store(run.directory, "mlflow")
    address = run_place("mlflow", run).address
    return own if address == f"sqlite:///{own / DATABASE}" else None
