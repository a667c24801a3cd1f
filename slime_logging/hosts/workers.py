"""How the workers of torchrun, each of which parsed its own arguments, find the run that one of
them made: through the store of torchrun's agents, else through the tracking directory.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from slime_logging.hosts.election import Key, turn
from slime_logging.hosts.rendezvous import RunAddress
from slime_logging.hosts.torchrun import agents_store, run_key, torchrun_job

logger = logging.getLogger("slime_logging")

POLL_S = 0.1


def tell_workers(
    address: RunAddress, directory: Path, environ: Mapping[str, str] = os.environ
) -> None:
    """Tell the other workers of this start which run it is; does nothing outside of torchrun.

    Args:
        address: the run.
        directory: the tracking directory.
        environ: of this process.
    """
    job = torchrun_job(environ)
    if not job:
        return
    store = agents_store(environ)
    try:
        if store is not None:
            store.set(run_key(environ), address.to_token())
    except RuntimeError as error:  # as torch's stores raise for a connection that is gone
        logger.warning("slime_logging: the other workers cannot be told of the run: %s", error)
    with turn(directory, _key(job)) as mine:
        mine.leave(address.to_token(), _attempt(environ))


def ask_workers(
    directory: Path, wait_s: float, environ: Mapping[str, str] = os.environ
) -> RunAddress | None:
    """The run that a worker of this start has made; None outside of torchrun, or when none did so
    in time.
    """
    job = torchrun_job(environ)
    if not job:
        return None
    store = agents_store(environ)
    if store is not None:
        try:
            store.wait([run_key(environ)], timedelta(seconds=wait_s))
        except RuntimeError:
            return None
        return RunAddress.of_token(store.get(run_key(environ)).decode())
    deadline_s = time.monotonic() + wait_s
    while True:
        with turn(directory, _key(job)) as mine:
            token, attempt = mine.last()
        if token is not None and attempt == _attempt(environ):
            return RunAddress.of_token(token)
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(POLL_S)


def _key(job: str) -> Key:
    return ("workers", job)


def _attempt(environ: Mapping[str, str]) -> str:
    return environ.get("TORCHELASTIC_RESTART_COUNT") or "0"
