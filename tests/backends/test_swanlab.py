"""SwanLab: what is in its offline files, read with its own reader, and what goes wrong online."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from slime_logging.backends.base import Writer
from slime_logging.backends.process import BackendProcess
from slime_logging.errors import NotReadable, TryAgain, WillNeverWork
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario
from tests.backends.swanlab_server import KEY, SwanlabServer

WRITER = Writer(label="primary")
CONFIG = RunConfig(
    values={"lr": 1e-6, "critic/lr": 5e-6, "seed": None, "nested": {"a": [1, None]}},
    roles={"actor": {"lr": 1e-6, "seed": None}, "critic": {"lr": 5e-6, "seed": None}},
)
ROWS = [
    scenario.row(1, {"train/loss": 0.5, "train/note": "a note"}),
    scenario.row(2, {"train/critic-loss": 2.0}, role="critic", step=7),
    scenario.row(3, {"train/loss": 0.25}, step=1),
    scenario.row(4, {"train/loss": 0.125}, step=0),
    scenario.row(5, {"eval/score": 1.0}, step_key="eval/step", step=2.5),
]


def facts(directory: Path, **changes: Any) -> RunFacts:
    given: dict[str, Any] = {
        "run_id": "r1",
        "project": "my proj",
        "name": "job",
        "group": "group",
        "axes": {},
    }
    given |= {
        "directory": directory,
        "created_s": scenario.START_S,
        "options": {"swanlab_mode": "offline"},
    }
    return RunFacts(**given | changes)


def deliver(run: RunFacts, exit_code: int | None = 0) -> None:
    backend = BackendProcess("swanlab")
    backend.open(run, WRITER)
    backend.set_config(CONFIG)
    backend.write(ROWS)
    backend.close(exit_code, 30.0)


def records(directory: Path) -> list[Any]:
    """Everything in the one run file below a directory, by SwanLab's own reader."""
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    (path,) = directory.glob("swanlab/run-*/*.swanlab")
    reader = DataStoreReader()
    reader.open(path)
    found = [Record.FromString(data) for data in reader]
    reader.close()
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("swanlab")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SWANLAB_")]:
            patch.delenv(name)
        deliver(facts(directory))
    return directory


def scalars(place: Path, key: str) -> list[tuple[int, float, int]]:
    held = [
        record.scalar for record in records(place) if record.WhichOneof("record_type") == "scalar"
    ]
    return [
        (one.step, one.value.number, one.timestamp.ToMicroseconds())
        for one in held
        if one.key == key
    ]


def test_run_is_named_like_the_job(place: Path) -> None:
    """Id, name and group are the job's; the project's name is in SwanLab's alphabet."""
    start = records(place)[0].start
    assert (start.id, start.name, start.group, start.project) == ("r1", "job", "group", "my_proj")


def test_scalar_has_step_and_time(place: Path) -> None:
    """Both are the row's own, and a lower step than before is kept."""
    assert scalars(place, "train/loss") == [
        (1, 0.5, 1_790_000_000_251_000),
        (0, 0.125, 1_790_000_001_001_000),
    ]


def test_second_value_at_a_step_is_a_column_of_its_own(place: Path) -> None:
    """SwanLab would drop it without a word."""
    assert scalars(place, "train/loss~2") == [(1, 0.25, 1_790_000_000_751_000)]


def test_fractional_step_is_kept_under_its_key(place: Path) -> None:
    """SwanLab's steps are whole; the exact one is a column."""
    assert scalars(place, "eval/step") == [(2, 2.5, 1_790_000_001_251_000)]


def test_text_is_a_text_column(place: Path) -> None:
    """A metric that is no number is shown as text."""
    (held,) = [
        record.media for record in records(place) if record.WhichOneof("record_type") == "media"
    ]
    (path,) = place.glob(f"swanlab/run-*/media/text/{held.value.items[0].filename}")
    assert (held.key, held.step, path.read_text()) == ("train/note/text", 1, "a note")


def test_configuration_is_typed_and_has_the_difference(place: Path) -> None:
    """Values keep their types and nesting; None would become {}, so it is a text."""
    (path,) = place.glob("swanlab/run-*/files/config.yaml")
    held = {key: entry["value"] for key, entry in yaml.safe_load(path.read_text()).items()}
    difference = {"lr": {"actor": 1e-6, "critic": 5e-6}}
    assert held == CONFIG.values | {"seed": "None", "role_diff": difference}


def test_nothing_of_this_process_is_told(place: Path) -> None:
    """No command line, environment, packages or hardware, and no console output."""
    (metadata,) = place.glob("swanlab/run-*/files/swanlab-metadata.json")
    assert {
        key for key, value in json.loads(metadata.read_text()).items() if value is not None
    } <= {"_version"}
    assert not [record for record in records(place) if record.WhichOneof("record_type") == "log"]


@pytest.mark.parametrize(
    ("exit_code", "state"),
    [(0, "RUN_STATE_FINISHED"), (3, "RUN_STATE_CRASHED"), (-9, "RUN_STATE_CRASHED"), (None, None)],
)
def test_final_state(tmp_path: Path, exit_code: int | None, state: str | None) -> None:
    """How the job ended is in the file; a writer that only stops writes no end, but everything before it."""
    from swanlab.proto.swanlab.run.v1.run_pb2 import RunState

    deliver(facts(tmp_path), exit_code)
    ends = [
        RunState.Name(r.finish.state)
        for r in records(tmp_path)
        if r.WhichOneof("record_type") == "finish"
    ]
    assert ends == ([] if state is None else [state])


def test_left_over_variables_do_not_change_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job's SWANLAB_RUN_ID and the like name nothing here; SWANLAB_PROJ_NAME is respected."""
    monkeypatch.setenv("SWANLAB_RUN_ID", "another")
    monkeypatch.setenv("SWANLAB_EXP_NAME", "another")
    monkeypatch.setenv("SWANLAB_PROJ_NAME", "mine")
    deliver(facts(tmp_path))
    start = records(tmp_path)[0].start
    assert (start.id, start.name, start.project) == ("r1", "job", "mine")


def test_mode_variable_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SWANLAB_MODE decides where no flag does."""
    monkeypatch.setenv("SWANLAB_MODE", "cloud")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WillNeverWork, match="API key"):
        BackendProcess("swanlab").open(facts(tmp_path, options={}), WRITER)


def test_online_without_a_key_is_for_good_and_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No prompt: the reason names the key."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WillNeverWork, match="API key"):
        BackendProcess("swanlab").open(facts(tmp_path, options={"swanlab_mode": "online"}), WRITER)


def test_online_cannot_be_read_back(tmp_path: Path) -> None:
    """What the server holds is not known; the local files would tell what was sent, not what arrived."""
    with pytest.raises(WillNeverWork, match="read back"):
        list(
            BackendProcess("swanlab").read_points(
                facts(tmp_path, options={"swanlab_mode": "online"})
            )
        )


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SwanlabServer]:
    """SwanLab's server, and an environment that leads to it."""
    held = SwanlabServer()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SWANLAB_API_HOST", held.uri)
    monkeypatch.setenv("SWANLAB_API_KEY", KEY)
    monkeypatch.setenv("SWANLAB_MODE", "online")
    yield held
    held.stop()


def online(directory: Path) -> RunFacts:
    return facts(directory, options={})


def test_online_run_has_everything(server: SwanlabServer, tmp_path: Path) -> None:
    """Rows with their steps and times, the configuration and the final state reach the server."""
    deliver(online(tmp_path), 3)
    held = server.runs["r1"]
    assert [row for row in server.scalars if row[0].startswith("train/loss")] == [
        ("train/loss", 1, 0.5, "2026-09-21T14:13:20.251Z"),
        ("train/loss~2", 1, 0.25, "2026-09-21T14:13:20.751Z"),
        ("train/loss", 0, 0.125, "2026-09-21T14:13:21.001Z"),
    ]
    assert (held["config"]["critic/lr"], held["states"]) == (5e-6, ["RUNNING", "CRASHED"])
    assert (server.files, server.unexpected) == ([b"a note"], [])


def test_online_run_is_continued(server: SwanlabServer, tmp_path: Path) -> None:
    """The run with our id goes on; what SwanLab would take for old steps is kept in columns of its own."""
    for directory in (tmp_path / "a", tmp_path / "b"):
        backend = BackendProcess("swanlab")
        backend.open(online(directory), WRITER)
        backend.write([scenario.row(5, {"train/loss": 0.5}, step=4)])
        backend.close(0, 30.0)
    assert server.runs["r1"]["states"] == ["RUNNING", "FINISHED", "RUNNING", "FINISHED"]
    assert [row[:3] for row in server.scalars] == [("train/loss", 4, 0.5), ("train/loss~2", 4, 0.5)]


def test_open_online_run_is_not_asked_what_it_holds(server: SwanlabServer, tmp_path: Path) -> None:
    """Delivery sees that it cannot be read back, and sends again what was not confirmed."""
    backend = BackendProcess("swanlab")
    backend.open(online(tmp_path), WRITER)
    with pytest.raises(NotReadable):
        next(backend.read_points(online(tmp_path)))
    backend.close(0, 30.0)


def test_infinity_is_the_largest_number(server: SwanlabServer, tmp_path: Path) -> None:
    """SwanLab makes NaN of it on the way to its server."""
    backend = BackendProcess("swanlab")
    backend.open(online(tmp_path), WRITER)
    backend.write([scenario.row(1, {"x": -math.inf, "y": math.nan})])
    backend.close(0, 30.0)
    assert {row[0]: row[2] for row in server.scalars} == {"x": -sys.float_info.max, "y": "nan"}


def test_close_during_an_outage_is_try_again(server: SwanlabServer, tmp_path: Path) -> None:
    """What the server did not take within the time is not called delivered."""
    backend = BackendProcess("swanlab")
    backend.open(online(tmp_path), WRITER)
    server.refuse = 503
    backend.write(ROWS[2:])
    with pytest.raises(TryAgain):
        backend.close(0, 3.0)


def test_refused_rows_are_told_at_close(server: SwanlabServer, tmp_path: Path) -> None:
    """SwanLab's client drops what its server refuses for good, and only prints so."""
    backend = BackendProcess("swanlab")
    backend.open(online(tmp_path), WRITER)
    server.refuse = 400
    backend.write(ROWS[2:])
    with pytest.raises(WillNeverWork, match="refused"):
        backend.close(0, 30.0)


def test_wrong_key_is_for_good(
    server: SwanlabServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeating does not make it right."""
    monkeypatch.setenv("SWANLAB_API_KEY", "w" * 21)
    with pytest.raises(WillNeverWork, match="401"):
        BackendProcess("swanlab").open(online(tmp_path), WRITER)


def test_server_that_is_not_there_is_try_again(
    server: SwanlabServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused connection may be mended."""
    monkeypatch.setenv("SWANLAB_API_HOST", "http://127.0.0.1:9")
    with pytest.raises(TryAgain):
        BackendProcess("swanlab").open(online(tmp_path), WRITER)
