"""The sessions of this process, and its own life: exit, signals, forks.

Policy: a process that ends by itself or by an exception says so in its journals; the processes that
deliver find out the rest, a signal included, so none is handled here. A forked child leaves its
parent's files alone and joins with a journal of its own when it first logs. A bug of ours is told
with its traceback and does not reach training.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import signal
import sys
import threading
import traceback
from argparse import Namespace
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from slime_logging.delivery.notices import read_notices
from slime_logging.delivery.result import DeliveryResult
from slime_logging.hosts.rendezvous import find
from slime_logging.redaction.redact import safe_exception_text
from slime_logging.session.session import Session
from slime_logging.session.starting import join
from slime_logging.settings.options import OPTIONS

logger = logging.getLogger("slime_logging")

_sessions: list[Session] = []
_ended: deque[Session] = deque(maxlen=100)
"""The latest: what is logged with their arguments belongs to no other session."""
_lock = threading.RLock()
INTERRUPTED_CODE = 128 + signal.SIGINT

_forked_from: list[Session] = []
_swallowed: set[str] = set()


def changing() -> threading.RLock:
    """The lock around beginning and ending sessions: `with changing(): ...`."""
    return _lock


def primaries() -> list[Session]:
    """The sessions in which this process is a run's primary."""
    return [session for session in _sessions if session.is_primary]


def enter(session: Session) -> None:
    """Take a begun session in: from now on the process ends it, whatever way it ends itself."""
    _sessions.append(session)
    atexit.unregister(_leave_at_exit)
    atexit.register(_leave_at_exit)


def is_joined(args: Namespace, role: str | None, run_id: str) -> bool:
    """Whether this process is in the run in this role already; slime joins again each time it wakes
    a trainer.
    """
    for session in _sessions:
        if (
            session.role == role
            and not session.is_primary
            and session.recorder.opening.run_id == run_id
        ):
            session.args = args
            session.known_args = (*session.known_args[-9:], args)
            return True
    return False


def session_of(args: object) -> Session | None:
    """The session that was begun with these arguments, None once it has ended; with arguments that
    began none, the latest one of this process.
    """
    session = session_with(args)
    if session is not None or not _sessions or ended_with(args) is not None:
        return session
    return _sessions[-1]


def session_with(args: object) -> Session | None:
    """The session that was begun with exactly these arguments; None once it has ended."""
    if _forked_from:
        _rejoin_after_fork()
    return _begun_with(args, _sessions)


def ended_with(args: object) -> Session | None:
    """The latest session that was begun with these arguments and has ended."""
    return _begun_with(args, _ended)


def _begun_with(args: object, sessions: Sequence[Session]) -> Session | None:
    for session in reversed(sessions):
        for known in session.known_args:
            if known is args:
                return session
    return None


def end(session: Session, exit_code: int) -> None:
    """End a session, and print what its trackers have not confirmed; never raises."""
    _sessions.remove(session)
    _ended.append(session)
    try:
        results = session.finish(exit_code)
    except Exception as error:
        swallow("finish_tracking", session, error)
        return
    for text, is_told in read_notices(session.directory, since_s=session.begun_s):
        if not is_told:
            tell(text)
    left = [result for result in results if not result.is_complete]
    if left:
        tell(_what_is_left(session, left))


def tell(text: str) -> None:
    """Print a line to standard error, where there is one that takes it."""
    with suppress(OSError, ValueError, AttributeError):
        print(text, file=sys.stderr, flush=True)


def _what_is_left(session: Session, left: list[DeliveryResult]) -> str:
    states = [": ".join(filter(None, (result.state, result.reason))) for result in left]
    lines = [
        f"slime_logging: {result.backend} has not confirmed {result.num_left} rows ({state})"
        for result, state in zip(left, states, strict=True)
    ]
    return "\n".join(
        [
            *lines,
            (
                "slime_logging: nothing is lost; deliver it with: slime-logging sync"
                f" {_what_to_sync(session)}"
            ),
        ]
    )


def _what_to_sync(session: Session) -> str:
    """The run's directory, and the places that `sync` does not believe the directory itself."""
    options = session.settings.options
    places = {
        option.name: options[option.name]
        for option in OPTIONS
        if option.is_place and options[option.name] not in option.texts(os.environ)
    }
    words = [
        f"-o {shlex.quote(f'{name}={session.redactor.text(str(place))}')}"
        for name, place in places.items()
        if place
    ]
    return " ".join([str(session.directory.path), *words])


def swallow(call: str, session: Session, error: Exception) -> None:
    """A bug of ours is told with its traceback, once a call, and does not reach training.

    What a signal handler of the job raised while we were running is the job's, and passes.
    """
    if _is_of_a_signal_handler(error):
        raise error
    if call not in _swallowed:
        _swallowed.add(call)
        frames = "".join(traceback.format_tb(error.__traceback__))
        text = safe_exception_text(session.redactor, error)
        logger.error("slime_logging: %s failed; training goes on: %s\n%s", call, text, frames)


# -- the process's own life: exit, signals, forks
# -----------------------------------------------------------------


def _is_of_a_signal_handler(error: BaseException) -> bool:
    """Whether a Python function that handles signals stands among the frames that the exception
    passed.
    """
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _leave_at_exit() -> None:
    """Say that this process ends; with which code is known here only after an exception."""
    raised = getattr(sys, "last_type", None)
    interrupted = raised is not None and issubclass(raised, KeyboardInterrupt)
    exit_code = None if raised is None else INTERRUPTED_CODE if interrupted else 1
    with _lock:
        for session in _sessions:
            try:
                session.leave(exit_code)
            except Exception as error:
                swallow("the exit", session, error)
        _sessions.clear()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _forked_from[:] = _sessions or _forked_from
    _sessions.clear()
    for session in _forked_from:
        session.abandon()


def _rejoin_after_fork() -> None:
    """A forked child that logs becomes a process of the run of its own, with its own journal."""
    with _lock:
        parents, _forked_from[:] = list(_forked_from), []
        for parent in parents:
            try:
                address = find(parent.args)
                if address is not None:
                    _sessions.append(join(parent.args, parent.settings, parent.role, address))
            except Exception as error:  # `log` brought us here, and must not raise
                logger.error(
                    "slime_logging: this forked process cannot join its parent's run, and is not"
                    " tracked: %s",
                    safe_exception_text(parent.redactor, error),
                )


os.register_at_fork(after_in_child=_after_fork_in_child)


def exit_code_of(stop: SystemExit) -> int:
    """The code with which Python ends a process for it."""
    if stop.code is None:
        return 0
    return stop.code if isinstance(stop.code, int) else 1
