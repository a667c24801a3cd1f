"""MLflow: one run with the whole configuration as params, the other roles' under `<role>/`, and
rows as metrics.

The run's description is a table of what differs between the roles. Artifacts hold what params
cannot: `config.json` (every value, whole and typed), `role_diff.json`, `role_diff.md`, and `rows/`
for values of rows that are not numbers.

Policy: what was written is on the server when `write` returns. A param cannot change, so a value
that changed later is in the tag `config/<key>`, and `config.json` is always up to date. The run is
found again by the tag slime_logging.run_id. Where: --mlflow-tracking-uri, else MLFLOW_TRACKING_URI,
else a SQLite file in `mlflow` in the tracking directory, where several jobs may write at once.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.judging import judged
from slime_logging.backends.local_store import local_store
from slime_logging.backends.mlflow import form as form
from slime_logging.backends.mlflow.client import MlflowRun, is_passing
from slime_logging.backends.mlflow.place import DATABASE
from slime_logging.backends.place import run_place
from slime_logging.backends.storable import (
    Notices,
    clean_text,
    digest,
    flatten,
    markdown_diff,
    role_diff,
)
from slime_logging.backends.table import require_packages
from slime_logging.errors import SettingsError, WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import references

_CHANGED = "config/"
_NOTE_TAG, _NOTE_CHARACTERS = "mlflow.note.content", 7_500
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
_LIMITS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
"""MLflow's own are 120 s and 7 retries; delivery repeats by itself. Both can be set from
outside.
"""


class MlflowBackend:
    """Writes through MLflow's client."""

    name = "mlflow"
    is_durable = True

    def __init__(self) -> None:
        self._notices = Notices(self.name)
        self._directory = Path()
        self._client: MlflowRun | None = None
        self._params: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self._artifacts: dict[str, str] = {}

    def open(self, run: RunFacts, writer: Writer) -> None:  # noqa: ARG002 - one writer, whoever it is
        """Find the run by its tag or create it."""
        _check_packages(run)
        self._notices.begin()
        address = _address(run)
        with judged("mlflow", is_passing):
            client = _client(run)
            client.open(address["experiment"], address["artifacts"], run.name, _tags(run))
            self._params, self._tags = client.data("params"), client.data("tags")
        self._directory, self._client = run.directory, client

    def settle_s(self, run: RunFacts) -> float:  # noqa: ARG002 - of whatever run
        """None: what was written is there."""
        return 0.0

    def set_config(self, config: RunConfig) -> None:
        """Log new params, tags for those that changed, and the artifacts that are not as they
        were.
        """
        with judged("mlflow", is_passing):
            self._set_config(config)

    def _set_config(self, config: RunConfig) -> None:
        client = self._opened()
        wanted = self._params_of(config)
        new = {key: text for key, text in wanted.items() if key not in self._params}
        client.set("params", new)
        self._params |= new
        changes = {form.key_form(f"{_CHANGED}{key}"): (key, text) for key, text in wanted.items()}
        tags = {
            tag: text
            for tag, (key, text) in changes.items()
            if self._params[key] != text or tag in self._tags
        }
        if len(config.roles) > 1:
            tags[_NOTE_TAG] = _note(config)
        self._set_tags(
            client, {tag: text for tag, text in tags.items() if self._tags.get(tag) != text}
        )
        for path, text in _artifacts(config).items():
            if self._artifacts.get(path) != text:
                client.artifact(path, text)
                self._artifacts[path] = text

    def write(self, rows: Sequence[Row]) -> None:
        """Log numbers as metrics, everything else as lines of an artifact, and the last of it as
        tags.
        """
        for row in rows:
            self._warn(row)
        with judged("mlflow", is_passing):
            self._write(rows)

    def _write(self, rows: Sequence[Row]) -> None:
        client = self._opened()
        client.metrics([point for row in rows for point in form.numbers(row)])
        lines = [line for row in rows for line in form.lines(row)]
        if lines:
            path = f"rows/{form.key_form(rows[0].row_id.replace(':', '-').replace('/', '-'))}.jsonl"
            client.artifact(path, "".join(f"{form.line_text(line)}\n" for line in lines))
            self._set_tags(
                client,
                {form.key_form(f"row/{x['key']}"): form.value_form(x["value"]) for x in lines},
            )

        for row in rows:
            for name, file in references(row.metrics):
                path = form.table_path(name, row, file)
                client.samples(path, self._directory, file)

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Give the run its final state: FINISHED, FAILED, or KILLED after a signal."""
        del timeout_s  # its client gives up by itself, see `_LIMITS`
        client, self._client = self._client, None
        if client is not None and exit_code is not None:
            with judged("mlflow", is_passing):
                client.end(form.status_form(exit_code))

    def points(self, row: Row) -> list[Point]:
        """One point a number (key, value, milliseconds, step), and one a line for everything
        else.
        """
        numbers = [
            (key, "NaN" if math.isnan(value) else value, ms, step)
            for key, value, ms, step in form.numbers(row)
        ]
        return [*numbers, *(form.line_text(line) for line in form.lines(row))]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """What the server holds. MLflow keeps equal points of one run once, and so lines are told
        once.
        """
        with judged("mlflow", is_passing):
            client = _client(run)
            if client.attach(_address(run)["experiment"]):
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
            client = _client(run)
            if client.attach(_address(run)["experiment"]):
                yield from client.tables()

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """Param -> text, shortened to MLflow's length."""
        return dict(self._params_of(config))

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The params, and what the tags say of those that changed."""
        with judged("mlflow", is_passing):
            client = _client(run)
            if not client.attach(_address(run)["experiment"]):
                return {}
            params, tags = client.data("params"), client.data("tags")
        return {
            key: tags.get(form.key_form(f"{_CHANGED}{key}"), text) for key, text in params.items()
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

    def _warn(self, row: Row) -> None:
        for key, value in flatten(row.metrics).items():
            if not isinstance(value, (int, float)):
                self._notices.once(
                    "text",
                    f"{key} and others like it are not numbers: they are in the artifacts, in"
                    " rows/",
                )
            elif not math.isnan(form.number_form(value)) and form.number_form(value) != value:
                self._notices.once(
                    "number",
                    f"{key} has a value that is no double, which is stored as the nearest one",
                )
            if form.key_form(key) != key:
                self._notices.once(
                    "metric",
                    f"names have letters, digits, _ - . : / only: {key!r} is stored in that form",
                )

    def _set_tags(self, client: MlflowRun, tags: dict[str, str]) -> None:
        client.set("tags", tags)
        self._tags |= tags

    def _opened(self) -> MlflowRun:
        if self._client is None:
            raise WillNeverWork("mlflow: not open")
        return self._client


def _client(run: RunFacts) -> MlflowRun:
    """Settings that MLflow reads from the environment at each request, and a client for the run."""
    os.environ |= _ENVIRONMENT | {k: os.environ.get(k, v) for k, v in _LIMITS.items()}
    local = _local_store(run)
    if local:
        os.umask(0o077)
        local.mkdir(mode=0o700, parents=True, exist_ok=True)
    uri = run_place("mlflow", run).address
    return MlflowRun(uri, run.run_id, local / "lock" if local else None)


def _tags(run: RunFacts) -> dict[str, str]:
    """What MLflow keeps of a run beside its values: its group, tags, notes and kind."""
    tags = {"group": run.group, "job_type": run.options.get("tracking_job_type")}
    tags |= {"notes": run.options.get("tracking_notes")}
    own = str(run.options.get("tracking_tags") or "").split(",")
    tags |= {f"tag.{name.strip()}": "true" for name in own if name.strip()}
    return {form.key_form(key): form.value_form(text) for key, text in tags.items() if text}


def _check_packages(run: RunFacts) -> None:
    require_packages("mlflow")
    if (
        run_place("mlflow", run).address.startswith("sqlite:")
        and importlib.util.find_spec("sqlalchemy") is None
    ):
        raise SettingsError(
            "--use-mlflow without --mlflow-tracking-uri (or MLFLOW_TRACKING_URI) keeps its data in"
            " a SQLite file, which needs the whole package: give the address of a server, or pip"
            " install mlflow"
        )


def _address(run: RunFacts) -> dict[str, Any]:
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


def _note(config: RunConfig) -> str:
    """The description that the run's page shows; MLflow takes 8,000 characters."""
    table = markdown_diff(config)
    if len(table) > _NOTE_CHARACTERS:
        table = table[:_NOTE_CHARACTERS].rpartition("\n")[0] + "\n\nThe rest is in role_diff.md."
    return f"What differs between the roles:\n\n{table}"


def _artifacts(config: RunConfig) -> dict[str, str]:
    def text(value: Any) -> str:
        return clean_text(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))

    whole = {
        "config.json": text(dict(config.values)),
        "roles.json": text({k: dict(v) for k, v in config.roles.items()}),
    }
    return whole | {
        "role_diff.json": text(role_diff(config)),
        "role_diff.md": markdown_diff(config),
    }
