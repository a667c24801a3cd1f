"""What a tracker should hold and does hold of a run, read in a process of its own."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import cast

from slime_logging.backends import new_backend
from slime_logging.backends.base import Readable, ShowsMedia
from slime_logging.backends.channel import Channel
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

READ_TIMEOUT_S = 120.0


class ReaderProcess:
    """Reads one tracker, in one process for a run as long as this object lives."""

    def __init__(self, name: str, *, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self.name = name
        self._form = new_backend(name)
        self._read_timeout_s = read_timeout_s
        self._num_streams = 0
        self._reading: tuple[Channel, tuple[RunFacts, dict[str, str]]] | None = None

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
