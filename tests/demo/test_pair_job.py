"""The explorer-trainer demo: two roles with steps of their own in one run, or alone; deaths and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from slime_logging.backends.process import BackendProcess

from .reading import COMMAND, Run, environment, finish_code, read_run, run_demo, start_demo

pytestmark = pytest.mark.xdist_group("demo-pair")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Both roles, 30 steps of the trainer."""
    return run_demo(tmp_path_factory.mktemp("pair"), "explorer-trainer", "--steps", "30")


def test_each_role_counts_its_own_steps(run: Run) -> None:
    """`explorer/*` on `explorer/step`, `trainer/*` on `trainer/step`, both from 0 without a gap."""
    for role in ("explorer", "trainer"):
        rows = run.rows_of(role)
        assert {row.step_key for row in rows} == {f"{role}/step"}
        assert [row.step for row in rows] == list(range(len(rows)))
        assert all(key.startswith(f"{role}/") for row in rows for key in row.metrics)


def test_the_trainer_did_the_steps_asked_for(run: Run) -> None:
    """The explorer may have done more or fewer, the trainer exactly as many."""
    assert len(run.rows_of("trainer")) == 30


def test_both_roles_are_in_one_run_with_their_own_arguments(run: Run) -> None:
    """What each role was given stands under its prefix."""
    values = run.config.values
    assert (values["explorer/batch_size"], values["trainer/batch_size"]) == (64, 256)
    assert (values["explorer/temperature"], values["trainer/lr"]) == (1.0, 5e-3)


def test_both_trackers_hold_every_row_once(run: Run) -> None:
    """W&B's offline file and Trackio's database hold exactly what was logged."""
    for backend in (BackendProcess("wandb"), BackendProcess("trackio")):
        expected = Counter(point for row in run.rows for point in backend.points(row))
        assert Counter(backend.read_points(run.facts)) == expected


@pytest.mark.parametrize("role", ["explorer", "trainer"])
def test_a_role_alone_makes_a_run_of_its_own(tmp_path: Path, role: str) -> None:
    """It is the primary, and nobody else logs."""
    run = run_demo(
        tmp_path, "explorer-trainer", "--only", role, "--steps", "5", "--trackers", "none"
    )
    assert {row.journal.split("-")[0] for row in run.job_rows} == {role}
    assert [(row.step_key, row.step) for row in run.job_rows] == [
        (f"{role}/step", step) for step in range(5)
    ]
    assert finish_code(tmp_path) == 0


def test_journals_only_needs_no_directory(tmp_path: Path) -> None:
    """Without trackers, and nobody saying where: the journals are in ./tracking."""
    arguments = ("explorer-trainer", "--only", "trainer", "--steps", "3", "--trackers", "none")
    done = subprocess.run(
        [*COMMAND, *arguments],
        env={k: v for k, v in environment(tmp_path).items() if k != "SLIME_LOGGING_DIR"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert f"slime-logging show tracking/{read_run(tmp_path / 'tracking').directory.path.name}" in (
        done.stdout
    )


@pytest.mark.parametrize("wait_s", [0.0, 1.5], ids=["at once", "while it imports"])
def test_ctrl_c_while_torch_loads(tmp_path: Path, wait_s: float) -> None:
    """One line, from one process, which does not speak of rows that are not there."""
    with start_demo(tmp_path, "ppo", "--trackers", "none") as demo:
        assert demo.stdout is not None
        assert "loading torch" in demo.stdout.readline()
        time.sleep(wait_s)
        os.killpg(demo.pid, signal.SIGINT)
        _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 130
    told = [line for line in errors.splitlines() if line and not line.startswith("slime_logging:")]
    (line,) = told
    assert line.startswith("Interrupted: ")
    runs = list(tmp_path.glob("*/run.json"))
    assert ("nothing was logged" in line) == (not runs)
    assert all(f"run {run.parent.name} has " in line for run in runs)


def test_a_killed_role_ends_the_job_with_a_message(tmp_path: Path) -> None:
    """SIGKILL of the trainer: the driver says who died, exits with 1, and records 1 as the run's exit code."""
    trainer = 0
    with start_demo(
        tmp_path, "explorer-trainer", "--steps", "1000000", "--trackers", "none"
    ) as demo:
        assert demo.stdout is not None and demo.stderr is not None
        for line in demo.stdout:
            if match := re.search(r"trainer \(pid (\d+)\)", line):
                trainer = int(match[1])
            if "step 1/" in line:
                os.kill(trainer, signal.SIGKILL)
                break
        errors = demo.stderr.read()
    assert f"trainer (pid {trainer}) was killed by SIGKILL" in errors
    (run,) = tmp_path.glob("*/run.json")
    assert f"slime-logging show {run.parent}" in errors
    assert (demo.returncode, finish_code(tmp_path)) == (1, 1)


def test_ctrl_c_ends_the_job_cleanly(tmp_path: Path) -> None:
    """SIGINT to the whole group, as a terminal sends it: exit code 130, the run ended, nobody left behind."""
    with start_demo(
        tmp_path, "explorer-trainer", "--steps", "1000000", "--trackers", "none"
    ) as demo:
        assert demo.stdout is not None
        assert any("step 1/" in line for line in demo.stdout)
        children = psutil.Process(demo.pid).children(recursive=True)
        os.killpg(demo.pid, signal.SIGINT)
        demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert finish_code(tmp_path) not in (None, 0)
    assert not psutil.wait_procs(children, timeout=20)[1]
