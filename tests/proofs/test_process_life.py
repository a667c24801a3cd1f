"""What a process may do to itself: signals, forks, threads, clocks, huge rows, and trackers that never come back."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import textwrap
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

import slime_logging as sl
from slime_logging.backends import memory
from slime_logging.backends.memory import MemoryBackend
from slime_logging.backends.table import BACKENDS, Tracker
from slime_logging.delivery import delivery as delivery_module
from slime_logging.delivery.status import journal_rows, run_status
from slime_logging.record.run import RunDirectory
from tests.proofs.checks import assert_equal, sync

HEAD = """
import json, os, random, signal, sys, threading, time
from argparse import Namespace
import slime_logging as sl
args = Namespace(tracking_dir=sys.argv[1], wandb_run_id="job", use_memory=True, tracking_system_metrics="off")
sl.init_tracking(args)
def log(step):
    sl.log(args, {"train/step": step, "train/x": 0.5}, "train/step")
"""


def run_job(tmp_path: Path, code: str) -> str:
    """Run a job as a program and return what it printed; one that hangs fails."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(code), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def job_args(tmp_path: Path, **changes: object) -> Namespace:
    memory.forget()
    given = {
        "use_memory": True,
        "tracking_dir": str(tmp_path),
        "wandb_run_id": "job",
        "tracking_system_metrics": "off",
    }
    return Namespace(**{**given, **changes})


def test_a_signal_handler_may_log_while_its_thread_logs(tmp_path):
    run_job(
        tmp_path,
        """
        steps = iter(range(10**6, 10**7))
        signal.signal(signal.SIGALRM, lambda *_: log(next(steps)))
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        for step in range(20_000):
            log(step)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sl.finish_tracking(args)
        """,
    )
    rows = list(journal_rows(RunDirectory(tmp_path / "job")))
    assert sorted(row.step for row in rows if row.step < 10**6) == list(range(20_000))
    assert len([row for row in rows if row.step >= 10**6]) > 10
    assert len({row.seq for row in rows}) == len(rows)


def test_a_row_that_a_signal_interrupts_takes_no_other_row_s_number(tmp_path):
    """Acknowledged rows are all there, and no two rows of a journal are one to a tracker."""
    out = run_job(
        tmp_path,
        """
        class Stop(BaseException): pass
        is_in_log = False  # another thread may take a signal, which then shows late, between two rows
        def stop(*_):
            global is_in_log
            if is_in_log:
                is_in_log = False
                raise Stop
        signal.signal(signal.SIGALRM, stop)
        acknowledged = []
        for step in range(20_000):
            try:
                is_in_log = True
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 60e-6))
                log(step)
                is_in_log = False
                acknowledged.append(step)
            except Stop:
                pass
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        sl.finish_tracking(args)
        print(json.dumps(acknowledged))
        """,
    )
    acknowledged = json.loads(out)
    rows = list(journal_rows(RunDirectory(tmp_path / "job")))
    assert len(acknowledged) < 20_000
    assert not set(acknowledged) - {row.step for row in rows}
    assert len({row.seq for row in rows}) == len({row.step for row in rows}) == len(rows)


def test_a_fork_of_a_fork_touches_no_file_but_its_own(tmp_path):
    out = run_job(
        tmp_path,
        """
        log(0)
        if os.fork() == 0:
            mine = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
            if os.fork() == 0:
                log(200)
                print("open:", all(os.path.samestat(os.fstat(fd), os.stat("/dev/null")) for fd in mine), flush=True)
                os._exit(0)
            os.wait()
            log(100)
            os._exit(0)
        os.wait()
        log(1)
        sl.finish_tracking(args)
        import slime_logging.backends.memory as memory
        print(sorted(row.step for row in memory.RUNS["job"].rows))
        """,
    )
    assert out == "open: True\n[0, 1, 100, 200]\n"


def test_eight_threads_log_at_once(tmp_path):
    run_job(
        tmp_path,
        """
        def work(number):
            for step in range(500):
                log(1000 * number + step)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        sl.finish_tracking(args)
        """,
    )
    rows = list(journal_rows(RunDirectory(tmp_path / "job")))
    assert sorted(row.step for row in rows) == [
        1000 * number + step for number in range(8) for step in range(500)
    ]


def test_a_job_that_forgets_to_finish_is_delivered_at_its_exit(tmp_path):
    run_job(
        tmp_path,
        """
        import atexit, slime_logging.backends.memory as memory
        atexit._run_exitfuncs  # ours runs before what was registered earlier
        log(7)
        """,
    )
    status = run_status(RunDirectory(tmp_path / "job"))
    assert (
        status.journals[0].exit_code,
        status.deliveries[0].state,
        status.deliveries[0].num_left,
    ) == (None, "closed", 0)


def test_a_clock_that_steps_back_changes_nothing_but_the_times(tmp_path, monkeypatch):
    args = job_args(tmp_path)
    sl.init_tracking(args)
    real = time.time
    for number in range(10):
        monkeypatch.setattr(time, "time", lambda number=number: real() - 3600 * number)
        sl.log_config(args, {"phase": number})
        sl.log(args, {"train/step": number}, "train/step")
    monkeypatch.setattr(time, "time", real)
    sl.finish_tracking(args)
    held = memory.RUNS["job"]
    assert held.config.values["phase"] == 9
    assert [row.step for row in held.rows] == list(range(10))
    assert held.rows[0].time_s > held.rows[9].time_s


def test_a_row_of_ten_megabytes_and_a_hundred_thousand_names(tmp_path):
    args = job_args(
        tmp_path, use_memory=False, use_wandb=True, use_tensorboard=True, wandb_mode="offline"
    )
    sl.init_tracking(args)
    sl.log(
        args,
        {"train/step": 0, **{f"train/part_{i}": "x" * 1_000_000 for i in range(10)}},
        "train/step",
    )
    for step in range(100):
        sl.log(
            args,
            {"train/step": step, **{f"train/m{1000 * step + i}": float(i) for i in range(1000)}},
            "train/step",
        )
    sl.finish_tracking(args)
    for tracker in ("wandb", "tensorboard"):
        assert assert_equal(tmp_path / "job", tracker).num_rows == 101


class HangingBackend(MemoryBackend):
    """Never comes back from one of its calls, until it is let go."""

    name = "memory"
    where = ""
    is_let_go = threading.Event()

    def _hang_in(self, where: str) -> None:
        if where == HangingBackend.where:
            HangingBackend.is_let_go.wait(60)

    def open(self, run, writer):
        self._hang_in("open")
        super().open(run, writer)

    def write(self, rows):
        self._hang_in("write")
        super().write(rows)

    def close(self, exit_code, timeout_s):
        self._hang_in("close")
        super().close(exit_code, timeout_s)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[HangingBackend]]:
    monkeypatch.setitem(
        BACKENDS, "memory", Tracker("tests.proofs.test_process_life:HangingBackend")
    )
    monkeypatch.setattr(delivery_module, "GRACE_S", 0.2)
    HangingBackend.is_let_go.clear()
    yield HangingBackend
    HangingBackend.is_let_go.set()


@pytest.mark.parametrize("where", ["open", "write", "close"])
def test_a_tracker_that_never_comes_back_does_not_keep_the_job(tmp_path, hanging, where, capfd):
    """The wait at the end is bounded, and what is left is told."""
    hanging.where = where
    num_left = 0 if where == "close" else 1
    args = job_args(tmp_path, tracking_finish_timeout=0.3)
    sl.init_tracking(args)
    sl.log(args, {"train/step": 1}, "train/step")
    sl.finish_tracking(args)  # the test would time out
    assert f"{num_left} rows (unfinished" in capfd.readouterr().err
    hanging.where = ""
    hanging.is_let_go.set()
    for thread in [
        thread for thread in threading.enumerate() if thread.name == "slime-logging-memory"
    ]:
        thread.join(30)


def test_a_forked_child_that_cannot_join_says_so_and_goes_on(tmp_path):
    run_job(
        tmp_path,
        """
        import shutil
        if os.fork() == 0:
            os.dup2(os.open("child", os.O_CREAT | os.O_WRONLY), 2)
            shutil.rmtree(sys.argv[1] + "/job")
            open(sys.argv[1] + "/job", "w").close()
            log(1)
            log(2)
            os._exit(0)
        assert os.wait()[1] == 0
        os._exit(0)
        """.replace('"child"', repr(str(tmp_path / "child"))),
    )
    assert (tmp_path / "child").read_text().count("cannot join its parent's run") == 1


def test_a_resumed_run_that_goes_back_to_an_older_step_keeps_both(tmp_path):
    """Steps repeat after a checkpoint was loaded; nothing is dropped, and nothing is taken for sent already."""
    args = job_args(tmp_path, use_memory=False, use_tensorboard=True)
    for value in (1.0, 2.0):
        again = copy.copy(args)
        sl.init_tracking(again)
        for step in range(5):
            sl.log(again, {"train/step": step, "train/x": value}, "train/step")
        sl.finish_tracking(again)
    sync(tmp_path / "job")
    assert assert_equal(tmp_path / "job", "tensorboard").num_rows == 10
