"""MLflow's client, as called in the process that `vendor_process` starts: one run, found again by
our run id.

Why a process: time limits, retries and telemetry are settings that MLflow reads from the
environment at each request.

Policy: synchronous calls only (its asynchronous queue lost 123 of 300 calls in a burst, measured),
within the server's limits for a request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from slime_logging.backends.forms import digest
from slime_logging.backends.local_store import one_at_a_time
from slime_logging.backends.mlflow.form import table_text

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
_state: dict[str, Any] = {}


def _client(uri: str) -> Any:
    import mlflow
    from mlflow.tracking import MlflowClient

    mlflow.set_tracking_uri(
        uri
    )  # MLflow 3.4 and older send artifacts there, whatever the client was told
    return MlflowClient(tracking_uri=uri)


def _open(
    uri: str,
    experiment: str,
    artifacts: str | None,
    lock: str | None,
    run_id: str,
    name: str,
    tags: Mapping[str, str],
) -> None:
    """Find the run by its tag, or create it; either way it is RUNNING afterwards. `lock` is the
    file at which the jobs that share a local database wait for each other.
    """
    _state["lock"] = Path(lock) if lock else None
    with one_at_a_time(_state["lock"]):  # two that make the tables at once damage them
        _open_run(_client(uri), experiment, artifacts, run_id, {"run_name": name, "tags": tags})


def _open_run(
    client: Any, experiment: str, artifacts: str | None, run_id: str, first: Mapping[str, Any]
) -> None:
    found = client.get_experiment_by_name(experiment)
    experiment_id = (
        found.experiment_id if found else _create_experiment(client, experiment, artifacts)
    )
    run = _find(client, experiment_id, run_id)
    if run is None:
        tags = {**first["tags"], RUN_TAG: run_id}
        run = client.create_run(experiment_id, tags=tags, run_name=first["run_name"])
    elif run.info.status != "RUNNING":
        client.update_run(run.info.run_id, status="RUNNING")
    _state.update(client=client, run_id=run.info.run_id)


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


def _attach(uri: str, experiment: str, lock: str | None, run_id: str) -> bool:
    """Find the run for reading; False where there is none."""
    with one_at_a_time(Path(lock) if lock else None):
        client = _client(uri)
    found = client.get_experiment_by_name(experiment)
    run = _find(client, found.experiment_id, run_id) if found else None
    _state.update(client=client, run_id=run.info.run_id if run else None)
    return run is not None


def _data(kind: str) -> dict[str, str]:
    """The run's "params" or "tags"."""
    data = _state["client"].get_run(_state["run_id"]).data
    return dict(data.params if kind == "params" else data.tags)


def _in_turn(function: Callable[..., None]) -> Callable[..., None]:
    """The function, while no other job writes the same local database."""

    @wraps(function)
    def locked(*arguments: Any, **named: Any) -> None:
        with one_at_a_time(_state["lock"]):
            function(*arguments, **named)

    return locked


@_in_turn
def _set(kind: str, values: Mapping[str, str]) -> None:
    from mlflow.entities import Param, RunTag

    make = Param if kind == "params" else RunTag
    batch: list[Any] = []
    num_bytes = 0
    for key, value in values.items():
        num_bytes += len(json.dumps(value))
        if batch and (len(batch) == _BATCH_PARAMS or num_bytes > _BATCH_BYTES):
            _state["client"].log_batch(_state["run_id"], **{kind: batch}, synchronous=True)
            batch, num_bytes = [], len(json.dumps(value))
        batch.append(make(key, value))
    if batch:
        _state["client"].log_batch(_state["run_id"], **{kind: batch}, synchronous=True)


@_in_turn
def _metrics(points: Sequence[tuple[str, float, int, int]]) -> None:
    """Log points of key, value, milliseconds and step."""
    from mlflow.entities import Metric

    metrics = [Metric(*point) for point in points]
    for start in range(0, len(metrics), _BATCH_METRICS):
        batch = metrics[start : start + _BATCH_METRICS]
        _state["client"].log_batch(_state["run_id"], metrics=batch, synchronous=True)


def _artifact(path: str, text: str) -> None:
    _state["client"].log_text(_state["run_id"], text, path)


def _samples(path: str, directory: str, file: str) -> None:
    """Store samples of the run in `directory` as one of the tables that MLflow's page shows."""
    try:
        text = table_text(Path(directory), file)
    except (OSError, ValueError):  # gone, or never ours: the row that refers to it is stored
        return
    _artifact(path, text)
    held = json.loads(_data("tags").get(_TABLES_TAG, "[]"))
    others = [table for table in held if table.get("path") != path]
    tables = [*others, {"path": path, "type": "table"}][-_NUM_TABLES:]
    _set("tags", {_TABLES_TAG: json.dumps(tables)})


@_in_turn
def _end(status: str) -> None:
    _state["client"].set_terminated(_state["run_id"], status=status)


def _points() -> Iterator[tuple[str, float, int, int]]:
    """All points held, in the form given to `_metrics`."""
    client, run_id = _state["client"], _state["run_id"]
    for key in sorted(client.get_run(run_id).data.metrics):
        for metric in client.get_metric_history(run_id, key):
            value = float(metric.value)
            yield key, "NaN" if math.isnan(value) else value, metric.timestamp, metric.step  # type: ignore[misc]


def _texts(folder: str, artifacts: Sequence[Any] = ()) -> Iterator[str]:
    """The texts of all artifacts in a folder, or of some in it, by name."""
    import tempfile
    from pathlib import Path

    client, run_id = _state["client"], _state["run_id"]
    for artifact in sorted(
        artifacts or client.list_artifacts(run_id, folder), key=lambda found: str(found.path)
    ):
        with tempfile.TemporaryDirectory() as place:
            yield Path(client.download_artifacts(run_id, artifact.path, place)).read_text(
                encoding="utf-8"
            )


def _tables() -> Iterator[tuple[str, str]]:
    """Path and digest of every table of samples."""
    client, run_id = _state["client"], _state["run_id"]
    folders = ["samples"]
    while folders:
        for found in client.list_artifacts(run_id, folders.pop()):
            if found.is_dir:
                folders.append(found.path)
            else:
                yield found.path, digest(next(_texts(found.path, [found])))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "open": _open,
    "attach": _attach,
    "data": _data,
    "set": _set,
    "metrics": _metrics,
    "artifact": _artifact,
    "samples": _samples,
    "end": _end,
    "points": _points,
    "texts": _texts,
    "tables": _tables,
}


def is_passing(error: Exception) -> bool:
    """The server's refusals are for good; no connection, 429 and 5xx are not."""
    from mlflow.exceptions import MlflowException

    if not isinstance(error, MlflowException):
        return isinstance(error, OSError)
    status = error.get_http_status_code()
    return status not in _PERMANENT_STATUS or status in _PASSING_STATUS
