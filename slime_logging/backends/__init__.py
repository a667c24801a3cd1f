"""The trackers: one module each behind the protocol of `base`, found by name in one table and
imported when opened.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from slime_logging.backends.base import Backend

BACKENDS = {
    "wandb": "slime_logging.backends.wandb.backend:WandbBackend",
    "trackio": "slime_logging.backends.trackio.backend:TrackioBackend",
    "tensorboard": "slime_logging.backends.tensorboard.backend:TensorboardBackend",
    "mlflow": "slime_logging.backends.mlflow.backend:MlflowBackend",
    "swanlab": "slime_logging.backends.swanlab.backend:SwanlabBackend",
    "memory": "slime_logging.backends.memory:MemoryBackend",
}


def new_backend(name: str) -> Backend:
    """A fresh backend by its name in `BACKENDS`; it loads no vendor package until it is opened."""
    module, _, class_name = BACKENDS[name].partition(":")
    return cast(Backend, getattr(import_module(module), class_name)())
