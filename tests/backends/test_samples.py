"""Samples in every tracker: a table where it has one, the nearest where it has none; and equal when it is read back."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from slime_logging.backends.base import Writer
from slime_logging.backends.process import BackendProcess
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario
from tests.backends.conftest import Tracker
from tests.backends.mlflow_server import MlflowServer

SAMPLES = [
    {"prompt": "1 + 1 = ?", "completion": "<script>alert(1)</script>\n**2**", "reward": 1.0},
    {"prompt": "2 + 2 = ?", "completion": "x" * 20_000, "reward": 0, "note": None},
]
FILE = "media/journal-samples-0.jsonl"
REFERENCE = {
    "media": "samples",
    "file": FILE,
    "num_samples": 2,
    "columns": ["prompt", "completion"],
}


@pytest.fixture
def run(tracker: Tracker, tmp_path: Path) -> RunFacts:
    """A run to which a tracker has delivered a row with samples; its file lacks nothing."""
    directory = tmp_path / "samples-run"
    (directory / "media").mkdir(parents=True)
    (directory / FILE).write_text("".join(f"{json.dumps(sample)}\n" for sample in SAMPLES))
    run = tracker.run(directory, f"samples-{tracker.name}")
    rows = [
        scenario.row(
            1, {"rollout/samples": REFERENCE, "rollout/x": 1.0}, step_key="rollout/step", step=7
        )
    ]
    gone = {**REFERENCE, "file": "media/gone.jsonl"}
    rows.append(scenario.row(2, {"rollout/samples": gone}, step_key="rollout/step", step=8))
    backend = tracker.new()
    backend.open(run, Writer(label="primary"))
    backend.set_config(RunConfig(values={"lr": 1.0}, roles={"actor": {"lr": 1.0}}))
    backend.write(rows)
    backend.close(0, 60.0)
    reader = tracker.new()
    expected = Counter(point for row in rows for point in reader.points(row))
    assert Counter(reader.read_points(run)) == expected
    return run


def test_samples_are_shown_as_a_table(tracker: Tracker, run: RunFacts) -> None:
    """Whole texts, by the tracker's own reader; a file that is gone costs its row nothing."""
    if tracker.name == "memory":  # it holds the reference
        return
    text = "".join(SHOWN[tracker.name](run))
    assert "x" * 20_000 in text
    assert "1 + 1 = ?" in text
    assert ("<script>" in text) == (tracker.name != "trackio")  # its page shows HTML
    _assert_compared(tracker, run)


def _assert_compared(tracker: Tracker, run: RunFacts) -> None:
    """The table is told as held, one letter that differs is not; a file that the run has no more is
    not asked for."""
    reader = tracker.new()
    row = scenario.row(1, {"rollout/samples": REFERENCE}, step_key="rollout/step", step=7)
    gone = {**REFERENCE, "file": "media/gone.jsonl"}
    missing = scenario.row(2, {"rollout/samples": gone}, step_key="rollout/step", step=8)
    (mark,) = reader.media(row, run).values()
    held = set(reader.read_media(run))
    assert mark in held
    assert reader.media(missing, run) == {}
    path = run.directory / FILE
    path.write_text(path.read_text().replace("1 + 1", "1 + 2"))
    (changed,) = reader.media(row, run).values()
    assert changed not in held


def _wandb(run: RunFacts) -> Iterator[str]:
    for path in run.directory.glob("wandb/offline-run-*/files/media/table/media/rollout/*.json"):
        table = json.loads(path.read_text())
        assert table["columns"] == ["prompt", "completion", "reward", "note"]
        yield from (str(cell) for row in table["data"] for cell in row)


def _trackio(run: RunFacts) -> Iterator[str]:
    code = (
        "import json; from trackio.sqlite_storage import SQLiteStorage as S;"
        f"print(json.dumps(S.get_logs({run.project!r}, {run.name + '-actor'!r})))"
    )
    environment = os.environ | {"TRACKIO_DIR": str(run.directory.parent / "trackio")}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    for row in json.loads(shown.stdout):
        if "rollout/samples/table" in row:
            assert row["rollout/samples/table"]["_type"] == "trackio.table"
            yield from (
                str(cell)
                for line in row["rollout/samples/table"]["_value"]
                for cell in line.values()
            )


def _mlflow_run(run: RunFacts) -> Any:
    client = MlflowClient(run.options["mlflow_tracking_uri"])
    experiment = client.get_experiment_by_name(run.project)
    (found,) = client.search_runs(
        [experiment.experiment_id], f"tags.`slime_logging.run_id` = '{run.run_id}'"
    )
    return found


def _mlflow(run: RunFacts) -> Iterator[str]:
    client, found = MlflowClient(run.options["mlflow_tracking_uri"]), _mlflow_run(run)
    (table,) = json.loads(found.data.tags["mlflow.loggedArtifacts"])
    held = json.loads(Path(client.download_artifacts(found.info.run_id, table["path"])).read_text())
    assert (table["type"], held["columns"]) == ("table", ["prompt", "completion", "reward", "note"])
    yield from (str(cell) for row in held["data"] for cell in row)


def _tensorboard(run: RunFacts) -> Iterator[str]:
    from slime_logging.backends.tensorboard import events

    for path in run.directory.glob("tensorboard/~samples/*"):
        for event in events.read(path):
            for value in event.summary.value:
                assert (value.tag, event.step in (7, 8)) == ("rollout/samples", True)
                yield str(events.held_value(value))


def _swanlab(run: RunFacts) -> Iterator[str]:
    for path in run.directory.glob("swanlab/run-*/media/echarts/*.json"):
        yield json.dumps(json.loads(path.read_text()), ensure_ascii=False)


SHOWN: dict[str, Any] = {
    "wandb": _wandb,
    "trackio": _trackio,
    "mlflow": _mlflow,
    "tensorboard": _tensorboard,
    "swanlab": _swanlab,
}


@pytest.mark.xdist_group("backends-mlflow")
def test_tags_notes_and_kind_of_job_are_tags_of_mlflow(
    mlflow_server: MlflowServer, tmp_path: Path
) -> None:
    options = {
        "mlflow_tracking_uri": mlflow_server.uri,
        "tracking_tags": "a,b c",
        "tracking_notes": "why",
        "tracking_job_type": "train",
    }
    run = Tracker(name="mlflow", options=options).run(tmp_path / "run", "tagged")
    backend = BackendProcess("mlflow")
    backend.open(run, Writer(label="primary"))
    backend.close(0, 30.0)
    held = _mlflow_run(run).data.tags
    assert {key: text for key, text in held.items() if not key.startswith("mlflow.")} == {
        "slime_logging.run_id": "tagged",
        "group": "group",
        "notes": "why",
        "job_type": "train",
        "tag.a": "true",
        "tag.b c": "true",
    }


@pytest.mark.xdist_group("backends-trackio")
def test_tags_notes_and_kind_of_job_are_in_trackio_s_configuration(tmp_path: Path) -> None:
    """Beside the job's own keys, also of the same names, which are found equal all the same."""
    options = {"tracking_tags": "a,b c", "tracking_notes": "why", "tracking_job_type": "train"}
    run = Tracker(name="trackio", options=options).run(tmp_path / "run", "tagged")
    config = RunConfig(values={"run_notes": 3, "run_state": 4}, roles={})
    backend = BackendProcess("trackio")
    backend.open(run, Writer(label="primary"))
    backend.set_config(config)
    backend.close(0, 30.0)
    assert backend.read_config(run) == backend.config_as_held(config)
    database = next((tmp_path / "trackio").glob("*.db"))
    with closing(sqlite3.connect(database)) as opened:
        (text,) = opened.execute("SELECT config FROM configs").fetchone()
    held = {key: value for key, value in json.loads(text).items() if not key.startswith("_")}
    assert held == {
        "key:run_notes": 3,
        "key:run_state": 4,
        "run_state": "finished",
        "run_tags": "a,b c",
        "run_notes": "why",
        "run_job_type": "train",
    }
