"""Many W&B clients on one run: every row and every configuration key arrives, whoever joins or finishes first.

The server replaces or merges configuration, honours offsets or appends, and loses early rows where it is told to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_logging.record.run import RunDirectory
from tests.proofs.checks import assert_acknowledged_once, assert_equal, sync, verdict
from tests.proofs.nursery import Nursery
from tests.wandb_server import WandbServer
from tests.wandb_server.fixtures import wandb_server  # noqa: F401

NUM_SECONDARIES = 8


@pytest.fixture
def nursery(tmp_path: Path, wandb_server: WandbServer) -> Iterator[Nursery]:  # noqa: F811
    new = Nursery(tmp_path)
    yield new
    new.close()


def job_args(nursery: Nursery, server: WandbServer) -> dict[str, Any]:
    return {
        "use_wandb": True,
        "tracking_dir": str(nursery.place / "tracking"),
        "wandb_run_id": "job",
        "tracking_system_metrics": "off",
        "tracking_finish_timeout": 60,
        "use_critic": True,
        "lr": 0.1,
        **server.options,
    }


def wait_for(directory: Path) -> None:
    while not (directory / "run.json").exists():
        time.sleep(0.01)


def assert_all_there(
    nursery: Nursery, server: WandbServer, directory: Path, num_writers: int, num_rows: int
) -> None:
    found = assert_equal(directory, "wandb", **server.options)
    assert found.num_rows == num_writers * num_rows
    assert_acknowledged_once(directory, nursery.acknowledged())
    config = server.config("job")
    processes = [key for key in config if key.startswith("process/")]
    assert config["lr"] == config["critic/lr"] == 0.1
    assert len([key for key in config if key.endswith("process/pid")]) + len(processes) >= 3


@pytest.mark.parametrize(
    ("semantics", "is_primary_last"),
    [("replace", True), ("merge", False)],
    ids=["replace-last", "merge-first"],
)
def test_eight_join_in_the_same_second(nursery, wandb_server, semantics, is_primary_last):  # noqa: F811
    """Before the primary has its run on the server, too: all start at once, with nothing but the run's id."""
    wandb_server.behave(config=semantics)
    args = job_args(nursery, wandb_server)
    directory = nursery.place / "tracking" / "job"
    for number in range(1, NUM_SECONDARIES + 1):
        role = ("actor", "critic", None)[number % 3]
        nursery.start(number, args, role=role, wants_client=True, num_rows=20)
    nursery.start(0, args, primary=True, num_rows=20 if not is_primary_last else None)
    for number in range(1, NUM_SECONDARIES + 1):
        nursery.finish(number)
    if is_primary_last:
        nursery.finish_all()
    else:
        nursery.finish(0)
    if not is_primary_last:
        assert_all_there(nursery, wandb_server, directory, NUM_SECONDARIES + 1, 20)
        return
    assert_equal(directory, "wandb", **wandb_server.options)
    assert_acknowledged_once(directory, nursery.acknowledged())
    assert wandb_server.run("job")["state"] == "finished"


def test_rows_that_the_server_lost_are_found_and_mended(nursery, wandb_server):  # noqa: F811
    """As wandb issue 12269: a late client's first row makes early rows vanish; once the job is over there is one
    client.
    """
    wandb_server.behave(lose_early=11, config="replace")
    args = job_args(nursery, wandb_server)
    directory = nursery.place / "tracking" / "job"
    nursery.start(0, args, primary=True, pause_s=0.02)
    while len(wandb_server.rows("job")) < 20:
        time.sleep(0.1)
    nursery.start(
        1,
        {**args, "tracking_run_dir": str(directory)},
        role="critic",
        wants_client=True,
        num_rows=10,
    )
    nursery.finish(1)
    nursery.finish_all()
    before = verdict(directory, "wandb", **wandb_server.options)
    assert len(before.missing) == 11
    assert not before.is_equal
    wandb_server.behave(lose_early=0)
    sync(
        directory,
        "--repair",
        "-o",
        f"wandb_key={wandb_server.key}",
        "-o",
        f"wandb_host={wandb_server.url}",
    )
    assert_equal(directory, "wandb", **wandb_server.options)
    assert RunDirectory(directory).read().is_shared


def test_clients_that_outlive_their_primary_deliver_on_beside_the_next(nursery, wandb_server):  # noqa: F811
    """The next primary leaves their journals to them while they live, and takes over those of one that was killed."""
    wandb_server.behave(config="replace")
    args = job_args(nursery, wandb_server)
    directory = nursery.place / "tracking" / "job"
    nursery.start(0, args, primary=True)
    wait_for(directory)
    for number, role in ((1, "critic"), (2, "actor")):
        nursery.start(
            number, {**args, "tracking_run_dir": str(directory)}, role=role, wants_client=True
        )
    while len(wandb_server.rows("job")) < 100:
        time.sleep(0.1)
    nursery.kill(0)
    nursery.kill(2)
    nursery.start(3, args, primary=True)
    nursery.finish_all()
    sync(directory, "-o", f"wandb_key={wandb_server.key}", "-o", f"wandb_host={wandb_server.url}")
    assert_acknowledged_once(directory, nursery.acknowledged())
    assert_equal(directory, "wandb", **wandb_server.options)
