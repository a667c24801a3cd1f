"""The trackers: one module each behind the protocol of `base`, found by name in one table and
imported when opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast
from zlib import crc32

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


def destination(name: str, options: Mapping[str, Any]) -> str:
    """Where a backend's rows go, as a name for files: W&B offline and W&B online are two places
    with cursors of their own.
    """
    if name in ("wandb", "swanlab"):
        return f"{name}-{options.get(f'{name}_mode') or 'offline'}"
    uri = options.get("mlflow_tracking_uri") if name == "mlflow" else None
    return f"{name}-{crc32(_without_userinfo(str(uri)).encode()):08x}" if uri else name


def _without_userinfo(uri: str) -> str:
    """An address without user, password and query: a checksum would tell whether a guessed one is
    right.
    """
    return re.sub(r"(?<=://)[^/?#]*@|\?[^#]*", "", uri)
