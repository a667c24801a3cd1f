"""How the processes of a job find the run that its primary made: by the arguments, the environment,
a torch store, or Ray.

Policy: the arguments that slime pickles into its actors carry the run's id and directory; nothing
else is needed there. For frameworks that pass no arguments on, the same two texts travel as one
token. Nothing here changes the process's environment.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from slime_logging.errors import RunNotFoundError, SettingsError
from slime_logging.hosts.torchrun import Store, job_store, run_key
from slime_logging.record.run import RunDirectory, check_run_id

logger = logging.getLogger("slime_logging")

T = TypeVar("T")

ENV_TOKEN = "SLIME_LOGGING_RUN"  # noqa: S105 - names a variable, and the value is no secret

TELL_S = 2.0
"""How long a process waits for its run before it says so."""

APPEAR_S = 2.0
"""How long a published directory may take to show on a network file system (attribute caches live
about as long).
"""


@dataclass(frozen=True, kw_only=True)
class RunAddress:
    """Where a run is: its id, the directory as the primary sees it (None when only the id is
    known), and which start of the run this is (1, then 2 after the first resume).
    """

    run_id: str
    directory: Path | None = None
    start: int = 1

    def to_token(self) -> str:
        """One line of text: `<run id>@<directory>`, from the second start on
        `<run id>:<start>@<directory>`.
        """
        start = f":{self.start}" if self.start > 1 else ""
        return f"{self.run_id}{start}@{self.directory or ''}"

    @classmethod
    def of_token(cls, token: str) -> RunAddress:
        """Read `to_token` back; raises `SettingsError` when the id cannot be one."""
        head, _, directory = token.strip().partition("@")
        run_id, _, start = head.partition(":")
        if start and not (start.isascii() and start.isdigit() and len(start) < 10):
            raise SettingsError(f"{ENV_TOKEN}={token[:200]!r}: {start!r} is no number of a start.")
        return cls(
            run_id=check_run_id(run_id),
            directory=Path(directory) if directory else None,
            start=int(start or 1),
        )


def publish(args: Namespace, address: RunAddress) -> None:
    """Write the address into the arguments, so that whoever gets them can join: `wandb_run_id`,
    `tracking_run_dir`, and from the second start on `tracking_run_start`.
    """
    args.wandb_run_id = address.run_id
    if address.start > 1 or hasattr(args, "tracking_run_start"):
        args.tracking_run_start = address.start
    args.tracking_run_dir = None if address.directory is None else str(address.directory)


def find(args: object, environ: Mapping[str, str] = os.environ) -> RunAddress | None:
    """The run that this process belongs to, by its arguments, else by the environment; None when
    nothing names one.
    """
    run_id = getattr(args, "wandb_run_id", None)
    directory = getattr(args, "tracking_run_dir", None)
    if run_id:
        return RunAddress(
            run_id=check_run_id(str(run_id)),
            directory=Path(directory) if directory else None,
            start=int(getattr(args, "tracking_run_start", None) or 1),
        )
    token = environ.get(ENV_TOKEN)
    return RunAddress.of_token(token) if token else None


WAYS_TO_JOIN = (
    "give it the arguments that the primary got back from init_tracking (wandb_run_id and"
    f" tracking_run_dir are in them), or --wandb-run-id, or {ENV_TOKEN}=ID@DIRECTORY,"
    " or call join_by_store(None, args) of slime_logging.hosts.rendezvous before, where the primary"
    " calls publish_to_store(None, args)"
)


def publish_to_store(store: Store | None, args: object) -> None:
    """Publish the run of these arguments in a `torch.distributed` store; call it in the primary,
    after `init_tracking`. Workers that torchrun has started again find this start's run alone.

    Args:
        store: None for the job's own, as `job_store` finds it.
        args: the primary's.

    Raises:
        RunNotFoundError: these arguments have no run, or the job has no store.
    """
    address = find(args)
    if address is None:
        raise RunNotFoundError("no run to publish: call init_tracking(args) first.")
    (job_store() if store is None else store).set(run_key(), address.to_token())


def join_by_store(store: Store | None, args: Namespace) -> None:
    """Wait for the run that `publish_to_store` published, as long as the store's own timeout, and
    write it into `args`.

    Args:
        store: None for the job's own, as `job_store` finds it.
        args: of this process.

    Raises:
        RunNotFoundError: the job has no store.
    """
    token = tell_when_waiting(
        "a run in the torch store", lambda: (store or job_store()).get(run_key())
    )
    publish(args, RunAddress.of_token(token.decode()))


def see(address: RunAddress, wait_s: float = APPEAR_S) -> RunDirectory | None:
    """The run's own directory if this process can see it (same host or shared file system) within
    `wait_s`, else None. One that a host keeps because it does not see the run's own is not that.
    """
    if address.directory is None:
        return None
    directory = RunDirectory(address.directory)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            run = directory.read()
            if run.run_id == address.run_id and os.access(directory.journals, os.W_OK):
                if run.outpost_of is None:
                    return directory
                if run.outpost_of == address.to_token():
                    return None
        except RunNotFoundError:
            pass
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.05)


def tell_when_waiting(what: str, find_it: Callable[[], T]) -> T:
    """Call `find_it`, which may wait for `what`: say so after `TELL_S`, and when it was found then.
    Returns what it returns; None says that nothing was found.
    """
    begun_s = time.monotonic()
    timer = threading.Timer(TELL_S, logger.warning, ("slime_logging: waiting for %s", what))
    timer.daemon = True
    timer.start()
    try:
        found = find_it()
    finally:
        timer.cancel()
    waited_s = time.monotonic() - begun_s
    if waited_s > TELL_S and found is not None:
        logger.warning("slime_logging: found after %.1f s: %s", waited_s, what)
    return found
