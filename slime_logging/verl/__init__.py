"""verl's door: `trainer.logger=['console','slime_logging']`, where verl imports this module
(`VERL_USE_EXTERNAL_MODULES=slime_logging.verl`) or a script of yours does.

What the import does, and all that it does: verl's list of backends is closed, so `slime_logging` is
added to `verl.utils.tracking.Tracking.supported_backend`, and three methods are wrapped:
`Tracking.__init__` joins a run where the list asks for it, `Tracking.finish` ends it, and
`ValidationGenerationsLogger.log` hands the generations on. Where `slime_logging` is not asked for,
they do what they did.

Policy: `actor_rollout_ref.actor`, `actor_rollout_ref.rollout`, `actor_rollout_ref.ref`, `critic`
and `reward` stand under their roles, so that what differs between actor and critic is seen; the
rest stands un-prefixed. Metrics keep verl's names, over verl's step.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from slime_logging.joining import join
from slime_logging.run import Run

BACKEND = "slime_logging"
ROLE_SECTIONS = {
    "actor": ("actor_rollout_ref", "actor"),
    "rollout": ("actor_rollout_ref", "rollout"),
    "ref": ("actor_rollout_ref", "ref"),
    "critic": ("critic",),
    "reward": ("reward",),
}
"""Role -> where verl's configuration has its section."""

_runs: list[Run] = []


class Tracker:
    """What verl's `Tracking` holds in its table of loggers."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def log(self, data: Mapping[str, Any], step: int) -> None:
        """Log a row by verl's names."""
        self.run.log(data, step)

    def finish(self, exit_code: int = 0) -> None:
        """End the run; more than once does nothing."""
        if self.run in _runs:
            _runs.remove(self.run)
        self.run.finish(exit_code)


def split_roles(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """verl's configuration without the sections of roles, and those sections by role."""
    rest: dict[str, Any] = dict(config)
    roles: dict[str, Any] = {}
    for role, (first, *inner) in ROLE_SECTIONS.items():
        section = rest.get(first)
        if not isinstance(section, Mapping):
            continue
        if not inner:
            roles[role] = rest.pop(first)
        elif inner[0] in section:
            roles[role] = section[inner[0]]
            rest[first] = {key: value for key, value in section.items() if key != inner[0]}
    return rest, roles


def start(project: str, name: str, config: Mapping[str, Any] | None) -> Tracker:
    """Join the run of a trainer of verl's.

    Args:
        project: `trainer.project_name`.
        name: `trainer.experiment_name`.
        config: verl's whole configuration; `trainer.slime_logging` in it holds arguments of
            `slime_logging.join` (`trackers`, `directory`, `id`, `resume`) and its options.

    Raises:
        SettingsError, MissingBackendError, OSError: as `slime_logging.join`.
    """
    rest, roles = split_roles(config or {})
    trainer = rest.get("trainer") or {}
    given = dict(trainer.get(BACKEND) or {})
    directory = given.pop("directory", None)
    checkpoints = trainer.get("default_local_dir")
    if directory is None and checkpoints:
        directory = os.path.join(str(checkpoints), BACKEND)  # noqa: PTH118 - a text, as verl's
    run = join(
        rest,
        project=project,
        name=name,
        trackers=given.pop("trackers", None),
        directory=directory,
        id=given.pop("id", None),
        resume=bool(given.pop("resume", trainer.get("resume_mode", "auto") != "disable")),
        options=given,
    )
    for role, section in roles.items():
        run.log_config(section, role=role)
    _runs.append(run)
    return Tracker(run)


def install() -> None:
    """Add the backend to verl; more than once does nothing."""
    from verl.utils.tracking import Tracking, ValidationGenerationsLogger

    if BACKEND in Tracking.supported_backend:
        return
    Tracking.supported_backend.append(BACKEND)
    Tracking.__init__ = _with_run(Tracking.__init__)
    Tracking.finish = _with_finish(Tracking.finish)
    ValidationGenerationsLogger.log = _with_samples(ValidationGenerationsLogger.log)


def _with_run(init: Any) -> Any:
    @functools.wraps(init)
    def wrapped(
        self: Any,
        project_name: str,
        experiment_name: str,
        default_backend: str | list[str] = "console",
        config: Any = None,
    ) -> None:
        init(self, project_name, experiment_name, default_backend, config)
        names = [default_backend] if isinstance(default_backend, str) else list(default_backend)
        if BACKEND in names:
            self.logger[BACKEND] = start(project_name, experiment_name, config)

    return wrapped


def _with_finish(finish: Any) -> Any:
    @functools.wraps(finish)
    def wrapped(self: Any, exit_code: int = 0) -> None:
        tracker = getattr(self, "logger", {}).get(BACKEND)
        finish(self, exit_code)
        if tracker is not None:
            tracker.finish(exit_code)

    return wrapped


def _with_samples(log: Any) -> Any:
    @functools.wraps(log)
    def wrapped(self: Any, loggers: Any, samples: Sequence[Sequence[Any]], step: int) -> None:
        log(self, loggers, samples, step)
        if BACKEND in loggers:
            rows = [
                dict(zip(("input", "output", "score"), sample, strict=False)) for sample in samples
            ]
            for run in _runs[-1:]:
                run.log_samples(rows, step)

    return wrapped


install()
