"""Trackio's own storage in a process of its own, spoken to by JSON lines.

Why a process: Trackio reads TRACKIO_DIR once, when it is imported, into constants of many modules. A child with its own
environment gives each run its directory without touching the environment, or the Trackio, of the training process.

Why its storage and not `trackio.log`: the storage takes each row's own time, tells a row delivered twice by its id,
and has stored the rows when it returns. `trackio.log` stamps rows on arrival, and 0.5 s of them are lost with the
process (measured).

Policy: the child runs until its input ends or its parent is gone, prints nothing, asks nothing of the network and
answers every request with one line: `{"value": ...}` or `{"error": text, "again": bool}`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from slime_logging.errors import TryAgain, WillNeverWork

_START_TIMEOUT_S = 30.0
_CALL_TIMEOUT_S = 60.0
_ORPHAN_CHECK_S = 5.0
_REMOTE_VARIABLES = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID", "HF_TOKEN")


class Store:
    """The parent's end of a running child."""

    def __init__(self, directory: Path) -> None:
        """Start the child on Trackio's files in `directory`, which is created.

        Raises:
            TryAgain: it did not answer within 30 s, or the directory cannot be created.
        """
        environment = {key: value for key, value in os.environ.items() if key not in _REMOTE_VARIABLES}
        environment |= {"TRACKIO_DIR": str(directory), "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._child = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise TryAgain(f"trackio: cannot start its storage in {directory}: {error}") from error
        self.call("ping", timeout_s=_START_TIMEOUT_S)

    @property
    def is_alive(self) -> bool:
        """True until the child ended."""
        return self._child.poll() is None

    def call(self, function: str, timeout_s: float = _CALL_TIMEOUT_S, **arguments: Any) -> Any:
        """The answer to one request.

        Raises:
            TryAgain: the database is locked, the disk is full, the child died or is late (it is then ended).
            WillNeverWork: Trackio refuses the values.
        """
        watchdog = threading.Timer(timeout_s, self._child.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            assert self._child.stdin is not None and self._child.stdout is not None
            self._child.stdin.write(json.dumps({"function": function, "arguments": arguments}) + "\n")
            self._child.stdin.flush()
            line = self._child.stdout.readline()
        except (OSError, ValueError) as error:
            raise TryAgain(f"trackio: its storage process ended: {error}") from error
        finally:
            watchdog.cancel()
        if not line:
            raise TryAgain(f"trackio: its storage process ended with code {self._child.poll()} during {function}")
        answer = json.loads(line)
        if "error" in answer:
            raise (TryAgain if answer["again"] else WillNeverWork)(f"trackio: {answer['error']}")
        return answer["value"]

    def close(self, timeout_s: float) -> None:
        """End the child; it has stored everything that was answered."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # the child was gone and something was still buffered for it
                    continue
        try:
            self._child.wait(timeout=max(timeout_s, 0.1))
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def _answer(request: dict[str, Any]) -> Any:
    from trackio.sqlite_storage import SQLiteStorage

    arguments = request["arguments"]
    if request["function"] == "ping":
        return "pong"
    if request["function"] == "open":
        SQLiteStorage.validate_project_name(arguments["project"])
        return str(SQLiteStorage.init_db(arguments["project"]))
    if request["function"] == "path":
        return str(SQLiteStorage.get_project_db_path(arguments["project"]))
    for batch in arguments["batches"]:
        SQLiteStorage.bulk_log(**batch)
    return len(arguments["batches"])


def _serve(requests: TextIO, answers: TextIO) -> None:
    import sqlite3

    parent = os.getppid()
    while os.getppid() == parent:
        # A forked relative of the parent can hold the pipe open for ever: the parent's death shows in getppid only.
        if not select.select([requests], [], [], _ORPHAN_CHECK_S)[0]:
            continue
        line = requests.readline()
        if not line:
            return
        try:
            answer = {"value": _answer(json.loads(line))}
        except (OSError, sqlite3.OperationalError) as error:
            answer = {"error": f"{type(error).__name__}: {error}", "again": True}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "again": False}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    """Serve the parent over the standard streams; whatever Trackio prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    sys.stdout = sys.stderr
    try:
        _serve(sys.stdin, answers)
    except BrokenPipeError:  # the parent is gone: nobody is left to tell
        return


if __name__ == "__main__":
    main()
