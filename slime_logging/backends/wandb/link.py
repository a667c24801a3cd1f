"""The link to the process that holds W&B's client.

Policy: the client lives in a process of its own, so that nothing of it touches the process that
trains: no environment variable, no exit hook that waits for an upload, no thread, no fork trouble,
no other run of the user's. Whatever it does (hang, die, hold a run id) ends with that process, and
every request is bounded: at its deadline the process is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing import Pipe
from pathlib import Path
from typing import IO, Any

import psutil

from slime_logging.backends.wandb.options import client_environment
from slime_logging.backends.wandb.worker import WHERE_SIGNAL
from slime_logging.errors import TryAgain, WillNeverWork

ERROR_TAIL_BYTES = 4_000

WHERE_WAIT_S = 0.2
NUM_CALLS = 12
FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')


class Link:
    """A worker process with requests and their replies, in order."""

    def __init__(self, *, is_private: bool = True) -> None:
        """Start it; with `is_private` whatever files it makes are its user's alone, 0600 in
        directories of 0700.
        """
        self._connection, theirs = Pipe()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        self._num_unanswered = 0
        try:
            self._process = _start(theirs.fileno(), self._errors, is_private=is_private)
        except OSError as error:
            self._connection.close()
            self._errors.close()
            raise TryAgain(f"cannot start the process of W&B's client: {error}") from error
        finally:
            theirs.close()

    def ask(self, verb: str, *arguments: Any, timeout_s: float) -> Any:
        """Send a request and return its value, after those of all requests sent before."""
        self.send(verb, *arguments, timeout_s=timeout_s)
        return self.settle(timeout_s=timeout_s)

    def send(self, verb: str, *arguments: Any, timeout_s: float) -> None:
        """Send a request whose reply is taken later, by `settle`."""
        self._num_unanswered += 1
        # A send to a hanging process would block for ever once the socket's buffer is full.
        watchdog = threading.Timer(timeout_s, self._process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            self._connection.send((verb, arguments))
        except (OSError, ValueError) as error:
            raise self._gone(error) from error
        finally:
            watchdog.cancel()

    def settle(self, *, timeout_s: float, leave: int = 0) -> Any:
        """Take replies until only `leave` are outstanding; returns the last one's value, raises
        what one says.
        """
        value = None
        deadline_s = time.monotonic() + timeout_s
        while self._num_unanswered > leave:
            try:
                if not self._connection.poll(max(0.0, deadline_s - time.monotonic())):
                    where = self._where()
                    self.kill()
                    raise TryAgain(
                        f"W&B's client did not answer within {timeout_s:.3g} s{where}; it was"
                        " stopped"
                    )
                status, value = self._connection.recv()
            except (EOFError, OSError) as error:
                raise self._gone(error) from error
            self._num_unanswered -= 1
            if status != "ok":
                raise (WillNeverWork if status == "never" else TryAgain)(value)
        return value

    def kill(self) -> None:
        """End the process, W&B's service process included; free everything. May be called twice."""
        if self._process.poll() is None:
            children: list[psutil.Process] = []
            with contextlib.suppress(psutil.Error):
                children = psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()
            self._process.wait()
        self._num_unanswered = 0
        self._connection.close()
        self._errors.close()

    def _gone(self, error: BaseException) -> TryAgain:
        tail = self._errors_tail()
        self.kill()
        last_line = tail.splitlines()[-1] if tail else str(error) or type(error).__name__
        return TryAgain(f"the process of W&B's client has ended: {last_line}")

    def _where(self) -> str:
        """In which calls of the process's main thread it hangs, the innermost first; empty where it
        cannot even say.
        """
        with contextlib.suppress(OSError):
            self._process.send_signal(WHERE_SIGNAL)
            time.sleep(WHERE_WAIT_S)
        _, _, main_thread = self._errors_tail().rpartition("(most recent call first):")
        calls = [
            f"{name} ({Path(file).name}:{line})" for file, line, name in FRAME.findall(main_thread)
        ]
        return f", in {' < '.join(calls[:NUM_CALLS])}" if calls else ""

    def _errors_tail(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - ERROR_TAIL_BYTES))
            return self._errors.read().decode(errors="replace").strip()
        return ""


def _start(socket: int, errors: IO[bytes], *, is_private: bool) -> subprocess.Popen[bytes]:
    # With the import path in the environment, `-m` finds this package as this process does.
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "slime_logging.backends.wandb.worker",
            str(socket),
            str(os.getpid()),
        ],
        env=client_environment(),
        pass_fds=(socket,),
        # Not the job's directory: the client would read `config-defaults.yaml` and `wandb/settings`
        # there.
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        # A Ctrl-C in the terminal is for the job: this process is told by `close`, or dies with its
        # parent.
        start_new_session=True,
        umask=0o077 if is_private else -1,
    )
