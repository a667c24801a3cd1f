"""What runs in the process of a `BackendProcess`: one backend, asked over a socket.

Policy: it ends when its caller closes the socket or dies, and takes along whatever the vendor
started.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from slime_logging.backends import new_backend
from slime_logging.backends.base import Backend
from slime_logging.backends.descendants import kill_children
from slime_logging.errors import TrackingError
from slime_logging.values.row import Point

CHUNK_ITEMS = 1_000
STREAMS = ("read_points", "read_media")
"""Calls whose answer comes in chunks, the further ones by `go_on`."""

_ORPHAN_CHECK_S = 0.25

logger = logging.getLogger("slime_logging")


class _NoticeList(logging.Handler):
    """What the backend says, for the caller to say."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.notices.append((record.levelno, record.getMessage()))

    def take(self) -> list[tuple[int, str]]:
        taken, self.notices = self.notices, []
        return taken


def main(socket: int, name: str) -> None:
    """Serve the caller until it closes the socket, or dies."""
    faulthandler.register(signal.SIGUSR1)
    connection = Connection(socket)
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        _serve(connection, new_backend(name))
    _die()


def _serve(connection: Connection, backend: Backend) -> None:
    notices = _NoticeList()
    logger.addHandler(notices)
    stream: Iterator[Point] = iter(())
    while True:
        verb, arguments = connection.recv()
        value, error = None, None
        try:
            if verb in STREAMS:
                stream = getattr(backend, verb)(*arguments)
            if verb in (*STREAMS, "go_on"):
                value = list(itertools.islice(stream, CHUNK_ITEMS))
            else:
                value = getattr(backend, verb)(*arguments)
        except TrackingError as trouble:
            error = type(trouble)(str(trouble))
        connection.send((value, error, notices.take(), getattr(backend, "page", "")))


def _die_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_ORPHAN_CHECK_S)
    _die()


def _die() -> None:
    """Leave without the vendor's exit handlers, which could wait for its servers; what it started
    must not go on writing behind the back of the one that continues.
    """
    kill_children()
    os._exit(0)
