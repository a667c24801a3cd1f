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
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from slime_logging.backends.base import Writer
from slime_logging.delivery.delivery import Delivery
from slime_logging.delivery.notices import NoticeHandler
from slime_logging.delivery.watch import SLOWEST_PAUSE_S
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.redact import Redactor, safe_exception_text

CLOSED_CODE = 0
LEFT_CODE = 3
"""The delivery ended in time, but the tracker has not confirmed everything."""

HANG_S = 180.0
"""A step of a delivery that takes longer hangs: backends bound each of their own calls far below.
"""

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Deliver until told to end."""
    die_with_parent()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the supervisor says when to end
    told: Mapping[str, Any] = orjson.loads(_next_line())
    os.environ.update(told["environment"])
    delivery = _delivery(told)
    delivery.start()
    _wait_for_the_end(delivery)
    result = delivery.wait()
    os._exit(CLOSED_CODE if result.is_complete else LEFT_CODE)


def _next_line() -> bytes:
    """One line of standard input, and not a byte more: `select` tells of what is left."""
    data = b""
    while not data.endswith(b"\n"):
        byte = os.read(0, 1)
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
        told["tracker"],
        directory,
        run.facts(directory.path, told["options"]),
        Writer(
            label=told["label"],
            is_primary=told["only"] is None,
            is_shared=told["is_shared"],
            is_sync=told.get("is_sync", False),
        ),
        only=told["only"],
        start=told["start"],
        is_repair=told.get("is_repair", False),
        safe_text=lambda error: safe_exception_text(redactor, error),
        slowest_s=SLOWEST_PAUSE_S * told["num_trackers"],
    )


def _wait_for_the_end(delivery: Delivery) -> None:
    """Return when told to end; leave at once when the parent is gone or a step hangs."""
    while delivery.is_running:
        if select.select([0], [], [], 1.0)[0]:
            line = _next_line()
            if not line:
                os._exit(LEFT_CODE)
            end = orjson.loads(line)
            delivery.stop(end["exit_code"], end["timeout_s"])
            return
        if time.monotonic() - delivery.stepped_at_s > HANG_S:
            os._exit(LEFT_CODE)


def die_with_parent() -> None:
    """Die when the process that started this one does, where the system can do that (Linux)."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (AttributeError, OSError):
        return
    if os.getppid() != parent:
        os._exit(LEFT_CODE)
