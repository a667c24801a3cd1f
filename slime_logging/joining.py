"""`slime_logging.join`: a process's way into a run, from whatever configuration it has."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from os import PathLike
from typing import Any

from slime_logging.errors import RunConflictError, SettingsError
from slime_logging.layout.axis import check_role
from slime_logging.layout.leaves import config_json
from slime_logging.layout.scope import RoleConfig
from slime_logging.redaction.redact import safe_error
from slime_logging.run import Run
from slime_logging.session.lifetime import changing, enter
from slime_logging.session.meeting import meet
from slime_logging.settings.choices import Trackers, chosen_arguments, chosen_environment
from slime_logging.settings.settings import Settings


def join(
    config: object = None,
    *,
    role: str | None = None,
    project: str | None = None,
    name: str | None = None,
    group: str | None = None,
    id: str | None = None,
    trackers: Trackers | None = None,
    directory: str | PathLike[str] | None = None,
    resume: bool = False,
    make: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Run:
    """Make the job's run or join it, whoever comes first, with the configuration of this process.

    In the same run are those that give the same `id`, or the same `project`, `group` and `name`
    while that run lives, on one host, a shared directory, or one Ray cluster; `SLIME_LOGGING_RUN`
    (`run.token`) names one without a word in the code. With none of these it is the processes of
    one Ray job, torchrun or SLURM step; any other process makes a run of its own. Joining a living
    run of the same name is said on stderr.

    Args:
        config: a mapping, dataclass, Namespace, OmegaConf, pydantic or attrs object, nested or not;
            not changed. Its leaves are logged as `<role>/<section>.<key>`, without secrets.
        role: what this process does, the prefix of its configuration and metrics; None: no prefix.
        project: default: WANDB_PROJECT. name: default: WANDB_NAME. group: WANDB_RUN_GROUP.
        id: the run's id; a run with this id that has ended is continued.
        trackers: names, or names with options (`{"wandb": {"mode": "offline"}}`); default:
            SLIME_LOGGING_TRACKERS, and without it the run is kept on disk alone.
        directory: where runs are kept; default: SLIME_LOGGING_DIR, else `./tracking`.
        resume: continue the last run of this name, where it has ended.
        make: True: make the run; False: join it, and wait up to 30 s for it; None: what comes.
        options: further options by the names of the flags: `{"tags": ["a"], "hide": ["acme_*"]}`.

    Raises:
        SettingsError: an argument or variable cannot work.
        MissingBackendError: a tracker's package is not installed.
        RunConflictError: `make=True`, and the run lives already.
        RunNotFoundError: `make=False`, and there is no such run.
        OSError: the run's directory cannot be written.
    """
    named = {
        "wandb_project": project,
        "tracking_name": name,
        "wandb_group": group,
        "wandb_run_id": id,
        "tracking_dir": None if directory is None else os.fspath(directory),
    }
    args = _arguments(config, role, named, chosen_arguments(trackers, options or {}))
    try:
        settings = Settings.of(args, chosen_environment(trackers))
        session, kept = meet(args, settings, make=make, is_resuming=resume)
    except (SettingsError, RunConflictError) as error:
        raise safe_error(error, args) from None
    with changing():
        enter(session)
    return Run(args, session, kept)


def _arguments(
    config: object, role: str | None, named: Mapping[str, str | None], chosen: Namespace
) -> RoleConfig:
    """What was said, by the names of the flags; rank and world size as torchrun tells them."""
    check_role(role)
    args = RoleConfig(**vars(chosen), role=role, config=config_json(config))
    vars(args).update({key: value for key, value in named.items() if value is not None})
    for attribute, variable in (("rank", "RANK"), ("world_size", "WORLD_SIZE")):
        if os.environ.get(variable, "").isdecimal():
            setattr(args, attribute, int(os.environ[variable]))
    return args
