"""Delivery in processes of its own: what it costs the job, how long it lives, and what it says of the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import orjson
import psutil
import pytest

from slime_logging.delivery.ending import read_ending
from slime_logging.delivery.status import run_status
from slime_logging.delivery.verify import verify
from slime_logging.record.run import RunDirectory

JOB = """
    import os, signal, sys, threading, time
    from argparse import Namespace
    import slime_logging as sl
    args = Namespace(use_tensorboard=True, tracking_dir=sys.argv[1], wandb_run_id="job", lr=1.0)
    args.tracking_system_metrics = "off"
    sl.init_tracking(args)
    def log(num, first=0, given=args):
        for step in range(first, first + num):
            sl.log(given, {"train/step": step, "train/x": 0.5}, "train/step")
    log(100)
"""


NUM_KILLS = int(os.environ.get("SLIME_LOGGING_PROOF_DELIVERY_KILLS", "6"))


def start_job(place: Path, then: str, **options) -> subprocess.Popen:
    code = textwrap.dedent(JOB) + textwrap.dedent(then)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def our_processes(place: Path) -> list[psutil.Process]:
    """The processes that deliver a run below a directory: they hold its files, or are told of it."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        try:
            if any("slime_logging.delivery" in part for part in process.info["cmdline"] or ()):
                open_files = {file.path for file in process.open_files()}
                locks = [path for path in open_files if path.startswith(str(place))]
                parent = process.parent()
                if locks or (parent and parent.pid in {p.pid for p in found}):
                    found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until_delivered(place: Path, timeout_s: float = 60.0) -> None:
    """Wait until the end of the run is recorded, and nobody delivers it any more."""
    run = RunDirectory(place / "job")
    deadline = time.monotonic() + timeout_s
    while read_ending(run, 1) is None or run.locks.has_living_supervisor or our_processes(place):
        assert time.monotonic() < deadline, "the delivery does not end"
        time.sleep(0.05)


def assert_delivered(place: Path, num_rows: int) -> None:
    run = RunDirectory(place / "job")
    file = run.read()
    found = verify(run, "tensorboard", file.facts(run.path, file.options))
    assert found.is_equal
    assert found.num_rows == num_rows


@pytest.mark.parametrize(
    ("then", "return_code", "exit_code", "state"),
    [
        ("sl.finish_tracking(args)", 0, 0, "finished"),
        ("sl.finish_tracking(args, 5)", 0, 5, "failed"),
        ("", 0, 0, "finished"),
        ("sys.exit(0)", 0, 0, "finished"),
        ("sys.exit(3)", 3, 3, "failed"),
        ("raise SystemExit(4)", 4, 4, "failed"),
        ("sys.exit('a message')", 1, 1, "failed"),
        ("raise RuntimeError", 1, 1, "failed"),
        ("raise KeyboardInterrupt", -signal.SIGINT, 130, "failed"),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)", -15, 143, "preempted"),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, 137, "crashed"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -11, 139, "crashed"),
        ("os._exit(7)", 7, 7, "crashed"),
        ("os._exit(0)", 0, 255, "crashed"),
        ("with sl.tracked(args): sys.exit(6)", 6, 6, "failed"),
    ],
)
def test_however_a_job_ends_everything_is_delivered_and_the_end_is_told_truly(
    tmp_path, then, return_code, exit_code, state
):
    job = start_job(tmp_path, then)
    assert job.wait(60) == return_code, job.stderr.read()
    wait_until_delivered(tmp_path)
    assert_delivered(tmp_path, 100)
    ending = read_ending(RunDirectory(tmp_path / "job"), 1)
    assert (ending.exit_code, ending.state) == (exit_code, state)


def test_tracking_costs_a_training_process_no_thread_handler_or_child_and_two_descriptors(tmp_path):
    code = """
        import os, signal, sys, threading
        from argparse import Namespace
        import psutil
        import slime_logging as sl
        sl.init_tracking(Namespace())  # what is loaded once stays loaded
        def cost():
            handlers = [signal.getsignal(number) for number in signal.valid_signals()]
            me = psutil.Process()
            return threading.active_count(), me.num_threads(), handlers, me.num_fds(), me.children()
        before = cost()
        args = Namespace(use_tensorboard=True, use_trackio=True, tracking_dir=sys.argv[1], wandb_run_id="job")
        sl.init_tracking(args)
        sl.log(args, {"train/step": 0, "train/x": 0.5}, "train/step")
        after = cost()
        assert (before[:3], before[4]) == (after[:3], after[4]), (before, after)
        assert after[3] - before[3] <= 2, (before, after)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    wait_until_delivered(tmp_path)


def test_nothing_of_the_delivery_keeps_a_reader_of_the_jobs_output_waiting(tmp_path):
    """`python train.py | tee log` ends with the job."""
    job = start_job(tmp_path, "")
    job.communicate(timeout=60)
    assert RunDirectory(tmp_path / "job").locks.has_living_primary is False
    readers = [process for process in our_processes(tmp_path) if process.is_running()]
    for process in readers:
        outputs = {str(Path(f"/proc/{process.pid}/fd/{number}").readlink()) for number in (1, 2)}
        assert not any(name.startswith("pipe:") for name in outputs)
    wait_until_delivered(tmp_path)


def test_a_job_in_native_code_dies_of_sigterm_at_once(tmp_path):
    job = start_job(tmp_path, "print('busy', flush=True); sum(range(10**11))")
    assert job.stdout.readline() == "busy\n"
    job.terminate()
    assert job.wait(10) == -signal.SIGTERM
    wait_until_delivered(tmp_path)
    assert_delivered(tmp_path, 100)


def test_a_forked_worker_ends_as_its_job_means_it(tmp_path):
    then = """
        import multiprocessing
        def work(): time.sleep(60)
        worker = multiprocessing.get_context("fork").Process(target=work)
        worker.start()
        time.sleep(0.2)
        worker.terminate()
        worker.join(10)
        print(worker.exitcode)
        """
    out, _ = start_job(tmp_path, then).communicate(timeout=60)
    assert out == "-15\n"
    wait_until_delivered(tmp_path)
    assert_delivered(tmp_path, 100)


def test_a_process_that_outlives_the_primary_is_delivered_to_its_end(tmp_path):
    then = """
        import copy
        if os.fork() == 0:
            given = copy.copy(args)
            sl.init_tracking(given, primary=False, role="trainer")
            log(10, 1000, given)
            time.sleep(3)
            log(51, 1010, given)
            os._exit(0)
        time.sleep(1)
        sl.finish_tracking(args)
        print(time.time(), flush=True)
        os._exit(0)
        """
    job = start_job(tmp_path, then)
    assert job.stdout.readline()
    wait_until_delivered(tmp_path)
    assert_delivered(tmp_path, 161)


def test_delivery_processes_may_be_killed_at_any_moment(tmp_path):
    """Children and the supervisor: rows are in the tracker once all the same."""
    then = """
        step = 100
        while not os.path.exists(sys.argv[1] + "/stop"):
            log(20, step)
            step += 20
            time.sleep(0.01)
        sl.finish_tracking(args)
        print(step)
        """
    job = start_job(tmp_path, then)
    chance = random.Random(7)
    for _ in range(NUM_KILLS):
        time.sleep(chance.uniform(0.2, 1.2))
        processes = our_processes(tmp_path)
        if processes:
            chance.choice(processes).kill()
    (tmp_path / "stop").touch()
    out, error = job.communicate(timeout=100)
    assert job.returncode == 0, error
    wait_until_delivered(tmp_path)
    assert_delivered(tmp_path, int(out))


def test_sigterm_to_the_whole_group_leaves_the_run_in_time_though_the_server_hangs(tmp_path):
    """As SLURM and Kubernetes end a job: within 20 s nothing is left, and rows are kept."""
    import socket

    with socket.socket() as server:  # it accepts, and never answers
        server.bind(("127.0.0.1", 0))
        server.listen()
        then = f"""
            more = Namespace(use_wandb=True, wandb_mode="online", wandb_key="k" * 40, lr=1.0,
                             wandb_host="http://127.0.0.1:{server.getsockname()[1]}",
                             tracking_dir=sys.argv[1] + "/online", wandb_run_id="job",
                             tracking_system_metrics="off")
            sl.finish_tracking(args)
            sl.init_tracking(more)
            log(10, 0, more)
            print("ready", flush=True)
            time.sleep(60)
            """
        job = start_job(tmp_path, then)
        assert job.stdout.readline() == "ready\n", job.stderr.read()
        online = tmp_path / "online"
        time.sleep(2)
        begun = time.monotonic()
        for process in our_processes(online):
            process.terminate()
        job.terminate()
        job.wait(10)
        wait_until_delivered(online, timeout_s=25)
        assert time.monotonic() - begun < 20
    assert read_ending(RunDirectory(online / "job"), 1).state == "preempted"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"kind":"open","schema":7,"journal":"odd"}\n{"kind":"row"}\n', "schema 7"),
        (b'{"kind":"op\xff\n{"kind":"row","seq":1}\n', "damaged"),
        (b'{"kind":"open","schema":1,"journal":"odd","delivers":1}\n', "delivers"),
        (b'{"kind":"open","schema":1,"journal":"other"}\n', "other"),
        (b"[1]\n", "damaged"),
    ],
)
def test_a_journal_that_cannot_be_read_is_told_and_makes_a_run_not_equal(tmp_path, content, reason):
    job = start_job(tmp_path, "sl.finish_tracking(args)")
    job.communicate(timeout=60)
    wait_until_delivered(tmp_path)
    run = RunDirectory(tmp_path / "job")
    (run.journals / "odd.jsonl").write_bytes(content)
    file = run.read()
    verdict = verify(run, "tensorboard", file.facts(run.path, file.options))
    (unreadable,) = run_status(run).unreadable
    assert (unreadable.name, verdict.is_equal) == ("odd.jsonl", False)
    assert reason in unreadable.reason


def test_odd_values_in_a_row_of_a_journal_are_no_traceback(tmp_path):
    job = start_job(tmp_path, "sl.finish_tracking(args)")
    job.communicate(timeout=60)
    wait_until_delivered(tmp_path)
    run = RunDirectory(tmp_path / "job")
    (path,) = run.journal_paths()
    odd = {"kind": "row", "seq": 200, "step": 1, "step_key": "a", "metrics": {}, "time_s": 0}
    with path.open("ab") as file:
        file.write(orjson.dumps(odd | {"nonfinite": {"x": [1]}}) + b"\n")
        file.write(orjson.dumps(odd | {"nonfinite": [1]}) + b"\n")
        file.write(orjson.dumps(odd | {"metrics": 3}) + b"\n")
    assert run_status(run).num_rows >= 100


def test_few_descriptors_are_enough_for_any_number_of_journals_and_trackers(tmp_path):
    """256 journals, two trackers, and 100 descriptors for each process: the job's own are its own."""
    then = """
        import resource
        from pathlib import Path
        from slime_logging.record.entries import Opening, encode
        from slime_logging.record.journal import Journal
        sl.finish_tracking(args)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        both = Namespace(use_tensorboard=True, use_trackio=True, lr=1.0, wandb_run_id="job",
                         tracking_dir=sys.argv[1] + "/both", tracking_system_metrics="off")
        sl.init_tracking(both)
        before = len(os.listdir("/proc/self/fd"))
        for number in range(256):
            name = f"j{number}"
            opening = Opening(run_id="job", journal=name, role="actor", is_primary=False, host="h",
                              pid=1, start=1, time_s=0.0)
            new = Journal(Path(sys.argv[1], "both", "job", "journals"), name)
            new.append(encode("open", opening.to_body()))
            row = {"time_s": 1.0, "step_key": "train/step", "step": number, "metrics": {"train/y": 1}}
            new.append(encode("row", row))
            new.close()
        assert len(os.listdir("/proc/self/fd")) == before
        log(10, 0, both)
        sl.finish_tracking(both)
        """
    job = start_job(tmp_path, then)
    _, error = job.communicate(timeout=120)
    assert job.returncode == 0, error
    wait_until_delivered(tmp_path / "both")
    run = RunDirectory(tmp_path / "both" / "job")
    file = run.read()
    for tracker in ("tensorboard", "trackio"):
        found = verify(run, tracker, file.facts(run.path, file.options))
        assert (found.is_equal, found.num_rows) == (True, 266)
