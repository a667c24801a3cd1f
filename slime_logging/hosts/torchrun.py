"""The workers that one `torchrun` starts, and starts again: what they have in common, and the store
in which they find each other.

Policy: torch is asked only where the process has loaded it already. The store of torchrun's agents
outlives a restart of the workers, so what is published there carries the number of the restart.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

from slime_logging.errors import RunNotFoundError

logger = logging.getLogger("slime_logging")

CONNECT_S = 30.0
_JOB_KEY = "slime_logging/job"
_RUN_KEY = "slime_logging/run"


class Store(Protocol):
    """What is used of `torch.distributed.Store`."""

    def set(self, key: str, value: str) -> Any:
        """Publish a value."""

    def get(self, key: str) -> bytes:
        """Wait for a value."""


def job_store(timeout_s: float = CONNECT_S, environ: Mapping[str, str] = os.environ) -> Any:
    """The `torch.distributed` store that all processes of this job share, found by itself: that of
    torchrun's agents, or the one at MASTER_ADDR and MASTER_PORT that `init_process_group` made.

    Args:
        timeout_s: how long to wait for it, and how long its own calls wait, seconds.
        environ: the environment of this process.

    Raises:
        RunNotFoundError: this process is in no such job, or nobody answers there.
    """
    address, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT", "")
    if not address or not port.isdecimal():
        raise RunNotFoundError(
            "this job has no torch store: MASTER_ADDR and MASTER_PORT are not set. Start it with"
            " torchrun, or call torch.distributed.init_process_group first."
        )
    from torch.distributed import TCPStore

    try:
        return TCPStore(address, int(port), is_master=False, timeout=timedelta(seconds=timeout_s))
    except RuntimeError as error:
        raise RunNotFoundError(
            f"no torch store answers at {address}:{port} within {timeout_s:.0f} s: {error}"
        ) from None


def run_key(environ: Mapping[str, str] = os.environ) -> str:
    """Where in a store the run of this start of the workers is published."""
    attempt = environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return _RUN_KEY if attempt in ("", "0") else f"{_RUN_KEY}/{attempt}"


def torchrun_job(environ: Mapping[str, str] = os.environ) -> str:
    """What the workers of one job of torchrun have in common, those that it starts again included,
    and those of another job do not; "" elsewhere.
    """
    if not environ.get("TORCHELASTIC_RUN_ID"):
        return ""
    store = agents_store(environ)
    if store is not None:
        with suppress(RuntimeError):  # as torch's stores raise for a connection that is gone
            return str(store.compare_set(_JOB_KEY, "", secrets.token_hex(12)).decode())
    import psutil

    run_id = environ["TORCHELASTIC_RUN_ID"]
    with suppress(psutil.Error):
        for each in psutil.Process().parents():  # a script may be between a worker and its agent
            if _run_id_of(each) != run_id:
                return f"{socket.gethostname()} {each.pid} {each.create_time()} {run_id}"
    return ""


def _run_id_of(process: Any) -> str:
    import psutil

    with suppress(psutil.AccessDenied):
        return str(process.environ().get("TORCHELASTIC_RUN_ID", ""))
    return ""


def agents_store(environ: Mapping[str, str] = os.environ) -> Any:
    """The store of torchrun's agents; None where there is none, or torch is not loaded here."""
    if "torch" not in sys.modules or environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    try:
        return job_store(CONNECT_S, environ)
    except RunNotFoundError as error:
        logger.debug("slime_logging: %s", error)
        return None
