"""Trackio, read with its own storage: what its pages will show."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.process import BackendProcess
from slime_logging.errors import TryAgain, WillNeverWork
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario

CONFIG = RunConfig(
    values={"lr": 1e-6, "critic/lr": 5e-6, "overrides/critic/lr": {"base": 1e-6, "value": 5e-6}},
    roles={"actor": {"lr": 1e-6, "_own": 1, "seed": 1}, "critic": {"lr": 5e-6, "seed": 1}},
)
ROWS = [
    scenario.row(1, {"train/loss": 0.5, "step": 9}),
    scenario.row(2, {"train/critic-loss": 2.0}, role="critic", step=7),
    scenario.row(3, {"rollout/reward": 1.0}, role="rollout", step_key="rollout/step", step=2.5),
]


def facts(directory: Path, **changes: Any) -> RunFacts:
    given = {
        "run_id": "r1",
        "project": "proj",
        "name": "job",
        "group": None,
        "directory": directory,
        "created_s": scenario.START_S,
    }
    return RunFacts(**given | {"axes": {}, "roles": ("actor", "critic")} | changes)


def deliver(run: RunFacts, exit_code: int | None = 0) -> None:
    backend = BackendProcess("trackio")
    backend.open(run, Writer(label="primary"))
    backend.set_config(CONFIG)
    backend.write(ROWS)
    backend.close(exit_code, 30.0)


def ask(directory: Path, expressions: dict[str, str]) -> dict[str, Any]:
    """The values of expressions in a process in which Trackio keeps its files in `directory`."""
    pairs = ", ".join(f"{name!r}: {expression}" for name, expression in expressions.items())
    code = (
        "import orjson, sys; from trackio.sqlite_storage import SQLiteStorage as S;"
        f"sys.stdout.buffer.write(orjson.dumps({{{pairs}}}))"
    )
    environment = os.environ | {"TRACKIO_DIR": str(directory)}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    return dict(orjson.loads(shown.stdout))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Trackio's storage says of three jobs, one of them delivered twice."""
    directory = tmp_path_factory.mktemp("trackio")
    before = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", str(directory))
        for name, exit_code in (("job", None), ("job", 0), ("failed", 3), ("stopped", None)):
            deliver(facts(directory, name=name, run_id=name), exit_code)
        reader = BackendProcess("trackio")
        points = len(list(reader.read_points(facts(directory, run_id="job"))))
    assert dict(os.environ) == before
    expressions = {"runs": "S.get_run_records('proj')"}
    for run in ("job", "job-actor", "job-critic", "failed-actor", "stopped-actor"):
        expressions[f"{run} config"] = f"S.get_run_config('proj', {run!r})"
        expressions[f"{run} rows"] = f"S.get_logs('proj', {run!r})"
    return ask(directory, expressions) | {"points": points}


def test_each_role_has_a_run(shown: dict[str, Any]) -> None:
    """Actor, critic and the job itself are three runs; a role without a configuration has none of its own."""
    names = sorted(run["name"] for run in shown["runs"] if run["name"].startswith("job"))
    assert names == ["job", "job-actor", "job-critic"]


def test_configuration_is_unprefixed_and_grouped(shown: dict[str, Any]) -> None:
    """The comparer puts the roles' own keys side by side, in the group of the job."""
    critic = shown["job-critic config"]
    assert (critic["lr"], critic["_Group"], critic["run_state"]) == (5e-6, "job", "finished")


def test_job_has_what_no_role_owns_and_what_all_have(shown: dict[str, Any]) -> None:
    """Overrides, and the keys in which the roles are alike: with the job shown too, "Diff only" shows the others."""
    job = {key: value for key, value in shown["job config"].items() if key[:1] != "_"}
    assert job == {
        "seed": 1,
        "overrides/critic/lr": {"base": 1e-6, "value": 5e-6},
        "run_state": "finished",
    }


def test_row_is_in_its_roles_run_with_its_step_and_time(shown: dict[str, Any]) -> None:
    """The step is Trackio's own, the step key is there too, and the time is the row's."""
    last = shown["job-critic rows"][-1]
    assert (last["step"], last["train/step"], last["train/critic-loss"]) == (7, 7, 2.0)
    assert last["timestamp"] == "2026-09-21T14:13:20.501000+00:00"


def test_reserved_metric_is_kept_under_another_name(shown: dict[str, Any]) -> None:
    """A metric called like one of Trackio's own columns is stored as Trackio's client would."""
    assert shown["job-actor rows"][-1]["__step"] == 9


def test_fractional_step_is_kept_under_its_key(shown: dict[str, Any]) -> None:
    """Trackio's steps are whole; the exact one is in the row."""
    last = shown["job rows"][-1]
    assert (last["step"], last["rollout/step"]) == (2, 2.5)


def test_row_delivered_twice_is_held_once(shown: dict[str, Any]) -> None:
    """Trackio knows rows by their ids."""
    assert shown["points"] == len(ROWS)


@pytest.mark.parametrize(
    ("job", "state"),
    [("job", "finished"), ("failed", "failed (exit code 3)"), ("stopped", "running")],
)
def test_final_state(shown: dict[str, Any], job: str, state: str) -> None:
    """How the job ended is in the configuration; a writer that only stops leaves the run running."""
    assert shown[f"{job}-actor config"]["run_state"] == state


def test_one_store_has_all_runs_of_a_tracking_directory(tmp_path: Path) -> None:
    """Without TRACKIO_DIR it is beside the runs; the run's own directory stays free of it."""
    for run_id in ("r1", "r2"):
        deliver(facts(tmp_path / run_id, run_id=run_id))
    assert [path.name for path in tmp_path.iterdir()] == ["trackio"]
    runs = ask(tmp_path / "trackio", {"runs": 'len(S.get_runs("proj"))'})["runs"]
    assert runs == 6


def test_a_run_with_a_store_of_its_own_stays_there(tmp_path: Path) -> None:
    """As earlier versions made it: what it holds is read, and more of it goes there."""
    (tmp_path / "r1" / "trackio").mkdir(parents=True)
    deliver(facts(tmp_path / "r1"))
    assert (tmp_path / "r1" / "trackio" / "proj.db").exists()
    assert not (tmp_path / "trackio").exists()
    assert len(list(BackendProcess("trackio").read_points(facts(tmp_path / "r1")))) == len(ROWS)


def test_two_jobs_in_one_directory_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs whose ids start alike are not mixed up when read back."""
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    for run_id in ("r1", "r1_x", "r1/x"):
        deliver(facts(tmp_path, run_id=run_id))
    assert len(list(BackendProcess("trackio").read_points(facts(tmp_path, run_id="r1")))) == len(
        ROWS
    )


def test_server_variable_is_told_to_be_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Trackio's server would stamp rows with its own time; the warning says how to get the run there."""
    monkeypatch.setenv("TRACKIO_SERVER_URL", "http://127.0.0.1:1/?write_token=secret")
    with caplog.at_level(logging.WARNING, logger="slime_logging"):
        deliver(facts(tmp_path / "run"))
    assert "trackio sync --project proj" in caplog.text
    assert "secret" not in caplog.text


def test_project_name_that_trackio_refuses(tmp_path: Path) -> None:
    """A refusal is for good, and says why."""
    with pytest.raises(WillNeverWork, match="registry"):
        BackendProcess("trackio").open(
            facts(tmp_path / "run", project="registry-x"), Writer(label="primary")
        )


def test_unusable_directory_is_try_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the directory should be, as a full or missing disk, may be mended."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "file"))
    with pytest.raises(TryAgain):
        BackendProcess("trackio").open(facts(tmp_path), Writer(label="primary"))
