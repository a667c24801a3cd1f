"""The process that delivers to one tracker, and nothing else.

It is told what by the first line of its standard input, a later line tells it to end. It ends at
once when that input closes or its parent dies, and goes on from its cursor when it is started
again: it may be killed at any moment.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from slime_logging.backends.base import Writer
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.delivery import Delivery
from slime_logging.delivery.notices import NoticeHandler
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.redact import Redactor, safe_exception_text

CLOSED_CODE = 0
LEFT_CODE = 3
"""The delivery ended in time, but the tracker has not confirmed everything."""

AGAIN_CODE = 4
"""A new process is to go on: this one hangs, or holds a client that broke."""

TICK_S = 0.2

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Deliver until told to end."""
    die_with_parent()
    control = _take_control()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the supervisor says when to end
    told: Mapping[str, Any] = orjson.loads(_next_line(control))
    os.environ.update(told["environment"])
    delivery = _delivery(told)
    delivery.start()
    _wait_for_the_end(delivery, control)
    if delivery.needs_new_process:
        os._exit(AGAIN_CODE)
    os._exit(CLOSED_CODE if delivery.result().is_complete else LEFT_CODE)


def _take_control() -> int:
    """What standard input was, out of reach of a vendor that asks there for a key."""
    control = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return control


def _next_line(control: int) -> bytes:
    """One line, and not a byte more: `select` tells of what is left."""
    data = b""
    while not data.endswith(b"\n"):
        byte = os.read(control, 1)
        if not byte:
            return b""
        data += byte
    return data


def _delivery(told: Mapping[str, Any]) -> Delivery:
    import logging

    directory = RunDirectory(Path(told["directory"]))
    handler = NoticeHandler(directory, told["pid"])
    for name in ("slime_logging",):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
    run = directory.read()
    redactor = Redactor.of(told["options"], os.environ)
    return Delivery(
        Assignment(
            tracker=told["tracker"],
            directory=directory,
            facts=run.facts(directory.path, told["options"]),
            writer=Writer(
                label=told["label"],
                is_primary=told["only"] is None,
                is_shared=told["is_shared"],
                is_sync=told.get("is_sync", False),
            ),
            only=told["only"],
            start=told["start"],
            is_repair=told.get("is_repair", False),
            is_alone=True,
        ),
        safe_text=lambda error: safe_exception_text(redactor, error),
    )


def _wait_for_the_end(delivery: Delivery, control: int) -> None:
    """Return when the delivery ended; leave at once when the parent is gone or a step hangs."""
    while delivery.is_running:
        if select.select([control], [], [], TICK_S)[0]:
            line = _next_line(control)
            if not line:
                os._exit(LEFT_CODE)
            end = orjson.loads(line)
            delivery.stop(end["exit_code"], end["timeout_s"])
        if delivery.is_hanging:
            delivery.note_hang()
            os._exit(AGAIN_CODE)


def die_with_parent() -> None:
    """Die when the process that started this one does, where the system can do that (Linux)."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (AttributeError, OSError):
        return
    if os.getppid() != parent:
        os._exit(LEFT_CODE)
