"""A job's processes find the run by their arguments, the environment, a torch store, or Ray."""

from __future__ import annotations

import time
from argparse import Namespace

import pytest

import slime_logging as sl
from slime_logging.errors import RunNotFoundError, SettingsError
from slime_logging.hosts.rendezvous import (
    ENV_TOKEN,
    RunAddress,
    find,
    join_by_store,
    publish,
    publish_to_store,
    see,
)
from tests.record.test_run import made
from tests.test_tracking import held, job


def test_arguments_carry_the_address(tmp_path):
    args, address = Namespace(), RunAddress(run_id="abc", directory=tmp_path)
    publish(args, address)
    assert find(args, {}) == address


def test_the_environment_is_asked_when_the_arguments_are_silent(tmp_path):
    address = RunAddress(run_id="abc", directory=tmp_path)
    assert find(Namespace(), {ENV_TOKEN: address.to_token()}) == address
    assert find(Namespace(), {}) is None


def test_arguments_go_before_the_environment():
    assert find(Namespace(wandb_run_id="mine"), {ENV_TOKEN: "other@/x"}).run_id == "mine"


@pytest.mark.parametrize("token", ["../x@/tmp", "@/tmp", "a b@"])
def test_a_hostile_token_is_refused(token):
    with pytest.raises(SettingsError):
        find(Namespace(), {ENV_TOKEN: token})


def test_a_directory_of_another_run_is_not_taken_for_ours(tmp_path):
    path = made(tmp_path).path
    assert see(RunAddress(run_id="abc", directory=path), 0.0).path == path
    assert see(RunAddress(run_id="other", directory=path), 0.0) is None
    assert see(RunAddress(run_id="abc", directory=tmp_path / "none"), 0.0) is None
    assert see(RunAddress(run_id="abc"), 0.0) is None


def test_a_directory_that_shows_late_is_waited_for(tmp_path):
    import threading

    timer = threading.Timer(0.2, lambda: made(tmp_path))
    timer.start()
    begun = time.monotonic()
    assert see(RunAddress(run_id="abc", directory=tmp_path / "abc"), 10.0) is not None
    assert time.monotonic() - begun < 9


def test_a_torch_store_carries_the_address(tmp_path):
    import torch.distributed as dist

    store = dist.HashStore()
    with pytest.raises(RunNotFoundError):
        publish_to_store(store, Namespace())
    primary = job(tmp_path)
    sl.init_tracking(primary)
    publish_to_store(store, primary)
    other = job(tmp_path)
    join_by_store(store, other)
    assert (other.wandb_run_id, other.tracking_run_dir) == (
        primary.wandb_run_id,
        primary.tracking_run_dir,
    )


def test_processes_without_pickled_arguments_join_by_the_environment(tmp_path, monkeypatch):
    args = job(tmp_path)
    sl.init_tracking(args)
    monkeypatch.setenv(ENV_TOKEN, find(args).to_token())
    other = Namespace(
        use_memory=True, tracking_dir=args.tracking_dir, tracking_system_metrics="off"
    )
    sl.init_tracking(other, primary=False, role="explorer")
    sl.log(other, {"explorer/step": 1, "explorer/x": 2}, "explorer/step")
    sl.finish_tracking(other)
    sl.finish_tracking(args)
    assert [(row.role, row.step) for row in held(args).rows] == [("explorer", 1)]
