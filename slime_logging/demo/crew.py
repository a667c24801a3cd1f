"""The processes of a demo job: started with pickled arguments as Ray would, asked over pipes,
watched all the time.

Policy: no process outlives the driver, and none dies unnoticed. A child serves commands until its
pipe ends, which also happens when the driver is killed; the driver watches every child while it
waits for any of them, so a death is an error at once and never a job that hangs. Ctrl-C is the
driver's alone: children ignore it and end with their pipe.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from multiprocessing import connection
from types import TracebackType
from typing import Any, NoReturn, Protocol

PATIENCE_S = 10.0
"""How long children get to end by themselves before they are terminated."""


class JobFailed(Exception):
    """A process of the job died or failed; the message says which, and how."""


class Service(Protocol):
    """What a child process does: commands by name, and a way to end."""

    def commands(self) -> Mapping[str, Callable[..., Any]]:
        """The commands that the driver may ask for; arguments and results are pickled."""

    def close(self, exit_code: int) -> None:
        """End; called once, with 0 when all went well."""


class Child:
    """A started process, as the driver holds it."""

    def __init__(self, name: str, process: Any, pipe: Any) -> None:
        self.name = name
        self.process = process
        self.pipe = pipe

    @property
    def title(self) -> str:
        """Name and process id, for messages."""
        return f"{self.name} (pid {self.process.pid})"


class Crew:
    """All children of one driver; a context manager that leaves none of them behind."""

    def __init__(self, preload: Iterable[str] = ()) -> None:
        # One server imports torch and Megatron once (3 to 5 s) and forks each child at once. It has
        # no threads to lose.
        method = (
            "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        )
        self._context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(list(preload))
            # The server inherits the mask: a Ctrl-C while it imports is the driver's alone too.
            # Its resource tracker comes first, because starting that takes SIGINT out of the mask.
            multiprocessing.resource_tracker.ensure_running()
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                multiprocessing.forkserver.ensure_running()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._children: list[Child] = []
        self._asked: dict[Any, Child] = {}

    def start(self, name: str, open_service: Callable[..., Service], *arguments: Any) -> Child:
        """Start a process that calls `open_service(*arguments)` and serves its commands; does not
        wait for it.
        """
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, open_service, arguments), name=name, daemon=True
        )
        process.start()
        theirs.close()
        child = Child(name, process, ours)
        self._children.append(child)
        return child

    def ask(self, child: Child, command: str, *arguments: Any) -> None:
        """Ask a child to do a command; `next_answer` brings the result."""
        self._asked[child.pipe] = child
        try:
            child.pipe.send((command, *arguments))
        except OSError:
            self._raise_for(child)

    def next_answer(self) -> tuple[Child, Any]:
        """Wait for the first answer of any child that was asked.

        Raises:
            JobFailed: any child of the crew died or failed meanwhile, asked or not.
        """
        while True:
            sentinels = {child.process.sentinel: child for child in self._children}
            ready = connection.wait([*self._asked, *sentinels])
            for pipe in ready:
                if pipe in self._asked:
                    child = self._asked.pop(pipe)
                    return child, self._hear(child)
            self._raise_for(sentinels[ready[0]])

    def answers(self, questions: Mapping[Child, tuple[Any, ...]]) -> dict[Child, Any]:
        """Ask several children at the same time and wait for all of them; raises as `next_answer`
        does.
        """
        for child, question in questions.items():
            self.ask(child, *question)
        answers: dict[Child, Any] = {}
        while len(answers) < len(questions):
            child, answer = self.next_answer()
            answers[child] = answer
        return answers

    def answer(self, child: Child, command: str, *arguments: Any) -> Any:
        """Ask one child and wait for its answer; raises as `next_answer` does."""
        return self.answers({child: (command, *arguments)})[child]

    def end(self) -> None:
        """Let every child close its service, and wait for it.

        Raises:
            JobFailed: a child failed at its end.
        """
        for child in self._children:
            self.ask(child, "end")
        for child in self._children:
            self._hear(child)
        self._asked.clear()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in self._children:
            child.pipe.close()
        deadline = time.monotonic() + (PATIENCE_S if kind is None else 2.0)
        for child in self._children:
            child.process.join(max(0.0, deadline - time.monotonic()))
            if child.process.exitcode is None:
                child.process.kill()
                child.process.join()

    def _hear(self, child: Child) -> Any:
        try:
            verdict, answer = child.pipe.recv()
        except (EOFError, OSError):
            self._raise_for(child)
        if verdict == "failed":
            raise JobFailed(f"{child.title} failed, which ends the job.\n{answer}")
        return answer

    def _raise_for(self, child: Child) -> NoReturn:
        with contextlib.suppress(EOFError, OSError):
            verdict, answer = child.pipe.recv() if child.pipe.poll() else ("", "")
            if verdict == "failed":
                raise JobFailed(f"{child.title} failed, which ends the job.\n{answer}")
        child.process.join(PATIENCE_S)
        code = child.process.exitcode
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code is not None and code < 0
            else f"exited with code {code}"
        )
        raise JobFailed(f"{child.title} {how}, which ends the job.")


def _serve(pipe: Any, open_service: Callable[..., Service], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_code = 1
    try:
        service = open_service(*arguments)
        try:
            _obey(pipe, service.commands())
            exit_code = 0
        finally:
            service.close(exit_code)
        pipe.send(("done", None))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # The driver is gone, or has given the job up and said why.
    except Exception:
        with contextlib.suppress(OSError):
            pipe.send(("failed", traceback.format_exc()))
    sys.exit(exit_code)


def _obey(pipe: Any, commands: Mapping[str, Callable[..., Any]]) -> None:
    while True:
        command, *details = pipe.recv()
        if command == "end":
            return
        pipe.send(("done", commands[command](*details)))
