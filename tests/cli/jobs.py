"""The job that the tests of the commands look at."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path


def tensorboard_job(place: Path) -> Namespace:
    """Arguments of a run called `job` below `place`, delivered to TensorBoard alone."""
    return Namespace(
        tracking_dir=str(place),
        wandb_run_id="job",
        tracking_system_metrics="off",
        use_tensorboard=True,
    )
