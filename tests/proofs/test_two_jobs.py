"""Jobs beside each other, jobs after each other, and a run that was carried elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_logging.delivery.status import journal_rows
from slime_logging.record.run import RunDirectory
from tests.proofs.checks import assert_acknowledged_once, assert_equal, sync
from tests.proofs.nursery import Nursery


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    new = Nursery(tmp_path)
    yield new
    new.close()


def job_args(nursery: Nursery, **changes: Any) -> dict[str, Any]:
    given = {
        "tracking_dir": str(nursery.place / "tracking"),
        "tracking_system_metrics": "off",
        "use_tensorboard": True,
    }
    return {**given, **changes}


def runs(nursery: Nursery) -> list[Path]:
    return sorted(path.parent for path in (nursery.place / "tracking").glob("*/run.json"))


def wait_for_rows(nursery: Nursery, number: int) -> None:
    deadline = time.monotonic() + 30
    while len(nursery.acknowledged()) < number and time.monotonic() < deadline:
        time.sleep(0.01)


def test_two_jobs_in_one_directory_are_two_runs(nursery):
    for number in (0, 1):
        nursery.start(number, job_args(nursery), primary=True, num_rows=200)
    for number in (0, 1):
        nursery.finish(number)
    first, second = runs(nursery)
    writers = [
        {row.metrics["train/who"] for row in journal_rows(RunDirectory(run))}
        for run in (first, second)
    ]
    assert sorted(map(sorted, writers)) == [[0], [1]]
    for run in (first, second):
        assert assert_equal(run, "tensorboard").num_rows == 200


def test_one_id_for_two_jobs_is_refused_and_harms_neither_rows_nor_run(nursery):
    args = job_args(nursery, wandb_run_id="job")
    nursery.start(0, args, primary=True)
    wait_for_rows(nursery, 10)
    nursery.start(1, args, primary=True)
    nursery.finish(1)
    assert "writer 1: RunConflictError: run job already has a living primary" in nursery.log()
    nursery.finish_all()
    assert_acknowledged_once(nursery.place / "tracking" / "job", nursery.acknowledged())
    assert_equal(nursery.place / "tracking" / "job", "tensorboard")


def test_a_run_that_was_copied_elsewhere_is_delivered_there(nursery, tmp_path):
    nursery.start(0, job_args(nursery, wandb_run_id="job"), primary=True)
    wait_for_rows(nursery, 300)
    nursery.kill(0)
    copied = tmp_path / "elsewhere" / "run-of-monday"
    shutil.copytree(nursery.place / "tracking" / "job", copied)
    shutil.rmtree(nursery.place / "tracking")
    sync(copied)
    assert_acknowledged_once(copied, nursery.acknowledged())
    assert_equal(copied, "tensorboard")
    assert not (nursery.place / "tracking").exists()


def test_processes_that_outlive_their_primary_go_on_with_the_next(nursery):
    args = job_args(nursery, wandb_run_id="job")
    directory = nursery.place / "tracking" / "job"
    nursery.start(0, args, primary=True)
    wait_for_rows(nursery, 10)
    nursery.start(1, {**args, "tracking_run_dir": str(directory)}, role="critic")
    wait_for_rows(nursery, 300)
    nursery.kill(0)
    nursery.start(2, args, primary=True)
    wait_for_rows(nursery, len(nursery.acknowledged()) + 300)
    nursery.finish_all()
    sync(directory)  # the critic may have ended after its primary
    assert_acknowledged_once(directory, nursery.acknowledged())
    assert_equal(directory, "tensorboard")
    assert RunDirectory(directory).read().num_starts == 2
