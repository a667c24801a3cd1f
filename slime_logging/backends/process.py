"""A backend in a process of its own, for whoever is not such a process already: `verify`, `sync`.

A backend does as it pleases in its process: it sets variables, changes the directory, lets its
vendor print and ask. So nobody else runs one. The process that delivers to a tracker is its own;
any other one gets its backend here.

Policy: every call is bounded; at its deadline the process is killed with all that it started, and
the error says in which call it hung. The process gets only the environment that it needs, and it
ends with whoever started it.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, cast

from slime_logging.backends import new_backend
from slime_logging.backends.base import Backend, Readable, ShowsMedia, Writer
from slime_logging.backends.channel import Channel
from slime_logging.backends.table import BACKENDS, require_packages
from slime_logging.errors import TrackingError, TryAgain
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

OPEN_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 120.0
CLOSE_SLACK_S = 1.0


class BackendProcess:
    """A tracker: each `open` of it in a new process, and what reads a run in one besides."""

    def __init__(
        self,
        name: str,
        *,
        open_timeout_s: float = OPEN_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.name = name
        self.page = ""
        self._form = new_backend(name)
        self.is_durable = self._form.is_durable
        self._open_timeout_s = open_timeout_s
        self._read_timeout_s = read_timeout_s
        self._process: Channel | None = None
        self._num_streams = 0
        self._reading: tuple[Channel, tuple[RunFacts, dict[str, str]]] | None = None

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

    def points(self, row: Row) -> list[Point]:
        """Those of the backend."""
        return cast(Readable, self._form).points(row)

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """Every point that the tracker holds for the run."""
        return self._stream("read_points", run)

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """Those of the backend."""
        return cast(ShowsMedia, self._form).media(row, run)

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """Every table and image that the tracker holds for the run."""
        return self._stream("read_media", run)

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """That of the backend."""
        return cast(Readable, self._form).config_as_held(config)

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The configuration that the tracker holds for the run."""
        held: dict[str, Json] = self._reader(run).call("read_config", self._read_timeout_s, run)
        return held

    def _stream(self, verb: str, run: RunFacts) -> Iterator[Point]:
        reader = self._reader(run)
        self._num_streams += 1
        mine = self._num_streams
        items = reader.call(verb, self._read_timeout_s, run)
        while items:
            yield from items
            if mine != self._num_streams:
                raise RuntimeError("one reading at a time")
            items = reader.call("go_on", self._read_timeout_s)

    def _reader(self, run: RunFacts) -> Channel:
        """The process that reads a run: one for all that is read of it, as long as this object
        lives. A vendor may fix its place when it is loaded, so another run has another one.
        """
        reader, of = self._reading or (None, None)
        if reader is None or reader.is_gone or of != (run, dict(os.environ)):
            if reader is not None:
                reader.kill()
            reader = Channel(self.name)
            weakref.finalize(self, reader.kill)
            self._reading = reader, (run, dict(os.environ))
        return reader

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
