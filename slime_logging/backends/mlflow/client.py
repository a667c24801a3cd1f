"""MLflow's client on one run, found again by our run id.

Policy: synchronous calls only (its asynchronous queue lost 123 of 300 calls in a burst, measured),
within the server's limits for a request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slime_logging.backends.local_store import one_at_a_time
from slime_logging.backends.mlflow.form import table_text
from slime_logging.backends.storable import comparable, digest

RUN_TAG = "slime_logging.run_id"
_BATCH_METRICS = 1000
_BATCH_PARAMS = 100
_BATCH_BYTES = 500_000
"""MLflow's limits (utils/validation.py in 3.17): 1,000 metrics, 100 params or tags and 1,000,000
bytes a request.
"""

_PERMANENT_STATUS = range(400, 500)
_PASSING_STATUS = frozenset({408, 409, 423, 425, 429})
_TABLES_TAG = "mlflow.loggedArtifacts"
_NUM_TABLES = 30
"""The newest tables are named in MLflow's own tag, which has the length of one value; all of them
are among the artifacts.
"""


def _client(uri: str) -> Any:
    import mlflow
    from mlflow.tracking import MlflowClient

    mlflow.set_tracking_uri(
        uri
    )  # MLflow 3.4 and older send artifacts there, whatever the client was told
    return MlflowClient(tracking_uri=uri)


class MlflowRun:
    """A run on a server, or in a local database.

    Args:
        uri: where it is.
        run_id: ours.
        lock: the file at which the jobs that share a local database wait for each other.
    """

    def __init__(self, uri: str, run_id: str, lock: Path | None) -> None:
        self._our_id, self._lock = run_id, lock
        with one_at_a_time(lock):  # two that make the tables at once damage them
            self._client = _client(uri)
        self._run_id = ""

    def open(
        self, experiment: str, artifacts: str | None, name: str, tags: Mapping[str, str]
    ) -> None:
        """Find the run by its tag, or create it; either way it is RUNNING afterwards."""
        client = self._client
        with one_at_a_time(self._lock):
            found = client.get_experiment_by_name(experiment)
            experiment_id = (
                found.experiment_id if found else _create_experiment(client, experiment, artifacts)
            )
            run = _find(client, experiment_id, self._our_id)
            if run is None:
                own = {**tags, RUN_TAG: self._our_id}
                run = client.create_run(experiment_id, tags=own, run_name=name)
            elif run.info.status != "RUNNING":
                client.update_run(run.info.run_id, status="RUNNING")
            self._run_id = run.info.run_id

    def attach(self, experiment: str) -> bool:
        """Find the run for reading; False where there is none."""
        found = self._client.get_experiment_by_name(experiment)
        run = _find(self._client, found.experiment_id, self._our_id) if found else None
        self._run_id = run.info.run_id if run else ""
        return run is not None

    def data(self, kind: str) -> dict[str, str]:
        """The run's "params" or "tags"."""
        data = self._client.get_run(self._run_id).data
        return dict(data.params if kind == "params" else data.tags)

    def set(self, kind: str, values: Mapping[str, str]) -> None:
        """Add params or tags."""
        from mlflow.entities import Param, RunTag

        make = Param if kind == "params" else RunTag
        with one_at_a_time(self._lock):
            for batch in _batches(values):
                made = [make(key, value) for key, value in batch]
                self._client.log_batch(self._run_id, **{kind: made}, synchronous=True)

    def metrics(self, points: Sequence[tuple[str, float, int, int]]) -> None:
        """Log points of key, value, milliseconds and step."""
        from mlflow.entities import Metric

        metrics = [Metric(*point) for point in points]
        with one_at_a_time(self._lock):
            for start in range(0, len(metrics), _BATCH_METRICS):
                batch = metrics[start : start + _BATCH_METRICS]
                self._client.log_batch(self._run_id, metrics=batch, synchronous=True)

    def artifact(self, path: str, text: str) -> None:
        """Store a text as a file of the run."""
        self._client.log_text(self._run_id, text, path)

    def samples(self, path: str, directory: Path, file: str) -> None:
        """Store samples of the run in `directory` as one of the tables that MLflow's page shows."""
        try:
            text = table_text(directory, file)
        except (OSError, ValueError):  # gone, or never ours: the row that refers to it is stored
            return
        self.artifact(path, text)
        held = json.loads(self.data("tags").get(_TABLES_TAG, "[]"))
        others = [table for table in held if table.get("path") != path]
        tables = [*others, {"path": path, "type": "table"}][-_NUM_TABLES:]
        self.set("tags", {_TABLES_TAG: json.dumps(tables)})

    def end(self, status: str) -> None:
        """Give the run its final state."""
        with one_at_a_time(self._lock):
            self._client.set_terminated(self._run_id, status=status)

    def points(self) -> Iterator[tuple[str, Any, int, int]]:
        """All points held, in the form given to `metrics`; NaN as a text."""
        for key in sorted(self._client.get_run(self._run_id).data.metrics):
            for metric in self._client.get_metric_history(self._run_id, key):
                value = float(metric.value)
                yield key, comparable(value), metric.timestamp, metric.step

    def texts(self, folder: str) -> Iterator[str]:
        """The texts of all artifacts in a folder, by name."""
        found = self._client.list_artifacts(self._run_id, folder)
        for artifact in sorted(found, key=lambda one: str(one.path)):
            yield _text(self._client, self._run_id, artifact.path)

    def tables(self) -> Iterator[tuple[str, str]]:
        """Path and digest of every table of samples."""
        folders = ["samples"]
        while folders:
            for found in self._client.list_artifacts(self._run_id, folders.pop()):
                if found.is_dir:
                    folders.append(found.path)
                else:
                    yield found.path, digest(_text(self._client, self._run_id, found.path))


def _text(client: Any, run_id: str, path: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        return Path(client.download_artifacts(run_id, path, place)).read_text(encoding="utf-8")


def _batches(values: Mapping[str, str]) -> Iterator[list[tuple[str, str]]]:
    """The items in groups that MLflow takes in one request."""
    batch: list[tuple[str, str]] = []
    num_bytes = 0
    for key, value in values.items():
        num_bytes += len(json.dumps(value))
        if batch and (len(batch) == _BATCH_PARAMS or num_bytes > _BATCH_BYTES):
            yield batch
            batch, num_bytes = [], len(json.dumps(value))
        batch.append((key, value))
    if batch:
        yield batch


def _create_experiment(client: Any, name: str, artifacts: str | None) -> str:
    from mlflow.exceptions import MlflowException

    try:
        return str(client.create_experiment(name, artifact_location=artifacts))
    except MlflowException:
        found = client.get_experiment_by_name(name)  # another job may have created it meanwhile
        if found is None:
            raise
        return str(found.experiment_id)


def _find(client: Any, experiment_id: str, run_id: str) -> Any | None:
    runs = client.search_runs(
        [experiment_id], f"tags.`{RUN_TAG}` = '{run_id}'", order_by=["attributes.start_time ASC"]
    )
    return runs[0] if runs else None


def is_passing(error: Exception) -> bool:
    """The server's refusals are for good; no connection, 429 and 5xx are not."""
    from mlflow.exceptions import MlflowException

    if not isinstance(error, MlflowException):
        return isinstance(error, OSError)
    status = error.get_http_status_code()
    return status not in _PERMANENT_STATUS or status in _PASSING_STATUS
