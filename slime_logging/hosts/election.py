"""Which of several processes that start in the same instant makes the run: exactly one.

    one host, or a shared directory     a lock file below the tracking directory, for the time of
                                        a start
    hosts of one Ray cluster            a named actor: Ray lets one process make it, and it ends
                                        with that process

Policy: whoever has its turn sees what those before it made. A process that dies in its turn gives
the turn to the next. Waiting is bounded.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slime_logging.errors import RunConflictError, RunNotFoundError
from slime_logging.hosts.rendezvous import RunAddress
from slime_logging.record.run import write_whole

logger = logging.getLogger("slime_logging")

NAMESPACE = "slime_logging"
FOLDER = ".joins"
TURN_S = 60.0
"""A start takes some tens of milliseconds; this is for a file system that hangs."""
POLL_S = 0.01

Key = tuple[str, ...]
"""What identifies the run: `("id", ...)`, `("name", project, group, name)` or `("job", ...)`."""


class Turn:
    """This process's turn: what the processes before it left in the same tracking directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def last(self) -> tuple[str | None, str]:
        """The id of the run that was made last under this key, None where there is none, and the
        job that made it.
        """
        try:
            run_id, _, job = self._path.read_text()[:1000].partition("\n")
        except (OSError, UnicodeDecodeError):
            return None, ""
        return run_id or None, job

    def leave(self, run_id: str, job: str) -> None:
        """Tell the next ones which run was made, and by which job."""
        write_whole(self._path, f"{run_id}\n{job}".encode())


@contextmanager
def turn(directory: Path, key: Key) -> Iterator[Turn]:
    """Wait for the turn among all processes that see this tracking directory and ask with this key.

    Raises:
        RunConflictError: another process has had its turn for `TURN_S`.
        OSError: the directory cannot be written.
    """
    folder = directory / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _digest(key)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path.with_suffix(".lock"), flags, 0o600)
    try:
        deadline = time.monotonic() + TURN_S
        while not _is_ours(fd):
            if time.monotonic() >= deadline:
                raise RunConflictError(
                    f"another process has been making or joining the run {' '.join(key[1:])!r} for"
                    f" {TURN_S:.0f} s and holds {path.with_suffix('.lock')}; end it."
                )
            time.sleep(POLL_S)
        yield Turn(path)
    finally:
        os.close(fd)


class Desk:
    """A Ray actor, made by the process that makes the run; the others ask it where the run is."""

    def __init__(self) -> None:
        self._token = ""
        self._is_known = asyncio.Event()

    async def tell(self, token: str) -> None:
        """Say where the run is."""
        self._token = token
        self._is_known.set()

    async def ask(self) -> str:
        """Where the run is, as soon as that is known."""
        await self._is_known.wait()
        return self._token


def claim_in_ray(key: Key) -> Any:
    """The actor of this key if this process is the first one of the cluster to ask: keep it as long
    as the process is in the run. None when another living process has it.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    try:
        return (
            ray.remote(num_cpus=0)(Desk)
            .options(
                name=f"join-{_digest(key)}",
                namespace=NAMESPACE,
                max_concurrency=1000,
                scheduling_strategy=here,
            )
            .remote()
        )
    except ValueError:  # the name is taken
        return None


def ask_in_ray(key: Key, wait_s: float) -> RunAddress | None:
    """Where the run is, as the process that makes it says; None when that process died meanwhile.

    Raises:
        RunNotFoundError: it did not say so in time.
    """
    import ray

    try:
        desk = ray.get_actor(f"join-{_digest(key)}", NAMESPACE)
        return RunAddress.of_token(ray.get(desk.ask.remote(), timeout=wait_s))
    except (ValueError, ray.exceptions.ActorDiedError):
        return None
    except ray.exceptions.GetTimeoutError:
        raise RunNotFoundError(
            f"the process that makes the run {' '.join(key[1:])!r} did not say within"
            f" {wait_s:.0f} s where it is."
        ) from None


def _is_ours(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):
            raise
        logger.warning(
            "slime_logging: this file system has no locks (%s): let one process make the run with"
            " make=True, and the others join it with make=False",
            error.strerror,
        )
    return True


def _digest(key: Key) -> str:
    return hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
