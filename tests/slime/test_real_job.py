"""slime's real training scripts on a local Ray cluster, tracked by each of the two doors, and read back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slime_logging.delivery.status import journal_config, journal_rows, run_status
from slime_logging.record.run import RunDirectory
from slime_logging.settings.settings import Settings
from tests.slime.real import GRPO, PPO, Place, needs_peers

ROLES = """
megatron:
  - {name: a, role: actor, overrides: {lr: 2.0e-6}}
  - {name: v, role: critic, overrides: {lr: 1.0e-5, weight_decay: 0.0}}
"""

pytestmark = [needs_peers, pytest.mark.slow, pytest.mark.xdist_group("slime")]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    return Place.make(tmp_path_factory.mktemp("real") / "slime")


def only_run(folder: Path) -> RunDirectory:
    (path,) = [path for path in folder.iterdir() if (path / "run.json").exists()]
    return RunDirectory(path)


def of_processes(directory: RunDirectory) -> dict[str, list[str]]:
    """Rows of training by process: its name, and the step key and step of each row."""
    found: dict[str, list[str]] = {}
    for row in journal_rows(directory):
        if not row.step_key.startswith("system/"):
            name = row.journal.partition("-")[0]
            found.setdefault(name, []).append(f"{row.step_key}={row.step:g}")
    return found


def check(run: RunDirectory, done: subprocess.CompletedProcess[str], cwd: Path) -> None:
    assert done.returncode == 0, done.stderr[-5000:]
    verified = subprocess.run(
        [Path(sys.executable).with_name("slime-logging"), "verify", run.path],
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "equal" in verified.stdout
    assert not [path for path in cwd.rglob("*") if path.name == "wandb"], "a run of slime's own"
    status = run_status(run)
    assert [one.num_left for one in status.deliveries] == [0] * len(run.read().trackers)
    assert {one.exit_code for one in status.journals if one.opening.is_primary} == {0}


def test_ppo_with_a_role_file_and_none_of_slimes_files_changed(place, tmp_path):
    roles = tmp_path / "roles.yaml"
    roles.write_text(ROLES)
    flags = [*PPO, "--megatron-config-path", str(roles), "--use-wandb", "--wandb-mode", "offline"]
    environment = {
        "SLIME_LOGGING_PATCH": "1",
        "SLIME_LOGGING_TRACKERS": "tensorboard",
        "SLIME_LOGGING_DIR": str(tmp_path / "runs"),
        "SLIME_LOGGING_NAME": "blue",
        "TENSORBOARD_DIR": str(tmp_path / "events"),
    }
    done = place.run("train.py", flags, environment, tmp_path / "work")
    run = only_run(tmp_path / "runs")
    check(run, done, tmp_path / "work")
    rows = of_processes(run)
    steps = [
        f"{key}={step}"
        for step in range(3)
        for key in ("rollout/step", "train/step", "rollout/step")
    ]
    assert rows["actor"] == steps
    assert rows["critic"] == ["train/step=0", "train/step=1", "train/step=2"]
    assert sorted(rows["rollout"]) == [
        "eval/step=0",
        "eval/step=1",
        *(f"rollout/step={n}" for n in range(3)),
    ]
    config = journal_config(run, run.read().roles)
    values = config.values
    assert (values["lr"], values["critic/lr"]) == (2e-6, 1e-5)
    assert (values["weight_decay"], values["critic/weight_decay"]) == (0.1, 0.0)
    assert values["overrides/critic/lr"]["base"] == values["overrides/actor/lr"]["base"] == 1e-6
    assert set(config.roles) >= {"actor", "critic"}
    assert "overrides follow" not in done.stderr, "by the job's own parser, not by the tables"
    # slime reads the file with its own function, which leaves what follows from a value as it was
    assert values["critic/start_weight_decay"] == 0.1
    assert "start_weight_decay is 0.1, not 0.0" in done.stderr + done.stdout
    assert run.read().name == "blue"


def test_grpo_asynchronous_by_the_one_line(place, tmp_path):
    flags = [*GRPO, "--wandb-group", "g", "--wandb-project", "p"]
    environment = {
        "SLIME_LOGGING_DIR": str(tmp_path / "runs"),
        "SLIME_LOGGING_TRACKERS": "tensorboard",
    }
    environment["TENSORBOARD_DIR"] = str(tmp_path / "events")
    done = place.with_the_line().run("train_async.py", flags, environment, tmp_path / "work")
    run = only_run(tmp_path / "runs")
    check(run, done, tmp_path / "work")
    rows = of_processes(run)
    assert set(rows) == {"actor", "rollout"}
    assert rows["actor"].count("train/step=2") == 1
    assert not [key for key in journal_config(run, ("actor",)).values if "critic/" in key]
    assert Settings.of({}, environment).trackers == ("tensorboard",)
