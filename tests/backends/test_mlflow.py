"""MLflow, read with its own client from a real server: what its pages will show, and what an outage does."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.mlflow import form as form
from slime_logging.backends.mlflow.backend import MlflowBackend
from slime_logging.backends.process import BackendProcess
from slime_logging.errors import SettingsError, TryAgain, WillNeverWork
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario
from tests.backends.mlflow_server import MlflowServer

pytestmark = pytest.mark.xdist_group("backends-mlflow")

WRITER = Writer(label="primary")
CONFIG = RunConfig(
    values={"lr": 1e-6, "long": "x" * 10_000, "critic/lr": 5e-6, "odd @ key": [1, None]},
    roles={"actor": {"lr": 1e-6}, "critic": {"lr": 5e-6}},
)
ROWS = [
    scenario.row(1, {"train/loss": 0.5, "pass@1": 0.25, "train/note": "first"}),
    scenario.row(2, {"train/loss": 0.25, "train/note": "second"}, step=0),
]


def facts(directory: Path, uri: str | None, **changes: Any) -> RunFacts:
    given: dict[str, Any] = {
        "run_id": "r1",
        "project": "proj",
        "name": "job",
        "group": "group",
        "axes": {},
    }
    given |= {
        "directory": directory,
        "created_s": scenario.START_S,
        "options": {"mlflow_tracking_uri": uri},
    }
    return RunFacts(**given | changes)


def deliver(run: RunFacts, exit_code: int | None = 0, config: RunConfig = CONFIG) -> None:
    backend = BackendProcess("mlflow")
    backend.open(run, WRITER)
    backend.set_config(config)
    backend.write(ROWS)
    backend.close(exit_code, 30.0)


@pytest.fixture(scope="module")
def client(mlflow_server: MlflowServer) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(mlflow_server.uri)


def held_runs(client: Any, experiment: str, run_id: str) -> list[Any]:
    found = client.get_experiment_by_name(experiment)
    return list(
        client.search_runs([found.experiment_id], f"tags.`slime_logging.run_id` = '{run_id}'")
    )


@pytest.fixture(scope="module")
def held(
    mlflow_server: MlflowServer, client: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The run that the server has after two deliveries, the second with another value."""
    run = facts(tmp_path_factory.mktemp("mlflow"), mlflow_server.uri, run_id="held")
    deliver(run, None)
    deliver(run, config=RunConfig(values=CONFIG.values | {"lr": 2e-6}, roles=CONFIG.roles))
    (found,) = held_runs(client, "proj", "held")
    yield found


def artifact(client: Any, run: Any, path: str, place: Path) -> str:
    return Path(client.download_artifacts(run.info.run_id, path, str(place))).read_text(
        encoding="utf-8"
    )


def test_run_is_found_again(held: Any) -> None:
    """Two deliveries of one run are one run, named like the job."""
    assert (held.info.run_name, held.data.tags["group"]) == ("job", "group")


def test_roles_are_params(held: Any) -> None:
    """The actor's keys are un-prefixed and the critic's under `critic/`, searchable."""
    assert (held.data.params["lr"], held.data.params["critic/lr"]) == ("1e-06", "5e-06")


def test_changed_value_is_a_tag(held: Any) -> None:
    """A param cannot change: what it is now is in a tag."""
    assert held.data.tags["config/lr"] == "2e-06"


def test_long_value_is_cut_with_a_note(held: Any) -> None:
    """MLflow takes 6,000 characters; the text says where the whole is."""
    text = held.data.params["long"]
    assert (len(text), text.endswith("... (10000 characters, whole in config.json)")) == (
        6000,
        True,
    )


def test_whole_configuration_is_an_artifact(client: Any, held: Any, tmp_path: Path) -> None:
    """Typed, whole, with its real names, and up to date."""
    assert json.loads(artifact(client, held, "config.json", tmp_path)) == CONFIG.values | {
        "lr": 2e-6
    }


def test_difference_of_the_roles_is_shown(client: Any, held: Any, tmp_path: Path) -> None:
    """The run's description has the table, and artifacts have all of it."""
    line = "| lr | 1e-06 | 5e-06 |"
    assert line in held.data.tags["mlflow.note.content"]
    assert line in artifact(client, held, "role_diff.md", tmp_path)
    assert json.loads(artifact(client, held, "role_diff.json", tmp_path)) == {
        "lr": {"actor": 1e-6, "critic": 5e-6}
    }


def test_metric_has_step_and_time(client: Any, held: Any) -> None:
    """The step is the row's, a lower one too, and the time is its own in milliseconds."""
    history = client.get_metric_history(held.info.run_id, "train/loss")
    assert [(metric.step, metric.value, metric.timestamp) for metric in history] == [
        (1, 0.5, 1_790_000_000_251),
        (0, 0.25, 1_790_000_000_501),
    ]


def test_name_that_mlflow_refuses_is_spelled_out(held: Any) -> None:
    """`pass@1` is a usual metric, and no name for MLflow."""
    assert (held.data.metrics["pass:at:1"], held.data.params["odd :at: key"]) == (0.25, "[1,null]")


def test_text_of_a_row_is_in_an_artifact_and_a_tag(client: Any, held: Any, tmp_path: Path) -> None:
    """Each text with its row and step; the last one is a tag."""
    (path,) = [found.path for found in client.list_artifacts(held.info.run_id, "rows")]
    lines = [json.loads(line) for line in artifact(client, held, path, tmp_path).splitlines()]
    assert [(line["row"], line["step"], line["value"]) for line in lines] == [
        ("p0:1", 1, "first"),
        ("p0:2", 0, "second"),
    ]
    assert held.data.tags["row/train/note"] == "second"


def test_nothing_of_this_process_is_told(held: Any) -> None:
    """Neither user nor command line nor commit are in the run's tags."""
    ours = ("config/", "row/", "slime_logging.run_id", "group")
    assert {tag for tag in held.data.tags if not tag.startswith(ours)} == {
        "mlflow.note.content",
        "mlflow.runName",
    }


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [
        (0, "FINISHED"),
        (3, "FAILED"),
        (-9, "FAILED"),
        (137, "FAILED"),
        (143, "KILLED"),
        (130, "KILLED"),
    ],
)
def test_status_form(exit_code: int, status: str) -> None:
    """A job that was asked to end is KILLED, one that vanished FAILED."""
    assert form.status_form(exit_code) == status


def test_status_follows_the_job(mlflow_server: MlflowServer, client: Any, tmp_path: Path) -> None:
    """Stopped: RUNNING; failed: FAILED; opened again: RUNNING again."""
    run = facts(tmp_path, mlflow_server.uri, run_id="status", project="status")
    seen = []
    for exit_code in (None, 1):
        backend = BackendProcess("mlflow")
        backend.open(run, WRITER)
        seen.append(held_runs(client, "status", "status")[0].info.status)
        backend.close(exit_code, 30.0)
        seen.append(held_runs(client, "status", "status")[0].info.status)
    assert seen == ["RUNNING", "RUNNING", "RUNNING", "FAILED"]


def test_outage_loses_and_doubles_nothing(
    mlflow_server: MlflowServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the server hangs, write and close are TryAgain in bounded time; afterwards the missing rows complete it."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    run, backend = facts(tmp_path, mlflow_server.uri, run_id="outage"), BackendProcess("mlflow")
    backend.open(run, WRITER)
    backend.write(ROWS[:1])
    mlflow_server.freeze()
    try:
        started_s = time.monotonic()
        with pytest.raises(TryAgain):
            backend.write(ROWS)
        with pytest.raises(TryAgain):
            backend.close(0, 2.0)
        assert time.monotonic() - started_s < 30.0
    finally:
        mlflow_server.thaw()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    backend.close(0, 1.0)
    backend.open(run, WRITER)
    backend.write(ROWS)
    backend.close(0, 30.0)
    assert Counter(backend.read_points(run)) == Counter(
        point for row in ROWS for point in backend.points(row)
    )


def test_server_that_is_not_there_is_try_again(tmp_path: Path) -> None:
    """A refused connection may be mended."""
    with pytest.raises(TryAgain):
        BackendProcess("mlflow").open(facts(tmp_path, "http://127.0.0.1:9"), WRITER)


def test_name_that_the_server_refuses_is_for_good(
    mlflow_server: MlflowServer, tmp_path: Path
) -> None:
    """A refusal is told with the server's reason."""
    with pytest.raises(WillNeverWork, match="500 characters"):
        BackendProcess("mlflow").open(facts(tmp_path, mlflow_server.uri, project="p" * 501), WRITER)


def test_local_file_without_a_server(tmp_path: Path) -> None:
    """Without an address the run is in a SQLite file, artifacts included, one for all runs of a directory."""
    run = facts(tmp_path / "run", None)
    deliver(run)
    backend = BackendProcess("mlflow")
    assert Counter(backend.read_points(run)) == Counter(
        point for row in ROWS for point in backend.points(row)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow"]
    assert sorted(path.name for path in (tmp_path / "mlflow").iterdir()) == [
        "artifacts",
        "lock",
        "mlflow.db",
    ]


def test_local_file_needs_the_whole_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The skinny client has no database: the message tells both ways out."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(SettingsError, match="pip install mlflow"):
        MlflowBackend().open(facts(tmp_path, None), WRITER)


def test_address_and_experiment_variables_are_respected(
    mlflow_server: MlflowServer, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME hold where no flag says otherwise; MLFLOW_RUN_ID names no run."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server.uri)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "from the environment")
    monkeypatch.setenv("MLFLOW_RUN_ID", "somebody's")
    backend = BackendProcess("mlflow")
    backend.open(facts(tmp_path, None, run_id="variables"), WRITER)
    backend.close(0, 30.0)
    assert len(held_runs(client, "from the environment", "variables")) == 1


@pytest.mark.parametrize("key", scenario.ODD_KEYS)
def test_key_form_is_taken_by_mlflow(key: str) -> None:
    """The client's own check accepts every form of a name."""
    from mlflow.utils.validation import _validate_param

    _validate_param(form.key_form(key), "value")


def test_names_that_mlflow_would_make_alike_stay_apart() -> None:
    """Spelled out or written so: each name has a form of its own."""
    names = [
        *("pass@1", "pass_at_1", "pass:at:1", "pass:x3a:at:x3a:1", "a:b@c", "a:b:at:c", "a:b"),
        *("a//b", "a/_empty_/b", "a/:empty:/b", "..", ":x2e::x2e:", "\0", ":", "a:x0:", "é@", "é%"),
    ]
    assert len({form.key_form(name) for name in names}) == len(names)
    assert form.key_form("a:b") == "a:b"
