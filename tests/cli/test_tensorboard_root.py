"""`tensorboard --logdir tracking` shows the runs of a tracking directory beside each other."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

import slime_logging

pytest.importorskip("tensorboard")


def test_every_run_of_a_tracking_directory_is_shown(tmp_path: Path) -> None:
    """By TensorBoard's own reader, a run and role each, under its run's id."""
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    for number, run_id in enumerate(("first", "second")):
        args = Namespace(
            tracking_dir=str(tmp_path),
            wandb_run_id=run_id,
            tracking_system_metrics="off",
            use_tensorboard=True,
        )
        with slime_logging.tracked(args):
            row = {"train/step": 1, "train/loss": float(number)}
            slime_logging.log(args, row, "train/step")
    shown = EventMultiplexer().AddRunsFromDirectory(str(tmp_path))
    shown.Reload()
    found = {
        name: tensors.value
        for name in shown.Runs()
        if "train/loss" in shown.Runs()[name]["scalars"]
        for tensors in shown.Scalars(name, "train/loss")
    }
    assert {name.split("/")[0]: value for name, value in found.items()} == {
        "first": 0.0,
        "second": 1.0,
    }
