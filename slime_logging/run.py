"""A process's part in a tracked run, as one object: `run = slime_logging.join(...)`.

Policy: joining is strict (a mistake raises there), everything after it is quiet: a tracker that is
down, slow or wrong costs the caller nothing. Each role has its own prefix and its own step axis, so
no process overwrites another's metrics or configuration. A run object may be used from several
threads and in forked children.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from slime_logging.backends.place import address_of
from slime_logging.hosts.rendezvous import RunAddress
from slime_logging.layout.axis import Axis
from slime_logging.layout.leaves import config_json
from slime_logging.layout.scope import RoleConfig
from slime_logging.session.lifetime import changing, end, exit_code_of, session_with, swallow
from slime_logging.session.session import Session

logger = logging.getLogger("slime_logging")


class Run:
    """This process's part in a run; made by `join`.

    Attributes:
        id: of the run, the same in every process and in every tracker that takes one.
        role: with which this process joined.
        directory: where this process keeps the run, absolute.
        is_primary: whether this process made the run.
        token: the run as one text for `SLIME_LOGGING_RUN`, to join it from anywhere.
    """

    def __init__(self, args: RoleConfig, session: Session, kept: Any) -> None:
        self._args = args
        self._session = session
        self._kept = kept
        self._axes: dict[str | None, Axis] = {}
        self._lock = threading.Lock()
        self.id: Final = session.recorder.opening.run_id
        self.role: Final = args.role
        self.directory: Final = str(session.directory.path)
        self.is_primary: Final = session.is_primary
        self.token: Final = RunAddress(run_id=self.id, directory=session.directory.path).to_token()

    def __repr__(self) -> str:
        return f"<slime_logging.Run {self.id} role={self.role} in {self.directory}>"

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
            code = exit_code_of(error)
        self.finish(code)
