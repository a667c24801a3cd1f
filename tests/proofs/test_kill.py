"""kill -9 of any process of a job at random moments: in the end no acknowledged row is missing, and none doubled."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proofs.checks import assert_acknowledged_once, assert_equal, sync
from tests.proofs.nursery import Nursery

NUM_KILLS = int(os.environ.get("SLIME_LOGGING_PROOF_KILLS", "200"))
KILLS_PER_JOB = 20
TRACKERS = (("tensorboard",), ("wandb",), ("tensorboard",), ("trackio",))
SLOTS = ("primary", "actor", "critic", "rollout")


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    new = Nursery(tmp_path)
    yield new
    new.close()


class Job:
    """Four writers; whoever is killed is followed by another one in the same place."""

    def __init__(self, nursery: Nursery, trackers: tuple[str, ...]) -> None:
        self.nursery = nursery
        self.directory = nursery.place / "tracking" / "job"
        self._args = {
            "tracking_dir": str(nursery.place / "tracking"),
            "wandb_run_id": "job",
            "wandb_mode": "offline",
            "tracking_system_metrics": "off",
            "lr": 0.1,
            **{f"use_{name}": True for name in trackers},
        }
        self._numbers = 0
        self.slots: dict[str, int] = {}

    def start(self, slot: str) -> None:
        args = dict(self._args)
        if slot != "primary":
            args["tracking_run_dir"] = str(self.directory)
        role = slot if slot in ("actor", "critic") else None
        self.nursery.start(self._numbers, args, primary=slot == "primary", role=role)
        self.slots[slot] = self._numbers
        self._numbers += 1
        while not (self.directory / "run.json").exists():
            time.sleep(0.005)

    def kill(self, slot: str) -> None:
        self.nursery.kill(self.slots.pop(slot))


@pytest.mark.parametrize("number", range(max(1, NUM_KILLS // KILLS_PER_JOB)))
def test_nothing_acknowledged_is_lost_and_nothing_doubled(nursery, number):
    """Twenty kills a job, the primary's among them; about every other job ends with all of them killed at once."""
    chance = random.Random(number)
    trackers = TRACKERS[number % len(TRACKERS)]
    job = Job(nursery, trackers)
    for slot in SLOTS:
        job.start(slot)
    for _ in range(KILLS_PER_JOB):
        time.sleep(chance.random() * 0.25)
        victims = SLOTS if chance.random() < 0.1 else (chance.choice(SLOTS),)
        for slot in victims:
            job.kill(slot)
        for slot in victims:
            job.start(slot)
    deadline_s = time.monotonic() + 60
    while len(nursery.acknowledged()) <= 100 and time.monotonic() < deadline_s:  # a busy machine
        time.sleep(0.05)
    time.sleep(chance.random() * 0.25)
    if chance.random() < 0.5:
        for slot in SLOTS:
            job.kill(slot)
    else:
        nursery.finish_all()
    sync(job.directory)
    acknowledged = nursery.acknowledged()
    assert len(acknowledged) > 100
    assert_acknowledged_once(job.directory, acknowledged)
    for tracker in trackers:
        assert_equal(job.directory, tracker)
