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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.judging import judged
from slime_logging.backends.mlflow import form as form
from slime_logging.backends.mlflow.client import MlflowRun, is_passing
from slime_logging.backends.mlflow.reading import (
    CHANGED,
    MlflowReader,
    address_of,
    client_of,
)
from slime_logging.backends.place import run_place
from slime_logging.backends.storable import (
    clean_text,
    flatten,
    markdown_diff,
    role_diff,
)
from slime_logging.backends.table import require_packages
from slime_logging.errors import SettingsError, WillNeverWork
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts
from slime_logging.values.samples import references

_NOTE_TAG, _NOTE_CHARACTERS = "mlflow.note.content", 7_500


class MlflowBackend(MlflowReader):
    """Writes through MLflow's client."""

    name = "mlflow"
    is_durable = True
    merges_equal_points = True

    def __init__(self) -> None:
        super().__init__()
        self._directory = Path()
        self._client: MlflowRun | None = None
        self._params: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self._artifacts: dict[str, str] = {}

    def open(self, run: RunFacts, writer: Writer) -> None:  # noqa: ARG002 - one writer, whoever it is
        """Find the run by its tag or create it."""
        _check_packages(run)
        self._notices.begin()
        address = address_of(run)
        with judged("mlflow", is_passing):
            client = client_of(run)
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
        changes = {form.key_form(f"{CHANGED}{key}"): (key, text) for key, text in wanted.items()}
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
