"""A command line tried in a process of its own: what it gives, or why it is refused.

Policy: a parse and its validation may touch anything (environment, loggers, `sys.argv`, warnings,
random state, caches of imported modules, output, files), and the training process must see nothing
of it. So each runs in a forked child, which has the job's modules as they are, sends its result
back, and ends. A new process would be cleaner still, but would import slime, Megatron-LM and torch
again (tens of seconds) and would not see what the job changed in them; guards around a parse in
this process could not give back what a module keeps for itself. What a fork must not do is kept
from it: `isolation.py`. A child that does not answer in time is killed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import io
import os
import pickle
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from slime_logging.roles.isolation import KeptStream, gpu_answers, isolate
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.megatron.options import OptionTable

Reparse: TypeAlias = Callable[[list[str]], Any]
"""The words of a command line -> the validated namespace."""

TIMEOUT_S = 120.0
"""A parse takes some tenths of a second, but may read a configuration over a network."""

MAX_SAID = 4000
"""Characters of a validator's words that are kept."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a command line gives. `packed` are the values as sent, None where one cannot be sent;
    `options` are those of all parsers that ran.
    """

    packed: Mapping[str, bytes | None]
    options: Mapping[str, Option]

    def value(self, name: str) -> Any:
        """A value of one's own.

        Raises:
            LookupError: There is no such argument, or it cannot be sent between processes.
        """
        packed = self.packed[name]
        if packed is None:
            raise LookupError(name)
        return _load(packed)

    def namespace(self) -> argparse.Namespace:
        """All that can be sent between processes; modules that it needs are imported."""
        sent = {name: it for name, it in self.packed.items() if it is not None}
        return argparse.Namespace(**{name: pickle.loads(it) for name, it in sent.items()})  # noqa: S301


@dataclass(frozen=True, slots=True)
class Refusal:
    """A command line is refused: the validator's own words, and the line of code that refused."""

    words: str
    code: str = ""


class _Loader(pickle.Unpickler):
    """Loads a value without importing anything: what is not loaded here, the job never had."""

    def find_class(self, module: str, name: str) -> Any:
        if module not in sys.modules:
            raise LookupError(f"{module}.{name}")
        return super().find_class(module, name)


def _load(packed: bytes) -> Any:
    return _Loader(io.BytesIO(packed)).load()


def try_all(
    reparse: Reparse, command_lines: Sequence[Sequence[str]], *, with_options: bool = False
) -> list[Parsed | Refusal]:
    """What each command line gives, in order; they run at the same time. `with_options`: with the
    options of the parsers.

    Raises:
        OSError: No process can be started, or one gave no answer within `TIMEOUT_S`.
    """
    children: list[tuple[int, int]] = []
    deadline = time.monotonic() + TIMEOUT_S
    gpu = gpu_answers()
    try:
        for words in command_lines:
            work = functools.partial(_outcome, reparse, list(words), with_options)
            children.append(_start(work, gpu))
        return [_load(_received(pipe, deadline)) for _, pipe in children]
    finally:
        for pid, pipe in children:
            os.close(pipe)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _start(work: Callable[[], object], gpu: Mapping[str, Any]) -> tuple[int, int]:
    pipe, child_pipe = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns where there are threads: see above
        pid = os.fork()
    if pid == 0:
        try:
            isolate(gpu)
            answer = pickle.dumps(work())
            rest = len(answer).to_bytes(8, "big") + answer
            while rest:
                rest = rest[os.write(child_pipe, rest) :]
        finally:
            os._exit(0)
    os.close(child_pipe)
    return pid, pipe


def _received(pipe: int, deadline: float) -> bytes:
    content, size = b"", 8
    while len(content) < size:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(pipe, 1 << 20) if ready else b""
        if not part:
            raise TimeoutError("the trial of a command line gave no answer")
        content += part
        if len(content) >= 8:
            size = 8 + int.from_bytes(content[:8], "big")
    return content[8:]


# --- in the child ---


def _note_options(options: dict[str, Option]) -> None:
    parse = argparse.ArgumentParser.parse_known_args

    def noted(parser: argparse.ArgumentParser, *rest: Any, **more: Any) -> Any:
        for name, option in OptionTable.of_parser(parser).items():
            options.setdefault(name, _sendable(option))
        return parse(parser, *rest, **more)

    argparse.ArgumentParser.parse_known_args = noted  # type: ignore[assignment,method-assign]


def _outcome(reparse: Reparse, words: list[str], with_options: bool) -> Parsed | Refusal:
    options: dict[str, Option] = {}
    if with_options:
        _note_options(options)
    try:
        found = reparse(words)
        values = dict(found) if isinstance(found, Mapping) else vars(found)
        return Parsed({name: _packed(value) for name, value in values.items()}, options)
    except SystemExit as error:
        said = sys.stderr.text() if isinstance(sys.stderr, KeptStream) else ""
        return Refusal((said.rpartition("error: ")[2].strip() or str(error))[:MAX_SAID])
    except Exception as error:  # validation refuses by any exception
        frame = traceback.extract_tb(error.__traceback__)[-1]
        name = "" if isinstance(error, AssertionError | ValueError) else type(error).__name__
        words_said = ": ".join(part for part in (name, str(error)) if part)
        return Refusal(words_said[:MAX_SAID], (frame.line or "")[:MAX_SAID])


def _packed(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value)
    except Exception:  # a foreign __reduce__ may raise anything
        return None


def _sendable(option: Option) -> Option:
    option = dataclasses.replace(option, convert=None)
    if _packed(option) is None:
        option = dataclasses.replace(option, default=None, choices=None)
    return option
