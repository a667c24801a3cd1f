"""What code that asks `wandb.run` needs of it, on top of the job's own run.

Policy: no W&B client is opened. Rows go into this process's journal and so to every tracker, W&B
among them; nothing raises into training. Only what such code uses is here: `log`, `config`,
`summary`, `define_metric`, and the run's names.
"""

from __future__ import annotations

import threading
import weakref
from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slime_logging.record.run import RunFile
from slime_logging.session.lifetime import session_of, swallow
from slime_logging.session.session import Session

STEP_KEY = "wandb/step"
"""The axis of rows that name none, as W&B's own `_step`: one more with each call."""

_lock = threading.Lock()


@dataclass(slots=True)
class _State:
    """Of a session: the next step, and what its summary holds."""

    step: int = 0
    summary: dict[str, Any] = field(default_factory=dict)


_states: weakref.WeakKeyDictionary[Session, _State] = weakref.WeakKeyDictionary()


def wandb_run(args: object = None) -> WandbRun | None:
    """This process's run, in the place of `wandb.run`.

    Args:
        args: the arguments that this process joined with; without them, its latest part.

    Returns:
        None in a process that is in no run, as `wandb.run` is there.
    """
    session = session_of(args)
    if session is None:
        return None
    with _lock:
        state = _states.setdefault(session, _State())
    return WandbRun(session, state)


class WandbRun:
    """Stands in for a `wandb.Run`; made by `wandb_run`.

    Attributes:
        config: the arguments of this process; what is set stands in the run's configuration.
        summary: what is set stands in the run's configuration, under `summary/`.
    """

    def __init__(self, session: Session, state: _State) -> None:
        self._session = session
        self._state = state
        self.config = _Values(session, "", dict(vars(session.args)))
        self.summary = _Values(session, "summary/", state.summary)

    def log(
        self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None
    ) -> None:
        """Log one row, drawn over its own step, such as `rollout/step`, else over `wandb/step`.

        Args:
            data: name -> value; not changed.
            step: the value of `wandb/step`; None is one more than the last.
            commit: False: the next row has the same step.
        """
        try:
            with _lock:
                count = self._state.step if step is None else step
                self._state.step = count + (commit is not False)
            own = next((key for key in data if str(key).endswith("/step")), None)
            row, step_key = (data, own) if own else ({**data, STEP_KEY: count}, STEP_KEY)
            self._session.log(row, step_key)
        except Exception as error:
            swallow("wandb_run().log", self._session, error)

    def define_metric(self, *names: Any, **options: Any) -> None:
        """Nothing has to be declared: each row names its own axis."""

    @property
    def id(self) -> str:
        """The run's, the same in every process and tracker."""
        return self._session.recorder.opening.run_id

    @property
    def name(self) -> str:
        """The run's name."""
        return self._file.name

    @property
    def project(self) -> str:
        """The project's name."""
        return self._file.project

    @property
    def group(self) -> str | None:
        """The group's name."""
        return self._file.group

    @property
    def dir(self) -> str:
        """Where this process keeps the run."""
        return str(self._session.directory.path)

    @property
    def url(self) -> str | None:
        """Where W&B shows the run; without it, where the first tracker does."""
        addresses = self._file.addresses
        return addresses.get("wandb") or next(iter(addresses.values()), None)

    @property
    def _file(self) -> RunFile:
        return self._session.directory.read()


class _Values(UserDict[str, Any]):
    """Values that stand in the run's configuration once they are set."""

    def __init__(self, session: Session, prefix: str, values: dict[str, Any]) -> None:
        self.data = values
        self._session = session
        self._prefix = prefix

    def update(self, values: object = (), **more: Any) -> None:  # type: ignore[override]
        """Set values, of a mapping or of an object's attributes. W&B's `allow_val_change` is taken,
        and is always so.
        """
        more.pop("allow_val_change", None)
        try:
            given = values if isinstance(values, Mapping | tuple) else vars(values)
            new = dict(given, **more)
            self.data.update(new)
            named = {f"{self._prefix}{key}": value for key, value in new.items()}
            self._session.log_config(named, None)
        except Exception as error:
            swallow("wandb_run().config", self._session, error)

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})
