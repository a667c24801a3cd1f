"""Jobs that keep journals only, and `slime-logging sync --follow`, which delivers them live from another place."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import slime_logging as sl
from slime_logging.delivery.ending import read_ending
from slime_logging.delivery.follow import runs_below
from slime_logging.record.run import RunDirectory
from slime_logging.settings.settings import Settings
from tests.proofs.checks import assert_acknowledged_once, assert_equal, verdict
from tests.proofs.nursery import Nursery

COMMAND = Path(sys.executable).with_name("slime-logging")


def arguments(place: Path, run_id: str, *trackers: str) -> dict:
    return {
        "tracking_dir": str(place),
        "wandb_run_id": run_id,
        "wandb_mode": "offline",
        "tracking_delivery": "off",
        "tracking_system_metrics": "off",
        "lr": 0.1,
        **{f"use_{name}": True for name in trackers},
    }


def wait_for(what: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline_s, "it does not happen"
        time.sleep(0.05)


class Login:
    """A login node: `sync --follow` in a process of its own."""

    def __init__(self, place: Path, *options: str) -> None:
        self.log = place.parent / f"follow-{time.monotonic_ns()}.log"
        self.process = subprocess.Popen(
            [str(COMMAND), "sync", "--follow", str(place), *options],
            cwd=place.parent,
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
        )

    def end(self) -> str:
        """Ctrl-C; what it printed."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=60) == 0, self.log.read_text()
        return self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def login() -> Iterator[Callable[..., Login]]:
    made: list[Login] = []

    def start(place: Path, *options: str) -> Login:
        made.append(Login(place, *options))
        return made[-1]

    yield start
    for one in made:
        one.kill()


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    new = Nursery(tmp_path)
    yield new
    new.close()


def num_delivered(directory: Path, tracker: str = "tensorboard") -> int:
    found = verdict(directory, tracker)
    return found.num_rows - len(found.missing)


def test_a_job_without_delivery_keeps_journals_and_starts_no_client(tmp_path, capfd):
    """Neither a package nor a key of the tracker is needed on its host."""
    args = Namespace(**arguments(tmp_path, "job", "tensorboard", "wandb"))
    args.wandb_mode = "online"
    sl.init_tracking(args)
    sl.log(args, {"train/step": 1, "train/x": 2.0}, "train/step")
    sl.finish_tracking(args)
    run = RunDirectory(tmp_path / "job")
    assert run.read().trackers == ("wandb", "tensorboard")
    assert not run.read().is_shared
    assert not list(run.delivery.glob("*@*"))
    assert not [p.name for p in run.path.iterdir() if p.name in ("tensorboard", "wandb")]
    assert f"slime-logging sync --follow {run.path}" in capfd.readouterr().err
    assert Settings.of(args).delivers == ()


def test_all_runs_below_a_directory_are_delivered_live_new_ones_too(tmp_path, login, nursery):
    place = tmp_path / "tracking"
    nursery.start(0, arguments(place / "a", "a", "tensorboard"), primary=True, pause_s=0.01)
    wait_for((place / "a" / "a" / "run.json").exists)
    node = login(place)
    wait_for(lambda: num_delivered(place / "a" / "a") > 0)
    nursery.start(1, arguments(place / "b", "b", "tensorboard"), primary=True, pause_s=0.01)
    for name in "ab":
        wait_for((place / name / name / "run.json").exists)
        before = verdict(place / name / name, "tensorboard").num_rows
        wait_for(lambda name=name, before=before: num_delivered(place / name / name) > before + 50)
    nursery.kill(0)
    wait_for(lambda: "a/a  complete  tensorboard" in node.log.read_text())
    ending = read_ending(RunDirectory(place / "a" / "a"), 1)
    assert ending.state == "crashed"
    assert "b/b  delivering  tensorboard" in node.end()
    nursery.finish_all()
    again = login(place)
    wait_for(lambda: "b/b  complete" in again.log.read_text())
    assert "a/a  complete" in again.end()
    for name in "ab":
        assert_equal(place / name / name, "tensorboard")


def test_a_run_that_is_unreadable_for_a_while_or_removed_stops_nobody(tmp_path, login, nursery):
    """A copy that is being written, a network disk that fails; then it is delivered to its end."""
    place = tmp_path / "tracking"
    for number, name in enumerate("ab"):
        args = arguments(place, name, "tensorboard")
        nursery.start(number, args, primary=True, pause_s=0.01)
        wait_for((place / name / "run.json").exists)
    node = login(place)
    wait_for(lambda: node.log.read_text().count("delivering  tensorboard") == 2)
    file = place / "a" / "run.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    wait_for(lambda: "a  unreadable" in node.log.read_text())
    shutil.rmtree(place / "b")
    file.write_bytes(whole)
    nursery.kill(0)
    wait_for(lambda: "a  complete" in node.log.read_text())
    node.end()
    assert_equal(place / "a", "tensorboard")


def test_a_run_that_its_job_or_another_follower_delivers_is_left_alone(tmp_path, login, nursery):
    place = tmp_path / "tracking"
    own = {**arguments(place, "own", "tensorboard"), "tracking_delivery": "auto"}
    nursery.start(0, own, primary=True, pause_s=0.01)
    nursery.start(1, arguments(place, "other", "tensorboard"), primary=True, pause_s=0.01)
    wait_for(lambda: RunDirectory(place / "own").locks.has_living_supervisor)
    wait_for((place / "other" / "run.json").exists)
    first = login(place)
    wait_for(lambda: "other  delivering" in first.log.read_text())
    second = login(place)
    wait_for(lambda: "other  left to another sync" in second.log.read_text())
    assert "own  left to its job" in second.log.read_text()
    first.kill()
    before = verdict(place / "other", "tensorboard").num_rows
    wait_for(lambda: num_delivered(place / "other") > before)
    nursery.finish_all()
    wait_for(lambda: "other  complete" in second.log.read_text())
    second.end()
    for name in ("own", "other"):
        assert_equal(place / name, "tensorboard")


def test_what_must_not_be_delivered_is_told_and_holds_up_no_other_run(tmp_path, login):
    place = tmp_path / "tracking"
    for name, uri in (("bad", "http://127.0.0.1:9"), ("good", None)):
        args = Namespace(**arguments(place, name, "tensorboard"))
        if uri:
            args.use_mlflow, args.mlflow_tracking_uri = True, uri
        sl.init_tracking(args)
        sl.log(args, {"train/step": 1, "train/x": 0.5}, "train/step")
        sl.finish_tracking(args)
    node = login(place)
    wait_for(lambda: "good  complete" in node.log.read_text())
    assert "bad  refused" in node.log.read_text()
    assert "-o mlflow_tracking_uri" in node.end()


def test_killed_at_random_nothing_is_lost_and_nothing_doubled(tmp_path, login, nursery):
    """kill -9 of the follower and of every process of the job, eight times, and a restart of the run."""
    chance = random.Random(7)
    place, trackers = tmp_path / "tracking", ("tensorboard", "wandb")
    args = arguments(place, "job", *trackers)
    number, living = 0, {}
    node = login(place.parent)
    for _ in range(8):
        for slot in ("primary", "critic"):
            if slot not in living:
                given = dict(args)
                if slot == "critic":
                    given["tracking_run_dir"] = str(place / "job")
                role = None if slot == "primary" else slot
                nursery.start(number, given, primary=slot == "primary", role=role)
                living[slot], number = number, number + 1
                wait_for(lambda: (place / "job" / "run.json").exists())
        time.sleep(chance.random() * 1.2)
        victim = chance.choice(("primary", "critic", "follower", "follower"))
        if victim == "follower":
            node.kill()
            node = login(place.parent)
        else:
            nursery.kill(living.pop(victim))
    nursery.finish_all()
    wait_for(lambda: "job  complete" in node.log.read_text(), 90)
    node.end()
    acknowledged = nursery.acknowledged()
    assert len(acknowledged) > 100
    assert_acknowledged_once(place / "job", acknowledged)
    for tracker in trackers:
        assert_equal(place / "job", tracker)


def test_runs_are_found_at_any_depth_and_links_lead_nowhere(tmp_path):
    for name in ("run", "team/job/run", ".hidden/run"):
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "run.json").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "run.json").touch()
    (tmp_path / "all" / "link").symlink_to(tmp_path / "elsewhere")
    found = {run.path.relative_to(tmp_path).as_posix() for run in runs_below(tmp_path / "all")}
    assert found == {"all/run", "all/team/job/run"}
