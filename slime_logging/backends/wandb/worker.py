"""The process that holds W&B's client, and nothing else: `python -m
slime_logging.backends.wandb.worker FD PARENT_PID`.

Policy: it obeys requests `(verb, arguments)` on the inherited socket, one reply each, in order:
`("ok", value)`, `("again", text)` or `("never", text)`. It dies with its parent, and takes W&B's
own service process along: a run that was killed must not go on writing behind the back of the one
that continues it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import psutil

from slime_logging.backends.wandb import api as wandb_api
from slime_logging.backends.wandb.session import Session

PARENT_CHECK_INTERVAL_S = 0.25

WHERE_SIGNAL = signal.SIGUSR1
"""Has the process write to its standard error in which calls its threads are; names and line
numbers only.
"""


def main() -> None:
    """Serve the parent until it closes the socket, or dies."""
    faulthandler.register(WHERE_SIGNAL)
    connection = Connection(int(sys.argv[1]))
    threading.Thread(target=_die_with, args=(int(sys.argv[2]),), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        _serve(connection)
    _die()


def _serve(connection: Connection) -> None:
    session, scan = Session(), wandb_api.Scan()
    verbs: Mapping[str, Any] = {
        "open": session.open,
        "config": session.set_config,
        "rows": session.write,
        "close": session.close,
        "scan": scan.open,
        "read": scan.read,
        "read_config": wandb_api.read_config,
    }
    while True:
        verb, arguments = connection.recv()
        try:
            reply: tuple[str, Any] = ("ok", verbs[verb](*arguments))
        except Exception as error:
            reply = wandb_api.verdict(error)
        connection.send(reply)


def _die_with(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(PARENT_CHECK_INTERVAL_S)
    _die()


def _die() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
