"""Hosts that share no disk, where Ray is up: one run, with every row, whoever is killed.

Each host is a set of namespaces of this machine, see `machines`.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slime_logging.delivery.status import journal_rows
from slime_logging.record.run import RunDirectory
from tests.hosts.machines import RAY, Machines, needs_namespaces
from tests.proofs.checks import note

NUM_KILLS = int(os.environ.get("SLIME_LOGGING_HOST_KILLS", "5"))
"""How often something is killed in `make test`; 50 for the figure in docs/guarantees.md."""

PYTHON = sys.executable
COMMAND = str(Path(sys.executable).with_name("slime-logging"))
TRACKERS = os.environ.get("SLIME_LOGGING_HOST_TRACKERS", "wandb,tensorboard")
"""All five for the figure: wandb,tensorboard,trackio,mlflow,swanlab."""

pytestmark = [needs_namespaces(), pytest.mark.slow, pytest.mark.xdist_group("machines")]


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    pytest.importorskip("ray")
    with Machines(2) as both:
        both.start_ray(1, 2)
        yield both


def wait_for(what: Callable[[], object], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.1)


def acknowledged(machines: Machines, *numbers: int) -> set[tuple[int, int]]:
    """(trainer, row) of every acknowledged row of these hosts, of all without a number."""
    return {
        (int(path.name), int(line))
        for number in numbers or (1, 2)
        for path in (machines.on_disk(number) / "acks").glob("*")
        for line in path.read_bytes().split(b"\n")[:-1]
    }


def logged(directory: Path) -> Counter[tuple[int, int]]:
    rows = journal_rows(RunDirectory(directory))
    return Counter(
        (int(row.metrics["train/who"]), int(row.step)) for row in rows if "train/who" in row.metrics
    )


def pids(machines: Machines, number: int, title: str) -> list[int]:
    return [
        pid for pid, line in machines.processes(number).items() if line.startswith(f"ray::{title}")
    ]


def kill_one(machines: Machines, number: int, title: str) -> None:
    """Kill a process of a host, when it is there: Ray may be making it again."""
    wait_for(lambda: pids(machines, number, title))
    for pid in pids(machines, number, title):
        os.kill(pid, signal.SIGKILL)


def start_job(
    machines: Machines, trackers: str, num_restarts: int = -1, timeout_s: float = 60
) -> subprocess.Popen[bytes]:
    """Start the job anew, with nothing left of the one before."""
    for number in (1, 2):
        for name in ("tracking", "acks", "ready", "stop"):
            subprocess.run(["rm", "-rf", str(machines.on_disk(number) / name)], check=True)
    words = (str(machines.disk), trackers, str(num_restarts), str(timeout_s))
    driver = machines.popen(
        1, PYTHON, "-m", "tests.hosts.relay_job", *words, env=RAY, log="driver.log"
    )
    wait_for((machines.on_disk(1) / "ready").exists)
    return driver


def kill_driver(machines: Machines, driver: subprocess.Popen[bytes]) -> None:
    for pid, line in machines.processes(1).items():
        if "tests.hosts.relay_job" in line:
            os.kill(pid, signal.SIGKILL)
    driver.wait(30)


def assert_all_there_once(machines: Machines) -> None:
    """Every acknowledged row of both hosts is in the run's directory, once."""
    rows, acks = logged(machines.on_disk(1) / "tracking/job"), acknowledged(machines)
    assert len(acks) > 100
    assert not acks - set(rows), f"{len(acks - set(rows))} of {len(acks)} rows lost"
    assert max(rows.values()) == 1
    note(f"{len(acks)} acknowledged, {len(rows)} in the run's directory")


def said(machines: Machines) -> str:
    """What the driver and its actors printed."""
    return (machines.on_disk(1) / "driver.log").read_text()[-4000:]


def test_whoever_is_killed_every_row_is_in_the_one_run_once(machines):
    """kill -9 of trainers, relay and receiver at random moments; then the run is proved in its trackers."""
    driver = start_job(machines, TRACKERS)
    chance = random.Random(12)
    victims = [(1, "Receiver"), (2, "Relay"), (2, "Trainer"), (1, "Trainer")]
    for number in range(NUM_KILLS):
        time.sleep(chance.random() * 1.5)
        kill_one(machines, *(victims[number] if number < len(victims) else chance.choice(victims)))
    time.sleep(1)
    (machines.on_disk(1) / "stop").touch()
    assert driver.wait(120) == 0, said(machines)
    assert_all_there_once(machines)
    done = machines.run(1, COMMAND, "verify", str(machines.disk / "tracking/job"))
    assert done.returncode == 0, done.stdout + done.stderr + said(machines)
    assert done.stdout.count(": equal") == TRACKERS.count(",") + 1
    for title in ("Relay", "Receiver"):  # they end by themselves when their run is over
        wait_for(lambda title=title: not pids(machines, 1, title) + pids(machines, 2, title))


def test_the_ppo_demo_with_its_critic_on_another_host_is_one_run_in_five_trackers(machines):
    """A real job: torch and Megatron in each trainer, the critic's rows on a disk that the driver does not see."""
    words = (str(machines.disk), "wandb,tensorboard,trackio,mlflow,swanlab", "4")
    done = machines.run(1, PYTHON, "-m", "tests.hosts.ppo_job", *words, env=RAY, timeout_s=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    num_rows = int(done.stdout.rpartition("ROWS ")[2])
    rows = [
        row
        for row in journal_rows(RunDirectory(machines.on_disk(1) / "tracking/ppo"))
        if row.role != "system"
    ]
    assert len(rows) == num_rows
    note(f"{num_rows} rows of {num_rows}")
    roles = Counter(row.role for row in rows)
    assert roles["critic"] == 2 * 4
    assert roles["actor"] == 4 * (4 - 1)
    own = RunDirectory(machines.on_disk(2) / "tracking/ppo")
    assert {row.role for row in journal_rows(own)} <= {"critic", "system"}
    done = machines.run(1, COMMAND, "verify", str(machines.disk / "tracking/ppo"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": equal") == 5
    assert len(list(machines.on_disk(1).glob("tracking/ppo/wandb/offline-run-*"))) == 1


MEETING = """
import sys, ray, slime_logging
ray.init(address="auto")

@ray.remote(num_cpus=0)
class Process:
    def join(self, role, disk):
        where = {"directory": disk + "/tracking", "trackers": ["tensorboard"]}
        self.run = slime_logging.join({"of": role}, name="met", role=role, **where)
        return self.run.id
    def log(self):
        for step in range(50):
            self.run.log({"step": step, "x": step})
    def finish(self):
        self.run.finish()

roles = ("trainer", "explorer")
both = [Process.options(resources={f"host{n}": 1}).remote() for n in (1, 2)]
ids = ray.get([p.join.remote(role, sys.argv[1]) for p, role in zip(both, roles)])
assert len(set(ids)) == 1, ids
ray.get([p.log.remote() for p in both])
ray.get(both[1].finish.remote())
ray.get(both[0].finish.remote())
print("RUN", ids[0])
"""


def test_processes_that_meet_by_a_name_are_one_run_on_hosts_that_share_nothing(machines):
    """The cluster elects who makes the run, and the relay brings the other host's rows to it."""
    done = machines.run(1, PYTHON, "-c", MEETING, str(machines.disk), env=RAY)
    assert done.returncode == 0, done.stdout + done.stderr
    run_id = done.stdout.rpartition("RUN ")[2].strip()
    (maker,) = (n for n in (1, 2) if is_own(machines.on_disk(n) / "tracking" / run_id))
    rows = list(journal_rows(RunDirectory(machines.on_disk(maker) / "tracking" / run_id)))
    assert Counter(row.role for row in rows if "system" not in row.step_key) == {
        "trainer": 50,
        "explorer": 50,
    }
    verified(machines, maker, run_id)  # the maker may have ended before the other one


def is_own(directory: Path) -> bool:
    return RunDirectory(directory).read().outpost_of is None


def test_a_driver_that_is_killed_leaves_nothing_behind_on_the_other_host(machines):
    """Ray ends the trainers with it; the relay brings their last rows all the same."""
    driver = start_job(machines, "")
    time.sleep(1)
    kill_driver(machines, driver)
    wait_for(lambda: not pids(machines, 2, "Trainer"))
    wait_for(lambda: not acknowledged(machines) - set(logged(machines.on_disk(1) / "tracking/job")))
    assert_all_there_once(machines)


def test_a_host_that_dies_and_comes_back_gets_its_relay_back(machines):
    """What its disk still held arrives, though no process of the job is started there again."""
    driver = start_job(machines, "", num_restarts=0)
    run = machines.on_disk(1) / "tracking/job"
    wait_for(lambda: acknowledged(machines, 2) & set(logged(run)))
    relay = pids(machines, 2, "Relay")[0]
    os.kill(relay, signal.SIGSTOP)
    time.sleep(1)
    machines.crash(2)
    acks = acknowledged(machines, 2)
    assert acks - set(logged(run))
    machines.boot(2)
    machines.start_ray(2)
    wait_for(lambda: not acks - set(logged(run)))
    (machines.on_disk(1) / "stop").touch()
    driver.wait(60)
    assert_all_there_once(machines)


def printed(machines: Machines, number: int) -> str:
    """What the job's processes on a host printed there."""
    logs = machines.on_disk(number).glob("r/session_*/logs/worker-*.err")
    return "".join(path.read_text() for path in logs)


def verified(machines: Machines, number: int, run_id: str = "job") -> None:
    """Deliver what came later, and compare."""
    for command in ("sync", "verify"):
        done = machines.run(number, COMMAND, command, str(machines.disk / "tracking" / run_id))
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_dead_receiver_left_is_brought_by_the_command_that_is_printed_there(machines):
    """The critic ends while nobody takes its rows; it prints `push` with its own directory, and that brings all."""
    driver = start_job(machines, "tensorboard", timeout_s=5)
    run = machines.on_disk(1) / "tracking/job"
    wait_for(lambda: acknowledged(machines, 2) & set(logged(run)))
    (receiver,) = pids(machines, 1, "Receiver")
    os.kill(receiver, signal.SIGSTOP)
    time.sleep(1)
    (machines.on_disk(1) / "stop").touch()
    assert driver.wait(120) == 0, said(machines)
    assert acknowledged(machines, 2) - set(logged(run))
    (relay,) = pids(machines, 2, "Relay")
    os.kill(relay, signal.SIGSTOP)  # nobody but the command brings anything
    os.kill(receiver, signal.SIGKILL)
    commands = re.findall(
        r"rows of this run wait on host host2 .*(slime-logging push \S+)", printed(machines, 2)
    )
    search_path = f"{Path(PYTHON).parent}:{os.environ['PATH']}"
    done = machines.run(2, "sh", "-c", commands[-1], env={**RAY, "PATH": search_path})
    assert done.returncode == 0, done.stdout + done.stderr
    assert_all_there_once(machines)
    verified(machines, 1)
    os.kill(relay, signal.SIGKILL)


def test_what_a_dead_cluster_left_is_merged_as_the_join_told(machines):
    """Both the driver and the other host die; the rows on its disk are copied and merged by the command from the join."""
    driver = start_job(machines, "tensorboard", num_restarts=0)
    run = machines.on_disk(1) / "tracking/job"
    wait_for(lambda: acknowledged(machines, 2) & set(logged(run)))
    os.kill(pids(machines, 2, "Relay")[0], signal.SIGSTOP)
    time.sleep(1)
    machines.crash(2)
    kill_driver(machines, driver)
    told = re.findall(
        r"kept in (\S+) and brought .*(slime-logging merge COPY --into RUN)", printed(machines, 2)
    )
    place, command = told[-1]
    assert acknowledged(machines, 2) - set(logged(run))
    shutil.copytree(
        machines.on_disk(2) / Path(place).relative_to(machines.disk), machines.on_disk(1) / "copy"
    )
    words = {"COPY": f"{machines.disk}/copy", "RUN": f"{machines.disk}/tracking/job"}
    typed = [COMMAND, *(words.get(word, word) for word in command.split()[1:])]
    # The receiver holds its copies until it ends, seconds later: "not now" is said, and it may be typed again.
    wait_for(lambda: machines.run(1, *typed).returncode == 0)
    assert_all_there_once(machines)
    verified(machines, 1)
