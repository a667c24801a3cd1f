"""A W&B server that is down, slow, refusing or restarted: `log` never raises nor waits, and all arrives later."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_logging.delivery.cursor import read_cursors
from slime_logging.record.run import RunDirectory
from tests.proofs.checks import assert_acknowledged_once, assert_equal, sync
from tests.proofs.nursery import Nursery
from tests.wandb_server import WandbServer
from tests.wandb_server.fixtures import wandb_server  # noqa: F401


@pytest.fixture
def nursery(tmp_path: Path, wandb_server: WandbServer) -> Iterator[Nursery]:  # noqa: F811
    new = Nursery(tmp_path)
    yield new
    new.close()


class Job:
    """A primary that logs some 500 rows a second to the server, in single or shared mode."""

    def __init__(self, nursery: Nursery, server: WandbServer, **changes: Any) -> None:
        self.nursery, self.server = nursery, server
        self.directory = nursery.place / "tracking" / "job"
        args = {
            "use_wandb": True,
            "tracking_dir": str(nursery.place / "tracking"),
            "wandb_run_id": "job",
            "tracking_system_metrics": "off",
            "tracking_finish_timeout": 40,
            "tracking_writer": "single",
            **server.options,
            **changes,
        }
        nursery.start(0, args, primary=True, is_timed=True)

    def wait_for_rows(self, number: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.nursery.acknowledged()) < number and time.monotonic() < deadline:
            time.sleep(0.02)

    def log_on(self, num_rows: int = 300) -> None:
        self.wait_for_rows(len(self.nursery.acknowledged()) + num_rows)

    def wait_for_delivery(self) -> None:
        deadline = time.monotonic() + 60
        while not self.server.rows("job") and time.monotonic() < deadline:
            time.sleep(0.1)

    def end(self) -> None:
        self.nursery.finish_all()

    def assert_in_nobody_s_way(self) -> None:
        """No exception out of `log` (the writer would have ended), and no network call in the process that trains."""
        times = json.loads((self.nursery.place / "times").read_text())
        assert len(times) == len(self.nursery.acknowledged())
        assert not (self.nursery.place / "sockets").exists()

    def assert_all_there(self) -> None:
        assert_acknowledged_once(self.directory, self.nursery.acknowledged())
        assert_equal(self.directory, "wandb", **self.server.options)

    def sync(self) -> None:
        sync(
            self.directory,
            "-o",
            f"wandb_key={self.server.key}",
            "-o",
            f"wandb_host={self.server.url}",
        )


def state(job: Job) -> str:
    return read_cursors(RunDirectory(job.directory))[-1].state


def test_down_for_the_whole_job(nursery, wandb_server):  # noqa: F811
    wandb_server.kill()
    job = Job(nursery, wandb_server, tracking_finish_timeout=1)
    job.log_on(500)
    job.end()
    job.assert_in_nobody_s_way()
    assert f"slime-logging sync {job.directory}" in nursery.log()
    wandb_server.start()
    job.sync()
    job.assert_all_there()


def test_down_at_the_start_and_again_at_the_end(nursery, wandb_server):  # noqa: F811
    wandb_server.kill()
    job = Job(nursery, wandb_server, tracking_finish_timeout=3)
    job.log_on()
    wandb_server.start()
    job.wait_for_delivery()
    wandb_server.kill()
    job.log_on()
    job.end()
    job.assert_in_nobody_s_way()
    wandb_server.start()
    job.sync()
    job.assert_all_there()


def test_misbehaving_in_the_middle(nursery, wandb_server):  # noqa: F811
    """Killed and restarted, refusing by 429 and 500, slow, cutting connections: one after the other."""
    job = Job(nursery, wandb_server)
    job.wait_for_delivery()
    wandb_server.kill()
    job.log_on()
    wandb_server.start()
    for fault in (
        {"status": 429},
        {"status": 500},
        {"action": "delay", "seconds": 1.0},
        {"action": "cut"},
    ):
        wandb_server.fail("*", **fault)
        job.log_on()
        wandb_server.heal()
        job.log_on(100)
    wandb_server.restart()
    job.log_on(100)
    job.end()
    job.assert_in_nobody_s_way()
    job.sync()
    job.assert_all_there()


def test_a_stream_that_is_refused_for_good_starts_anew(nursery, wandb_server):  # noqa: F811
    """W&B's client stops sending at a 404 and says nothing to its caller: that is noticed, and a new client goes on."""
    job = Job(nursery, wandb_server)
    job.wait_for_delivery()
    wandb_server.fail("file_stream", status=404, times=1)
    job.log_on(200)
    job.end()
    job.assert_in_nobody_s_way()
    job.sync()
    job.assert_all_there()


def test_a_wrong_key(nursery, wandb_server):  # noqa: F811
    job = Job(nursery, wandb_server, wandb_key="f" * 40, tracking_finish_timeout=20)
    job.log_on()
    job.end()
    job.assert_in_nobody_s_way()
    assert state(job) == "refused"
    assert "f" * 40 not in nursery.log()
    job.sync()
    job.assert_all_there()


def test_a_killed_job_is_continued_on_a_server_that_lags(nursery, wandb_server):  # noqa: F811
    """Each line has its place and the counts are four seconds old: who goes on at once would write over the rows."""
    wandb_server.behave(offsets="honour", lag_s=4.0)
    job = Job(nursery, wandb_server)
    job.wait_for_delivery()
    job.log_on(100)
    nursery.kill(0)
    job.sync()
    job.assert_all_there()
