"""The caller's end of a process that serves one backend: bounded requests, and what became of it
where one is not answered.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing import Pipe
from pathlib import Path
from typing import IO, Any

from slime_logging.backends.table import common_environment, tracker_environment
from slime_logging.errors import TryAgain

_WHERE_WAIT_S = 0.2
_NUM_CALLS = 12
_ERROR_TAIL_BYTES = 4_000
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
_START = """import sys
paths = sys.argv[3:]
sys.path += [path for path in paths if path not in sys.path]
from slime_logging.backends.served import main
main(int(sys.argv[1]), sys.argv[2])
"""
"""The caller's places of modules come last: a script's folder with a `secrets.py` in it must not
hide Python's own.
"""

logger = logging.getLogger("slime_logging")


class Channel:
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
            self._end()
        self._connection.close()
        self._errors.close()

    def _end(self) -> None:
        import psutil

        from slime_logging.backends.descendants import kill_tree

        with contextlib.suppress(psutil.Error):
            kill_tree(psutil.Process(self._child.pid))
        self._child.wait()

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
