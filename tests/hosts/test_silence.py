"""A process that asks to join a run never logs into nothing without a word."""

from __future__ import annotations

import threading
import time
from argparse import Namespace
from pathlib import Path

import pytest

import slime_logging as sl
from slime_logging.delivery.status import journal_config
from slime_logging.hosts.rendezvous import ENV_TOKEN, join_by_store
from slime_logging.record.run import RunDirectory
from slime_logging.slime.wandb_utils import init_wandb_secondary
from tests.hosts.test_merge import run


def job(place: Path, **more: object) -> Namespace:
    return Namespace(
        **{"use_tensorboard": True, "tracking_dir": str(place), "tracking_system_metrics": "off"}
        | more
    )


def lines(caplog: pytest.LogCaptureFixture, level: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == level]


@pytest.mark.parametrize("role", ["critic", None])
def test_without_a_run_it_says_at_once_how_to_join(tmp_path, caplog, role):
    """As under plain torchrun, where each rank parses its own arguments."""
    args = job(tmp_path)
    begun_s = time.monotonic()
    sl.init_tracking(args, primary=False, role=role)
    assert time.monotonic() - begun_s < 30
    (text,) = lines(caplog, "ERROR")
    for word in (role or "this process", "--wandb-run-id", ENV_TOKEN, "join_by_store"):
        assert word in text
    sl.log(args, {"train/step": 1, "train/x": 1}, "train/step")
    sl.finish_tracking(args)
    assert not list(tmp_path.iterdir())


def test_a_wandb_client_of_its_own_without_a_run_says_so_too(tmp_path, caplog):
    init_wandb_secondary(job(tmp_path, use_wandb=True, wandb_mode="offline"), None)
    assert "finds no run to join" in caplog.text


def test_with_tracking_off_there_is_nothing_to_say(caplog):
    sl.init_tracking(Namespace(), primary=False, role="critic")
    assert not caplog.records


def test_who_waits_for_a_run_says_so_and_when_it_is_there(tmp_path, caplog):
    primary = job(tmp_path / "aside", wandb_run_id="late")
    sl.init_tracking(primary)
    sl.finish_tracking(primary)
    aside = tmp_path / "aside/late"
    threading.Timer(2.6, aside.rename, (tmp_path / "late",)).start()
    late = job(tmp_path, wandb_run_id="late")
    sl.init_tracking(late, primary=False, role="critic")
    waiting, found = (line for line in lines(caplog, "WARNING") if "the run late" in line)
    assert "waiting for the run late" in waiting
    assert "found after" in found
    assert not lines(caplog, "ERROR")


def test_a_run_object_that_insists_on_joining_says_what_it_waits_for(tmp_path, caplog):
    threading.Timer(2.6, lambda: sl.join(name="late", directory=tmp_path, make=True)).start()
    run = sl.join(name="late", directory=tmp_path, make=False, role="critic")
    assert [text.split()[1] for text in lines(caplog, "WARNING")] == ["waiting", "found"]
    run.finish()


def test_a_store_that_nobody_publishes_in_is_waited_for_aloud(tmp_path, caplog):
    from datetime import timedelta

    dist = pytest.importorskip("torch.distributed")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=2.5))
    with pytest.raises(dist.DistStoreError):
        join_by_store(store, job(tmp_path))
    assert "waiting for a run in the torch store" in caplog.text


def test_several_processes_of_a_role_and_of_none_keep_their_facts(tmp_path):
    """Host and pid are equal here, as they can be in containers."""
    runs = [
        sl.join(id="job", directory=tmp_path, role=role, trackers=["tensorboard"])
        for role in (None,) + ("explorer",) * 4 + (None,) * 3
    ]
    values = journal_config(RunDirectory(tmp_path / "job"), ()).values
    for head, number in (("explorer/process/", 4), ("process/", 1 + 3)):
        facts = [v for k, v in values.items() if k.startswith(head) and isinstance(v, dict)]
        assert len(facts) == number
        assert all("host" in each and "pid" in each for each in facts)
    for each in reversed(runs):
        each.finish()
    code, text = run("verify", tmp_path / "job")
    assert code == 0, text
