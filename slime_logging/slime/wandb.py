"""Stands in for `import wandb` in code that logs to slime's run.

Write `from slime_logging.slime import wandb`. `run`, `log`, `config`, `summary` and `define_metric`
are those of the job's own run; everything else (`Image`, `Table`, ...) is the real package's.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from slime_logging.slime.wandb_run import wandb_run

_OF_RUN = ("config", "summary", "define_metric")


def log(data: Mapping[str, Any], step: int | None = None, commit: bool | None = None) -> None:
    """As `WandbRun.log`; nothing in a process that is in no run."""
    run = wandb_run()
    if run is not None:
        run.log(data, step, commit)


def __getattr__(name: str) -> Any:
    run = wandb_run()
    if name == "run":
        return run
    if run is not None and name in _OF_RUN:
        return getattr(run, name)
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("wandb"), name)
