"""Where rows go: the client that opens a place and the cursor that counts for it never speak of two different ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.place import place_of
from slime_logging.backends.process import BackendProcess
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.delivery import Delivery
from slime_logging.record.run import RunDirectory
from tests.delivery.test_delivery import add_rows, journal
from tests.record.test_run import run_file

OFFLINE = {"wandb_mode": "offline", "swanlab_mode": "offline"}

ELSEWHERE: dict[str, list[tuple[dict[str, Any], dict[str, str]]]] = {
    "wandb": [
        ({"wandb_mode": "offline"}, {}),
        ({"wandb_mode": "offline", "wandb_dir": "/else"}, {}),
        ({"wandb_mode": "online"}, {}),
        ({"wandb_mode": "online", "wandb_host": "https://one.example"}, {}),
        ({"wandb_mode": "online", "wandb_host": "https://two.example"}, {}),
        ({"wandb_mode": "online", "wandb_team": "team"}, {}),
        ({"wandb_mode": "online"}, {"WANDB_BASE_URL": "https://three.example"}),
    ],
    "trackio": [({}, {}), ({}, {"TRACKIO_DIR": "/one"}), ({}, {"TRACKIO_DIR": "/two"})],
    "mlflow": [
        ({}, {}),
        ({"mlflow_tracking_uri": "http://one.example"}, {}),
        ({}, {"MLFLOW_TRACKING_URI": "http://two.example"}),
        ({}, {"MLFLOW_TRACKING_URI": "sqlite:////else/mlflow.db"}),
    ],
    "tensorboard": [
        ({}, {}),
        ({}, {"TENSORBOARD_DIR": "/one"}),
        ({"tb_project_name": "p", "tb_experiment_name": "e"}, {}),
    ],
    "swanlab": [
        ({"swanlab_mode": "offline"}, {}),
        ({}, {"SWANLAB_MODE": "cloud"}),
        ({"swanlab_mode": "cloud"}, {"SWANLAB_API_HOST": "https://one.example"}),
        ({"swanlab_mode": "cloud", "swanlab_workspace": "team"}, {}),
    ],
}


@pytest.mark.parametrize("tracker", ELSEWHERE)
def test_another_place_has_another_cursor(tracker: str, tmp_path: Path) -> None:
    """What one place has confirmed says nothing of any other, by whatever flag or variable it was chosen."""
    places = [
        place_of(tracker, options, env, tmp_path / "run") for options, env in ELSEWHERE[tracker]
    ]
    assert len({place.address for place in places}) == len(places)
    assert len({place.key for place in places}) == len(places)
    assert all(set(place.key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for place in places)


@pytest.mark.parametrize(
    ("tracker", "one", "other"),
    [
        (
            "wandb",
            ({"wandb_mode": "online", "wandb_host": "https://one.example/"}, {}),
            ({"wandb_mode": "online"}, {"WANDB_BASE_URL": "https://one.example"}),
        ),
        (
            "mlflow",
            ({"mlflow_tracking_uri": "http://user:old@one.example"}, {}),
            ({}, {"MLFLOW_TRACKING_URI": "http://user:new@one.example"}),
        ),
    ],
)
def test_the_same_place_said_otherwise_has_the_same_cursor(
    tracker: str, one: tuple[Any, Any], other: tuple[Any, Any], tmp_path: Path
) -> None:
    assert place_of(tracker, *one, tmp_path).key == place_of(tracker, *other, tmp_path).key


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    for name in ("TRACKIO_DIR", "MLFLOW_TRACKING_URI", "TENSORBOARD_DIR", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)
    directory = RunDirectory(tmp_path / "tracking" / "abc")
    directory.path.parent.mkdir()
    directory.create()
    directory.start(run_file())
    add_rows(journal(directory), 5)
    return directory


@pytest.mark.parametrize(
    ("tracker", "variable", "option"),
    [
        ("trackio", "TRACKIO_DIR", ""),
        ("mlflow", "MLFLOW_TRACKING_URI", ""),
        ("mlflow", "", "mlflow_tracking_uri"),
        ("wandb", "", "wandb_dir"),
        ("tensorboard", "TENSORBOARD_DIR", ""),
    ],
)
def test_a_second_place_gets_every_row_too_and_the_first_keeps_its_own(
    run: RunDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tracker: str,
    variable: str,
    option: str,
) -> None:
    """ "Complete" is said of the place that was asked for: it holds the rows."""
    assert (deliver(run, tracker, OFFLINE), held(run, tracker, OFFLINE)) == (5, 5)
    options = dict(OFFLINE)
    elsewhere = str(tmp_path / "else")
    if tracker == "mlflow":
        Path(elsewhere).mkdir()
        elsewhere = f"sqlite:///{elsewhere}/mlflow.db"
    if tracker == "tensorboard":  # its files stay where they are, as long as they are there
        (run.path / "tensorboard").rename(tmp_path / "moved")
    if variable:
        monkeypatch.setenv(variable, elsewhere)
    else:
        options[option] = elsewhere
    assert (deliver(run, tracker, options), held(run, tracker, options)) == (5, 5)


def deliver(run: RunDirectory, tracker: str, options: dict[str, str]) -> int:
    """Deliver as `sync` does; returns how many rows it says are there."""
    assignment = Assignment(
        tracker=tracker,
        directory=run,
        facts=run.read().facts(run.path, options),
        writer=Writer(label="sync-1", is_sync=True),
    )
    delivery = Delivery(assignment)
    delivery.start()
    delivery.stop(0, 60.0)
    result = delivery.wait()
    assert result.is_complete, result
    return result.num_confirmed


def held(run: RunDirectory, tracker: str, options: dict[str, str]) -> int:
    facts = run.read().facts(run.path, options)
    return sum(1 for _ in BackendProcess(tracker).read_points(facts))
