"""A job that is started again goes on with its run; another job never does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

import slime_logging as sl
from slime_logging.delivery.ending import read_ending
from slime_logging.delivery.status import journal_rows
from slime_logging.errors import SettingsError
from slime_logging.hosts.checkpoints import NAME
from slime_logging.hosts.identity import job_of
from slime_logging.record.run import RunDirectory, newest_run

Start = Callable[..., str]


@pytest.fixture
def start(tmp_path, monkeypatch) -> Start:
    """Run a job to its end in an environment; the id of its run."""

    def run(environ: dict[str, str] | None = None, exit_code: int = 0, **given: object) -> str:
        args = Namespace(tracking_dir=str(tmp_path / "tracking"), tracking_system_metrics="off")
        vars(args).update(given)
        with monkeypatch.context() as patch:
            for name, value in (environ or {}).items():
                patch.setenv(name, value)
            sl.init_tracking(args)
        run_id = args.wandb_run_id
        sl.log(args, {"train/step": 1, "train/x": 1.0}, "train/step")
        sl.finish_tracking(args, exit_code)
        return run_id

    return run


def test_an_allocation_is_one_run_and_each_array_task_another(start):
    slurm = {"tracking_run_id_from": "slurm"}
    assert start({"SLURM_JOB_ID": "7"}, **slurm) == "slurm-7"
    assert start({"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"}, **slurm) == "slurm-7"
    array = {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "8"}
    assert start({**array, "SLURM_ARRAY_TASK_ID": "0"}, **slurm) == "slurm-8-0"
    assert start({**array, "SLURM_ARRAY_TASK_ID": "1"}, **slurm) == "slurm-8-1"
    component = {"SLURM_JOB_ID": "11", "SLURM_HET_JOB_ID": "10"}
    assert start(component, **slurm) == start({"SLURM_JOB_ID": "10"}, **slurm)
    clusters = {start({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": name}, **slurm) for name in "ab"}
    assert len(clusters) == 2


@pytest.mark.parametrize("kind", ["slurm", "torchelastic", "ray", "checkpoint"])
def test_a_job_that_is_not_there_is_a_mistake(start, kind):
    with pytest.raises(SettingsError, match=f"--tracking-run-id-from {kind}"):
        start(tracking_run_id_from=kind)


def test_by_itself_a_requeued_job_is_the_same_run_and_any_other_a_new_one(start, monkeypatch):
    first = {"SLURM_JOB_ID": "7"}
    again = {**first, "SLURM_RESTART_COUNT": "1"}
    run_id = start(first)
    assert start(again) == run_id, "requeued"
    second = start(again)
    assert second != run_id, "the same command once more, after it had ended well"
    assert start({"SLURM_JOB_ID": "8"}) not in (run_id, second)
    assert start() not in (run_id, second)
    assert start({**first, "SLURM_RESTART_COUNT": "2"}, wandb_group="other") != second
    assert start({**first, "SLURM_RESTART_COUNT": "2"}, tracking_run_id_from="none") != second
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--lr", "2"])
    assert start({**first, "SLURM_RESTART_COUNT": "2"}) not in (run_id, second), "another command"


def test_by_itself_a_start_after_one_that_failed_is_the_same_run(start):
    environ = {"SLURM_JOB_ID": "7"}
    run_id = start(environ, exit_code=1)
    assert start(environ) == run_id
    assert start(environ) != run_id


def test_a_living_run_is_never_continued(start, tmp_path):
    environ = {"SLURM_JOB_ID": "7"}
    run_id = start(environ, exit_code=1)
    other = RunDirectory(tmp_path / "tracking" / run_id)
    other.locks.lock()
    assert start(environ) != run_id
    other.locks.unlock()


def test_a_job_that_goes_on_from_its_checkpoints_goes_on_with_its_run(start, tmp_path):
    """By itself only when it loads what it saved; a copy of the checkpoints is another job's."""
    save, copy = tmp_path / "ckpt", tmp_path / "copy"
    mine = {"save": str(save), "load": str(save)}
    run_id = start(**mine)
    assert start(**mine) != run_id, "nothing was saved: it begins anew"
    run_id = start(**mine)
    (save / "latest_checkpointed_iteration.txt").write_text("3")
    assert start(**mine) == run_id
    shutil.copytree(save, copy)
    assert start(save=str(copy), load=str(copy)) != run_id
    assert start(save=str(tmp_path / "fresh"), load=str(save)) != run_id, "a branch"
    assert start(**mine, wandb_project="other") != run_id


def test_a_directory_of_checkpoints_is_one_run_where_that_is_said(start, tmp_path):
    said = {"tracking_run_id_from": "checkpoint"}
    run_id = start(save=str(tmp_path / "a"), **said)
    assert start(save=str(tmp_path / "b"), **said) != run_id
    assert start(save=str(tmp_path / "a" / "." / ".." / "a"), **said) == run_id
    for hostile in (b"", b"{", b'{"run_id": "../x", "place": "", "project": "", "group": null}'):
        (tmp_path / "a" / NAME).write_bytes(hostile)
        assert start(save=str(tmp_path / "a"), **said) != run_id


def test_checkpoints_that_cannot_be_written_do_not_stop_a_job(start, tmp_path):
    (tmp_path / "file").touch()
    assert start(save=str(tmp_path / "file" / "ckpt"))
    with pytest.raises(OSError, match=r"ckpt|file"):
        start(save=str(tmp_path / "file" / "ckpt"), tracking_run_id_from="checkpoint")


def test_resume_takes_the_newest_run_of_the_same_project_and_group(start):
    mine = start(wandb_project="mine", wandb_group="g")
    start(wandb_project="mine", wandb_group="other")
    theirs = start(wandb_project="theirs", wandb_group="g")
    again = {"tracking_resume": True, "wandb_group": "g"}
    assert start(wandb_project="mine", **again) == mine
    assert start(wandb_project="theirs", **again) == theirs
    assert start(wandb_project="nobodys", **again) not in (mine, theirs)


SLURM_JOB = """
    import signal, sys, time
    from argparse import Namespace
    from pathlib import Path
    import slime_logging as sl
    args = Namespace(tracking_dir=sys.argv[1], use_tensorboard=True, tracking_system_metrics="off")
    is_told = []
    signal.signal(signal.SIGUSR1, lambda *_: is_told.append(1))
    sl.init_tracking(args)
    for step in range(10_000):
        sl.log(args, {"train/step": step, "train/x": 1.0}, "train/step")
        if step == 20:
            Path(sys.argv[1], "ready").touch()
        if is_told:
            sl.finish_tracking(args)  # saved; the scheduler is asked to queue it again
            break
        time.sleep(0.01)
"""


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL])
def test_a_job_that_slurm_signals_and_queues_again_is_one_run(tmp_path, number):
    """`--signal=USR1@60` reaches the job's own handler; TERM and, after the grace, KILL end it."""
    ready = tmp_path / "ready"
    for attempt in ("0", "1"):
        ready.unlink(missing_ok=True)
        environ = {**os.environ, "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": attempt}
        code = [sys.executable, "-c", textwrap.dedent(SLURM_JOB), str(tmp_path)]
        job = subprocess.Popen(code, env=environ, start_new_session=True)
        deadline_s = time.monotonic() + 60
        while not ready.exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        os.killpg(job.pid, number)
        assert job.wait(timeout=60) == (0 if number == signal.SIGUSR1 else -number)
    run = newest_run(tmp_path)
    assert run is not None
    assert run.read().num_starts == 2
    assert [path.parent for path in tmp_path.glob("*/run.json")] == [run.path]
    steps = [row.step for row in journal_rows(run)]
    assert steps.count(0) == 2
    while (ending := read_ending(run, 2)) is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    names = {signal.SIGUSR1: "finished", signal.SIGTERM: "preempted", signal.SIGKILL: "crashed"}
    assert ending.state == names[number]


WORKER = """
    import os, signal, sys, time
    from argparse import ArgumentParser
    import torch
    import slime_logging as sl
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    args = sl.add_tracking_arguments(ArgumentParser()).parse_args()
    if rank == 0:
        time.sleep(0.5)  # the others ask first
    sl.init_tracking(args, primary=rank == 0, role=None if rank == 0 else "critic")
    for step in range(50):
        row = {"train/step": step, "train/rank": rank, "train/attempt": attempt}
        sl.log(args, row, "train/step")
    if attempt == 0 and "KILL" in os.environ:
        while rank == 0:
            time.sleep(0.1)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    sl.finish_tracking(args)
"""


def test_workers_of_torchrun_that_parse_their_own_arguments_are_one_run_over_restarts(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(WORKER))
    command = [str(Path(sys.executable).with_name("torchrun")), "--standalone"]
    command += ["--max-restarts=1", "--monitor-interval=0.1"]
    given = ["--tracking-dir", str(tmp_path / "runs"), "--tracking-system-metrics", "off"]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "KILL": "1"}

    def launch(num_workers: int) -> None:
        words = [*command, f"--nproc-per-node={num_workers}", str(script), *given]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr[-3000:]

    launch(2)
    (path,) = (tmp_path / "runs").glob("*/run.json")
    run = RunDirectory(path.parent)
    assert run.read().num_starts == 2
    rows = [(r.metrics["train/attempt"], r.metrics["train/rank"]) for r in journal_rows(run)]
    assert {each: rows.count(each) for each in rows} == {
        (attempt, rank): 50 for attempt in (0, 1) for rank in (0, 1)
    }
    del environ["KILL"]
    launch(1)
    assert len(list((tmp_path / "runs").glob("*/run.json"))) == 2, "another job, another run"


def test_a_ray_actor_that_is_restarted_goes_on_with_its_run(tmp_path):
    ray = pytest.importorskip("ray")
    short = Path("/tmp") / f"r{os.getpid()}"
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        _temp_dir=str(short),
    )
    try:

        @ray.remote(num_cpus=0, max_restarts=1)
        class Driver:
            @ray.method(max_task_retries=3)
            def begin(self) -> str:
                args = Namespace(tracking_dir=str(tmp_path), tracking_system_metrics="off")
                sl.init_tracking(args)
                sl.log(args, {"train/step": 1, "train/x": 1.0}, "train/step")
                return args.wandb_run_id

            def die(self) -> None:
                os.kill(os.getpid(), signal.SIGKILL)

        one, other = Driver.remote(), Driver.remote()
        first = ray.get(one.begin.remote())
        with pytest.raises(ray.exceptions.RayError):
            ray.get(one.die.remote())
        assert ray.get(one.begin.remote()) == first
        assert ray.get(other.begin.remote()) != first
        assert job_of("ray").run_id == job_of("ray").run_id
    finally:
        ray.shutdown()
        shutil.rmtree(short, ignore_errors=True)
    assert len(list(journal_rows(RunDirectory(tmp_path / first)))) == 2
