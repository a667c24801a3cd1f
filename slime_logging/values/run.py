"""What a tracker is told of a run: its facts, and its whole configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_logging.values.json_value import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """What a backend needs to know of the run; the same in every process that delivers to it.

    `directory` is the run's directory, absolute: a backend keeps local files of its own below
    `directory / <backend>`. `options` holds the backend's own flags by their dest names
    (`wandb_mode`, `tb_project_name`, ...), secrets included: they are for the vendor's client only
    and must reach no file. `axes` maps a metric prefix to its step key: `"train"` -> `"train/step"`
    means `train/*` is drawn over `train/step`. `roles` are the roles with a configuration of their
    own, the un-prefixed one (the actor) first.
    """

    run_id: str
    project: str
    name: str
    group: str | None
    directory: Path
    created_s: float
    axes: Mapping[str, str]
    roles: tuple[str, ...] = ("actor",)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """The run's whole configuration, as it stands.

    `values` is the flat view: global arguments with the actor's overrides un-prefixed,
    `critic/<key>` for the critic, `overrides/<role>/<key>` = {"base", "value"},
    `<role>/process/<key>`, `env_vars`, `redacted_keys`. Values may be nested. `roles` is the same
    by role: role -> the complete configuration of that role, un-prefixed.
    """

    values: Mapping[str, Json]
    roles: Mapping[str, Mapping[str, Json]]
