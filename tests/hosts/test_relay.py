"""Hosts that share no disk, where Ray is up: one run, with every row, whoever is killed.

Each host is a set of namespaces of this machine, see `machines`.
"""

from __future__ import annotations

import os
import random
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
        both.start_ray(1)
        both.start_ray(2)
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


def start_job(machines: Machines, trackers: str, num_restarts: int = -1) -> subprocess.Popen[bytes]:
    """Start the job anew, with nothing left of the one before."""
    for number in (1, 2):
        for name in ("tracking", "acks", "ready", "stop"):
            subprocess.run(["rm", "-rf", str(machines.on_disk(number) / name)], check=True)
    words = (str(machines.disk), trackers, str(num_restarts))
    driver = machines.popen(
        1, PYTHON, "-m", "tests.hosts.relay_job", *words, env=RAY, log="driver.log"
    )
    wait_for((machines.on_disk(1) / "ready").exists)
    return driver


def assert_all_there_once(machines: Machines) -> None:
    """Every acknowledged row of both hosts is in the run's directory, once."""
    rows, acks = logged(machines.on_disk(1) / "tracking/job"), acknowledged(machines)
    assert len(acks) > 100
    assert not acks - set(rows), f"{len(acks - set(rows))} of {len(acks)} rows lost"
    assert max(rows.values()) == 1


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
    verified = machines.run(maker, COMMAND, "verify", str(machines.disk / "tracking" / run_id))
    assert verified.returncode == 0, verified.stdout + verified.stderr


def is_own(directory: Path) -> bool:
    return RunDirectory(directory).read().outpost_of is None


def test_a_driver_that_is_killed_leaves_nothing_behind_on_the_other_host(machines):
    """Ray ends the trainers with it; the relay brings their last rows all the same."""
    driver = start_job(machines, "")
    time.sleep(1)
    for pid, line in machines.processes(1).items():
        if "tests.hosts.relay_job" in line:
            os.kill(pid, signal.SIGKILL)
    driver.wait(30)
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
