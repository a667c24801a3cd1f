"""A backend in a process of its own, for whoever is not such a process already: `verify`, `sync`.

A backend does as it pleases in its process: it sets variables, changes the directory, lets its
vendor print and ask. So nobody else runs one. The process that delivers to a tracker is its own;
any other one gets its backend here.

Policy: every call is bounded; at its deadline the process is killed with all that it started, and
the error says in which call it hung. The process gets only the environment that it needs, and it
ends with whoever started it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from slime_logging.backends import new_backend
from slime_logging.backends.base import Backend, Writer
from slime_logging.backends.channel import Channel
from slime_logging.backends.reading import READ_TIMEOUT_S, ReaderProcess
from slime_logging.backends.table import BACKENDS, require_packages
from slime_logging.errors import TrackingError, TryAgain
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts

OPEN_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 60.0
CLOSE_SLACK_S = 1.0
_DROPPED_ROWS = 1_000


class BackendProcess(ReaderProcess):
    """A tracker: each `open` of it in a new process, and what reads a run in one besides."""

    def __init__(
        self,
        name: str,
        *,
        open_timeout_s: float = OPEN_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        super().__init__(name, read_timeout_s=read_timeout_s)
        self.page = ""
        self.is_durable = self._form.is_durable
        self.merges_equal_points = getattr(self._form, "merges_equal_points", False)
        self._open_timeout_s = open_timeout_s
        self._process: Channel | None = None

    def open(self, run: RunFacts, writer: Writer) -> None:
        """Open the tracker in a new process.

        Raises:
            MissingBackendError: its package is not there, or too old.
        """
        require_packages(self.name)
        self._release()
        self._process = Channel(self.name)
        try:
            self._call("open", self._open_timeout_s, run, writer)
        except TrackingError:
            self._release()
            raise
        self.page = str(self._process.page)

    def settle_s(self, run: RunFacts) -> float:
        """That of the backend."""
        return self._form.settle_s(run)

    def set_config(self, config: RunConfig) -> None:
        """Make the tracker show this configuration."""
        self._call("set_config", CALL_TIMEOUT_S, config)

    def write(self, rows: Sequence[Row]) -> None:
        """Hand over rows, in order."""
        self._call("write", CALL_TIMEOUT_S, rows)

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Flush, and end the process, whatever comes of it."""
        if self._reading is not None:
            self._reading[0].kill()
        if self._process is None:
            return
        try:
            self._call("close", timeout_s + CLOSE_SLACK_S, exit_code, timeout_s)
        finally:
            self._release()

    @property
    def drop(self) -> Callable[[Iterable[Row]], None]:
        """That of the backend; there is none where it has none."""
        if not hasattr(self._form, "drop"):
            raise AttributeError(f"{self.name} cannot drop rows")
        return self._drop

    def _drop(self, rows: Iterable[Row]) -> None:
        rest = iter(rows)
        while chunk := list(islice(rest, _DROPPED_ROWS)):
            self._call("drop", CALL_TIMEOUT_S, chunk)

    def _call(self, verb: str, timeout_s: float, *arguments: Any) -> Any:
        if self._process is None:
            raise TryAgain(f"{self.name} is not open")
        try:
            return self._process.call(verb, timeout_s, *arguments)
        finally:
            if self._process.is_gone:
                self._process = None

    def _release(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._process = None


def backend_of_anyone(name: str) -> Backend:
    """A backend for a process that does other things too: `memory` as it is, any other one in a
    process of its own.
    """
    return BackendProcess(name) if BACKENDS[name].package else new_backend(name)
