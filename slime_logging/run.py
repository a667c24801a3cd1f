"""A process's part in a tracked run, as one object: `run = slime_logging.join(...)`.

Policy: joining is strict (a mistake raises there), everything after it is quiet: a tracker that is
down, slow or wrong costs the caller nothing. Each role has its own prefix and its own step axis, so
no process overwrites another's metrics or configuration. A run object may be used from several
threads and in forked children.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any

from slime_logging.backends.address import address_of
from slime_logging.errors import RunConflictError, SettingsError
from slime_logging.hosts.rendezvous import RunAddress
from slime_logging.layout.axis import Axis, check_role
from slime_logging.layout.leaves import config_json
from slime_logging.layout.scope import RoleConfig
from slime_logging.redaction.redact import safe_error
from slime_logging.session.lifetime import changing, end, enter, session_with, swallow
from slime_logging.session.meeting import meet
from slime_logging.session.session import Session
from slime_logging.settings.choices import Trackers, chosen_arguments, chosen_environment
from slime_logging.settings.settings import Settings

logger = logging.getLogger("slime_logging")


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

    Processes are in the same run if they give the same `id`, or the same `project`, `group` and
    `name` while that run lives, on one host, on a shared tracking directory, or in one Ray cluster.
    `SLIME_LOGGING_RUN=ID@DIRECTORY` (`run.token`) names a run without a word in the code. With none
    of these, the processes of one Ray job, torchrun or SLURM step are one run, and any other
    process makes a run of its own.

    Args:
        config: a mapping, dataclass, Namespace, OmegaConf, pydantic or attrs object, nested or not;
            read, never changed. Its leaves are logged as `<role>/<section>.<key>`, without secrets.
        role: what this process does, such as "explorer"; the prefix of its configuration and its
            metrics. None for a process without a role: no prefix.
        project: as in W&B; default: WANDB_PROJECT.
        name: of the run; default: WANDB_NAME.
        group: of the run; default: WANDB_RUN_GROUP.
        id: the run's id, when it must be the same after a restart: a run with this id that has
            ended is continued.
        trackers: names (`["wandb", "mlflow"]`), or names with options
            (`{"wandb": {"mode": "offline"}}`); default: SLIME_LOGGING_TRACKERS, and without it the
            run is kept on disk alone.
        directory: where runs are kept; default: SLIME_LOGGING_DIR, else `./tracking`.
        resume: continue the last run of this name, where it has ended.
        make: True: this process makes the run; False: it joins the run, and waits up to 30 s for
            it; None: whatever comes first.
        options: further options by the names of the flags: `{"tags": ["a"], "hide": ["acme_*"]}`.

    Returns:
        The run. Use it as a context manager, or call `finish`.

    Raises:
        SettingsError: an argument or variable cannot work.
        MissingBackendError: a tracker's package is not installed.
        RunConflictError: `make=True`, and the run lives already.
        RunNotFoundError: `make=False`, and there is no such run.
        OSError: the run's directory cannot be written.
    """
    check_role(role)
    chosen = chosen_arguments(trackers, options or {})
    args = RoleConfig(**vars(chosen), role=role, config=config_json(config))
    given = {
        "wandb_project": project,
        "tracking_name": name,
        "wandb_group": group,
        "wandb_run_id": id,
        "tracking_dir": None if directory is None else os.fspath(directory),
    }
    vars(args).update({key: value for key, value in given.items() if value is not None})
    for attribute, variable in (("rank", "RANK"), ("world_size", "WORLD_SIZE")):
        if os.environ.get(variable, "").isdecimal():
            setattr(args, attribute, int(os.environ[variable]))
    try:
        settings = Settings.of(args, chosen_environment(trackers))
        session, kept = meet(args, settings, make=make, is_resuming=resume)
    except (SettingsError, RunConflictError) as error:
        raise safe_error(error, args) from None
    with changing():
        enter(session)
    return Run(args, session, kept)


class Run:
    """This process's part in a run; made by `join`."""

    def __init__(self, args: RoleConfig, session: Session, kept: Any) -> None:
        self._args = args
        self._session = session
        self._kept = kept
        self._axes: dict[str | None, Axis] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<slime_logging.Run {self.id} role={self.role} in {self.directory}>"

    @property
    def id(self) -> str:
        """The run's id, the same in every process and in every tracker that takes one."""
        return self._session.recorder.opening.run_id

    @property
    def role(self) -> str | None:
        """The role that this process joined with."""
        return self._args.role

    @property
    def directory(self) -> str:
        """Where this process keeps the run, absolute."""
        return str(self._session.directory.path)

    @property
    def urls(self) -> dict[str, str]:
        """Where each tracker shows the run, by its name: a page's address, or a path."""
        run = self._session.directory.read()
        facts = run.facts(self._session.directory.path, self._session.settings.options)
        found = {tracker: address_of(tracker, facts) for tracker in run.trackers}
        return {tracker: address.place for tracker, address in found.items() if address}

    @property
    def url(self) -> str | None:
        """The first of `urls`; None where no tracker shows the run."""
        return next(iter(self.urls.values()), None)

    @property
    def is_primary(self) -> bool:
        """Whether this process made the run."""
        return self._session.is_primary

    @property
    def token(self) -> str:
        """The run as one text for `SLIME_LOGGING_RUN`, to join it from anywhere."""
        return RunAddress(run_id=self.id, directory=self._session.directory.path).to_token()

    def log(
        self, metrics: Mapping[str, Any], step: float | None = None, *, axis: str | None = None
    ) -> None:
        """Log one row of metrics: `explorer/<name>` over `explorer/step` in the role "explorer".

        When this returns, the row is with the operating system and survives the death of the
        process; every tracker gets it later. A name that has the prefix already keeps it.

        Args:
            metrics: name -> value; not changed.
            step: any number, of this role and axis alone; None is one more than the last.
            axis: another step counter of the role: "eval" logs `explorer/eval/<name>` over
                `explorer/eval/step`.
        """
        session = session_with(self._args)
        if session is None:
            return
        try:
            with self._lock:
                row, step_key = self._axis(axis).row(metrics, step)
            session.log(row, step_key)
        except Exception as error:
            swallow("log", session, error)

    def log_samples(
        self,
        samples: Sequence[Mapping[str, Any]],
        step: float | None = None,
        *,
        axis: str | None = None,
    ) -> None:
        """Log a table of samples at a step: what was asked, what the model wrote, what that earned.

        Args:
            samples: one mapping a sample, such as `{"prompt": ..., "completion": ..., "reward": 1}`
                with whatever other columns; not changed.
            step: as in `log`.
            axis: as in `log`.
        """
        session = session_with(self._args)
        if session is None:
            return
        try:
            with self._lock:
                row, step_key = self._axis(axis).row({}, step)
            session.log_samples([{**sample, **row} for sample in samples], step_key)
        except Exception as error:
            swallow("log_samples", session, error)

    def log_config(self, values: object, role: str | None = None) -> None:
        """Add or change configuration values that became known only now, under the role's prefix.

        Args:
            values: as `config` of `join`.
            role: whose they are; None means this process's own.
        """
        session = session_with(self._args)
        if session is None:
            return
        try:
            session.log_config(config_json(values), role or self.role)
        except Exception as error:
            swallow("log_config", session, error)

    def finish(self, exit_code: int = 0) -> None:
        """End this process's part of the run; waits a bounded time for the trackers. May be called
        more than once; never raises.

        Args:
            exit_code: 0 for a process that ended well.
        """
        with changing():
            session = session_with(self._args)
            if session is not None:
                end(session, exit_code)
        self._kept = None

    def _axis(self, axis: str | None) -> Axis:
        if axis not in self._axes:
            self._axes[axis] = Axis(self.role, axis)
        return self._axes[axis]

    def __enter__(self) -> Run:
        """The run itself; it is finished at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish with the exit code that the block deserves."""
        code = 0 if kind is None else 1
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        self.finish(code)
