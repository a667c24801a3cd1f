"""A backend in a process of its own, for whoever is not such a process already: `verify`, `sync`.

A backend does as it pleases in its process: it sets variables, changes the directory, lets its
vendor print and ask. So nobody else runs one. The process that delivers to a tracker is its own;
any other one gets its backend here.

Policy: every call is bounded; at its deadline the process is killed with all that it started, and
the error says in which call it hung. The process gets only the environment that it needs, and it
ends with whoever started it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, cast

from slime_logging.backends import new_backend
from slime_logging.backends.base import Backend, Readable, ShowsMedia, Writer
from slime_logging.backends.table import (
    BACKENDS,
    common_environment,
    require_packages,
    tracker_environment,
)
from slime_logging.errors import TrackingError, TryAgain
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

OPEN_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 120.0
CLOSE_SLACK_S = 1.0
CHUNK_ITEMS = 1_000

_ORPHAN_CHECK_S = 0.25
_WHERE_WAIT_S = 0.2
_NUM_CALLS = 12
_ERROR_TAIL_BYTES = 4_000
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
_START = f"""import sys
paths = sys.argv[3:]
sys.path += [path for path in paths if path not in sys.path]
from {__name__} import main
main(int(sys.argv[1]), sys.argv[2])
"""
"""The caller's places of modules come last: a script's folder with a `secrets.py` in it must not
hide Python's own.
"""

logger = logging.getLogger("slime_logging")


class BackendProcess:
    """A tracker, each `open` and each reading of it in a new process; it shows media too."""

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
        self._process: _Process | None = None

    def open(self, run: RunFacts, writer: Writer) -> None:
        """Open the tracker in a new process.

        Raises:
            MissingBackendError: its package is not there, or too old.
        """
        require_packages(self.name)
        self._release()
        self._process = _Process(self.name)
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
        process = _Process(self.name)
        try:
            held: dict[str, Json] = process.call("read_config", self._read_timeout_s, run)
        finally:
            process.kill()
        return held

    def _stream(self, verb: str, run: RunFacts) -> Iterator[Point]:
        process = _Process(self.name)
        try:
            while items := process.call(verb, self._read_timeout_s, run):
                yield from items
        finally:
            process.kill()

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


class _Process:
    """The caller's end: one request at a time, each with its reply."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.page = ""
        self._connection, theirs = Pipe()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        try:
            self._child = _start(name, theirs.fileno(), self._errors)
        except OSError as error:
            self._connection.close()
            self._errors.close()
            raise TryAgain(f"{name}: cannot start its process: {error}") from error
        finally:
            theirs.close()

    @property
    def is_gone(self) -> bool:
        """Whether it was ended, or found dead."""
        return self._connection.closed

    def call(self, verb: str, timeout_s: float, *arguments: Any) -> Any:
        """The answer to a request; its notices are logged here.

        Raises:
            TryAgain, WillNeverWork: as the backend says; TryAgain too where the process died, or
            did not answer within `timeout_s` and was killed.
        """
        # A request to a hanging process would block for ever once the socket's buffer is full.
        watchdog = threading.Timer(timeout_s, self._child.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            self._connection.send((verb, arguments))
            watchdog.cancel()
            if not self._connection.poll(timeout_s):
                where = self._where()
                self.kill()
                raise TryAgain(f"{self._name} did not answer within {timeout_s:.3g} s{where}")
            value, error, notices, self.page = self._connection.recv()
        except (EOFError, OSError, ValueError) as error:
            raise self._gone(error) from error
        finally:
            watchdog.cancel()
        for level, text in notices:
            logger.log(level, "%s", text)
        if error is not None:
            raise error
        return value

    def kill(self) -> None:
        """End the process with all that it started; free everything. May be called twice."""
        if self._child.poll() is None:
            kill_tree(self._child.pid)
            self._child.wait()
        self._connection.close()
        self._errors.close()

    def _gone(self, error: BaseException) -> TryAgain:
        tail = self._errors_tail().splitlines() or [str(error) or type(error).__name__]
        self.kill()
        return TryAgain(f"{self._name}: its process ended: {tail[-1]}")

    def _where(self) -> str:
        """In which calls the process hangs, the innermost first; empty where it cannot say."""
        with contextlib.suppress(OSError):
            self._child.send_signal(signal.SIGUSR1)
            time.sleep(_WHERE_WAIT_S)
        _, _, main_thread = self._errors_tail().rpartition("(most recent call first):")
        calls = [
            f"{name} ({Path(file).name}:{line})" for file, line, name in _FRAME.findall(main_thread)
        ]
        return f", in {' < '.join(calls[:_NUM_CALLS])}" if calls else ""

    def _errors_tail(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _ERROR_TAIL_BYTES))
            return self._errors.read().decode(errors="replace").strip()
        return ""


def kill_tree(pid: int) -> None:
    """End a process and all that it started."""
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                each.kill()


def _start(name: str, socket: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    places = [path or str(Path.cwd()) for path in sys.path]
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START, str(socket), name, *places],
        env={**common_environment(), **tracker_environment(name)},
        pass_fds=(socket,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        # A Ctrl-C in the terminal is for whoever started it.
        start_new_session=True,
    )


# -- in the process
# ----------------------------------------------------------------------------------------------


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
    stream: Iterator[Point] | None = None
    while True:
        verb, arguments = connection.recv()
        value, error = None, None
        try:
            if verb in ("read_points", "read_media"):
                stream = stream or getattr(backend, verb)(*arguments)
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
    import psutil

    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    os._exit(0)
