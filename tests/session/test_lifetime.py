"""The sessions of one process: each call is for its own, and no state of the process's streams is anybody's error."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import tempfile
import textwrap
from argparse import Namespace
from pathlib import Path

import pytest

import slime_logging as sl
from slime_logging.backends import memory
from slime_logging.delivery.status import run_status
from slime_logging.record.run import RunDirectory

STEP = "train/step"


@pytest.fixture
def args(tmp_path: Path) -> Namespace:
    memory.forget()
    return Namespace(
        use_memory=True, tracking_dir=str(tmp_path / "runs"), tracking_system_metrics="off", lr=1.0
    )


def joined(args: Namespace, role: str) -> Namespace:
    own = copy.copy(args)
    sl.init_tracking(own, primary=False, role=role)
    return own


def held(args: Namespace) -> memory.MemoryRun:
    return memory.RUNS[args.wandb_run_id]


def test_a_second_finish_ends_nobody_else(args: Namespace) -> None:
    sl.init_tracking(args)
    critic = joined(args, "critic")
    sl.finish_tracking(critic)
    sl.finish_tracking(critic)
    sl.log(args, {STEP: 1, "train/x": 0.5}, STEP)
    sl.finish_tracking(args)
    assert [row.metrics for row in held(args).rows] == [{"train/x": 0.5}]
    assert held(args).exit_code == 0


@pytest.mark.parametrize(
    ("who", "exit_code", "is_told"),
    [("nobody", 0, True), ("nobody", 1, False), ("primary", 0, False), ("rollout", 0, False)],
)
def test_a_run_without_a_row_is_told_at_its_end(
    args: Namespace, caplog: pytest.LogCaptureFixture, who: str, exit_code: int, is_told: bool
) -> None:
    """As of a job of which the driver alone knows of us; one that failed has more to say."""
    sl.init_tracking(args)
    rollout = joined(args, "rollout")
    logs = {"primary": args, "rollout": rollout}.get(who)
    if logs is not None:
        sl.log(logs, {STEP: 1, "train/x": 0.5}, STEP)
    sl.finish_tracking(args, exit_code)
    assert ("ends without a row" in caplog.text) is is_told


def test_arguments_that_never_joined_end_nothing(args: Namespace) -> None:
    sl.init_tracking(args)
    sl.finish_tracking(Namespace(), exit_code=3)
    sl.log(args, {STEP: 1, "train/x": 0.5}, STEP)
    sl.finish_tracking(args)
    assert (len(held(args).rows), held(args).exit_code) == (1, 0)


def test_what_a_finished_role_logs_goes_to_no_other(args: Namespace) -> None:
    sl.init_tracking(args)
    critic = joined(args, "critic")
    sl.finish_tracking(critic)
    sl.log(critic, {STEP: 1, "train/x": 0.5}, STEP)
    sl.log_samples(critic, [{STEP: 1, "answer": "x"}], STEP)
    sl.log_config(critic, {"vocab_size": 7})
    sl.finish_tracking(args)
    assert held(args).rows == []
    assert "vocab_size" not in held(args).config.values


def test_arguments_of_a_role_that_joined_again_are_still_its_own(args: Namespace) -> None:
    """slime joins again, with a copy, each time it wakes a trainer."""
    sl.init_tracking(args)
    first = joined(args, "critic")
    again = joined(args, "critic")
    sl.log(first, {STEP: 1, "train/x": 1.0}, STEP)
    sl.log_config(first, {"vocab_size": 7})
    sl.finish_tracking(first)
    sl.log(again, {STEP: 2, "train/x": 2.0}, STEP)
    sl.finish_tracking(args)
    assert [row.step for row in held(args).rows] == [1]
    assert held(args).config.values["critic/vocab_size"] == 7


def test_one_namespace_begun_three_times_is_three_runs(args: Namespace) -> None:
    ids = []
    for number in range(3):
        with sl.tracked(args):
            sl.log(args, {STEP: number, "train/x": 0.5}, STEP)
        ids.append(args.wandb_run_id)
        assert [row.step for row in held(args).rows] == [number]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("how", ["by its id", "by the flag"])
def test_a_run_that_is_asked_for_is_continued(args: Namespace, how: str) -> None:
    if how == "by its id":
        args.wandb_run_id = "mine"
    else:
        args.tracking_resume = True
    for number in range(2):
        with sl.tracked(args):
            sl.log(args, {STEP: number, "train/x": 0.5}, STEP)
    assert RunDirectory(Path(args.tracking_run_dir)).read().num_starts == 2


JOB = """
    import logging, os, sys
    from argparse import Namespace
    import slime_logging as sl
    args = Namespace(use_memory=True, tracking_dir=sys.argv[1], tracking_system_metrics="off", wandb_run_id="job")
    args.tracking_nonsense = 1
    with sl.tracked(args):
        sl.log(args, {"train/step": 1, "train/x": object()}, "train/step")
        raise SystemExit(17)
"""


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2>&1 | true", "1>&- 2>/dev/full"])
def test_a_stream_that_takes_nothing_changes_nothing(tmp_path: Path, stderr: str) -> None:
    code = textwrap.dedent(JOB)
    command = f'sleep 0.2; "$0" -c "$1" "$2" {stderr}; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, code, str(tmp_path)], timeout=60, check=False
    )
    assert done.returncode == 17
    status = run_status(RunDirectory(tmp_path / "job"))
    assert [(journal.exit_code, journal.num_rows) for journal in status.journals] == [(17, 1)]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs a second user")
@pytest.mark.parametrize("is_seen", [True, False], ids=["run closed", "folder closed"])
def test_another_user_who_joins_is_told_what_to_do(is_seen: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755 if is_seen else 0o700)
        args = Namespace(tracking_dir=f"{folder}/runs", tracking_system_metrics="off")
        with sl.tracked(args):
            Path(folder, "runs").chmod(0o755)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.seteuid(65534)
                    sl.init_tracking(copy.copy(args), primary=False, role="critic")
                except sl.SettingsError as error:
                    code = 0 if "--tracking-dir" in str(error) and folder in str(error) else 2
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
