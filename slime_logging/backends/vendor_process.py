"""A vendor's client in a process of its own, spoken to by JSON lines.

Why a process: some vendors read their settings from the environment once, at import or at each
request, and print, ask, phone home or wait at exit as they please. In a child with an environment
of its own none of it reaches the training process, a call that hangs is ended, and the vendor's
import costs training nothing.

The child runs `main` with a module that has a table `FUNCTIONS` of what can be called,
`is_passing(error)`, and where that is useful `abandon()`, for when the parent is gone. A function
that returns an iterator is answered in chunks.

Policy: the child runs until its input ends or its parent is gone; whatever the vendor prints goes
nowhere.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from slime_logging.errors import TryAgain, WillNeverWork

_START = f"""
import json, sys
sys.path += [path for path in json.loads(sys.argv[1]) if path not in sys.path]
from {__name__} import main
main(sys.argv[2])
"""
"""The parent's places of modules come last: a script's folder with a `secrets.py` in it must not
hide Python's own.
"""

_CALL_TIMEOUT_S = 60.0
_ORPHAN_CHECK_S = 0.5
_CHUNK_ITEMS = 1000


class VendorProcess:
    """The parent's end of a running child."""

    def __init__(
        self,
        name: str,
        module: str,
        environment: Mapping[str, str | None],
        *,
        is_private: bool = False,
    ) -> None:
        """Start the child; its environment is ours with these variables set, or removed where the
        value is None.

        With `is_private` whatever files it makes are its user's alone, 0600 in directories of 0700.
        """
        self._name = name
        settings = dict(os.environ) | {
            key: value for key, value in environment.items() if value is not None
        }
        places = json.dumps([path or str(Path.cwd()) for path in sys.path])
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, places, module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env={
                    key: value
                    for key, value in settings.items()
                    if environment.get(key, "") is not None
                },
                start_new_session=True,
                umask=0o077 if is_private else -1,
            )
        except OSError as error:
            raise TryAgain(f"{name}: cannot start its process: {error}") from error

    @property
    def is_alive(self) -> bool:
        """True until the child ended."""
        return self._child.poll() is None

    def call(self, function: str, timeout_s: float = _CALL_TIMEOUT_S, **arguments: Any) -> Any:
        """The answer to one request.

        Raises:
            TryAgain: passing trouble at the vendor's, or the child died or did not answer in time
            (it is then ended). WillNeverWork: the vendor refuses it.
        """
        watchdog = threading.Timer(timeout_s, self._child.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            self._ask(function, arguments)
            return self._answer(function)["value"]
        finally:
            watchdog.cancel()

    def stream(
        self, function: str, timeout_s: float = _CALL_TIMEOUT_S, **arguments: Any
    ) -> Iterator[Any]:
        """The items of an answer that comes in chunks; `timeout_s` and the errors of `call` are for
        each chunk.
        """
        items: list[Any] | None = self.call(function, timeout_s, **arguments)
        while items:
            yield from items
            items = self.call("", timeout_s)

    def close(self, timeout_s: float) -> None:
        """End the child, after `timeout_s` by force."""
        for pipe in (self._child.stdin, self._child.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # the child was gone and something was still buffered for it
                continue
        try:
            self._child.wait(timeout=max(timeout_s, 0.1))
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _ask(self, function: str, arguments: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(
                json.dumps({"function": function, "arguments": arguments}) + "\n"
            )
            self._child.stdin.flush()
        except (OSError, ValueError) as error:
            raise TryAgain(f"{self._name}: its process ended: {error}") from error

    def _answer(self, function: str) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            self._child.kill()
            self._child.wait()
            raise TryAgain(
                f"{self._name}: its process ended during {function!r}, or did not answer in time"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise (TryAgain if answer["is_passing"] else WillNeverWork)(
                f"{self._name}: {answer['error']}"
            )
        return answer


class _Served:
    """The child's end: the functions of a module, and the chunks of the last answer that are still
    to be fetched.
    """

    def __init__(self, module: str) -> None:
        self._functions: Any = importlib.import_module(module)
        self._rest: Iterator[Any] = iter(())

    def abandon(self) -> None:
        getattr(self._functions, "abandon", lambda: None)()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if request["function"]:
                value = self._functions.FUNCTIONS[request["function"]](**request["arguments"])
                if not isinstance(value, Iterator):
                    return {"value": value}
                self._rest = value
            return {"value": list(itertools.islice(self._rest, _CHUNK_ITEMS))}
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            return {"error": text, "is_passing": self._functions.is_passing(error)}


def _serve(served: _Served, requests: TextIO, answers: TextIO) -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        # A forked relative of the parent can hold the pipe open for ever: the parent's death shows
        # in getppid only.
        if not select.select([requests], [], [], _ORPHAN_CHECK_S)[0]:
            continue
        line = requests.readline()
        if not line:
            return
        answers.write(json.dumps(served.answer(json.loads(line))) + "\n")
        answers.flush()


def main(module: str) -> None:
    """Serve the parent over what were the standard streams."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    served = _Served(module)
    with contextlib.suppress(BrokenPipeError):  # the parent is gone: nobody is left to tell
        _serve(served, requests, answers)
    served.abandon()
    # The vendor's exit handlers could wait for its servers; what had to be confirmed was.
    os._exit(0)
