"""Who writes and who delivers a run: locks that die with the process that holds them.

    primary.lock             held by the living primary
    supervisor.lock          held by the process that delivers the whole run
    delivery.lock            shared by the living processes that deliver, or held by one `sync`
    delivery/<journal>.lock  held by the living process that delivers this journal itself

Policy: a lock is never waited for. A forked child lets go of the inherited descriptors without
releasing its parent's locks.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

from slime_logging.errors import RunConflictError
from slime_logging.record import exit_status

PRIMARY_LOCK = "primary.lock"
SUPERVISOR_LOCK = "supervisor.lock"

logger = logging.getLogger("slime_logging")


class RunLocks:
    """The locks of one run's directory, as this process holds them. Constructing it takes none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_fd = -1
        self._delivery_fd = -1
        self._own_fd = -1
        self._supervisor_fd = -1

    @property
    def has_living_primary(self) -> bool:
        """Whether a process holds the run's lock now, as far as anybody can tell."""
        return is_taken(self._path / PRIMARY_LOCK) is True

    def lock(self) -> None:
        """Become the run's primary until this process ends or `unlock`.

        Raises:
            RunConflictError: another living process is the primary.
        """
        fd = _open_lock(self._path / PRIMARY_LOCK)
        try:
            _flock(fd, fcntl.LOCK_EX)
        except BlockingIOError as error:
            owner = os.read(fd, 256).decode(errors="replace").strip()
            os.close(fd)
            raise RunConflictError(
                f"run {self._path.name} already has a living primary"
                f" ({owner or 'unknown process'}). Give this job another --wandb-run-id, or end the"
                " other one first."
            ) from error
        os.ftruncate(fd, 0)
        os.write(fd, f"host {socket.gethostname()}, pid {os.getpid()}\n".encode())
        self._lock_fd = exit_status.leave_in(fd)

    @property
    def has_living_supervisor(self) -> bool:
        """Whether a process delivers the whole run now, as far as anybody can tell."""
        return is_taken(self._path / SUPERVISOR_LOCK) is True

    def supervise(self) -> bool:
        """Be the one process that delivers the whole run, until it ends; False where one does."""
        if self._supervisor_fd < 0:
            fd = _open_lock(self._path / SUPERVISOR_LOCK)
            try:
                _flock(fd, fcntl.LOCK_EX)
            except BlockingIOError:
                os.close(fd)
                return False
            self._supervisor_fd = fd
        return True

    def share_delivery(self) -> bool:
        """Say that this process delivers journals of this directory, so that no `sync` begins
        beside it; False while one is under way.
        """
        try:
            self._hold_delivery(fcntl.LOCK_SH, "")
        except RunConflictError:
            return False
        return True

    def claim_delivery(self) -> None:
        """Be the only process that delivers journals of this directory.

        Raises:
            RunConflictError: the job is still running, or another `sync` is under way.
        """
        self._hold_delivery(
            fcntl.LOCK_EX, "its job, or another sync, is delivering it now; it will go on by itself"
        )

    def hold(self, journal: str) -> None:
        """Say that this process delivers its own journals, by the name of its main one, until it
        ends or `unlock`.
        """
        self._own_fd = _open_lock(_own_lock(self._path, journal))
        _flock(self._own_fd, fcntl.LOCK_EX)

    def give(self, start: Callable[[int], None]) -> None:
        """Hand the lock of `hold` or `claim_delivery` over to a process: `start` is given the
        descriptor that it is to inherit, and this one lets go of its own.
        """
        fd = max(self._own_fd, self._delivery_fd)
        self._own_fd = self._delivery_fd = -1
        try:
            start(fd)
        finally:
            os.close(fd)

    def is_held(self, journal: str) -> bool:
        """Whether a living process holds this journal; also when nobody can tell."""
        return is_taken(_own_lock(self._path, journal)) is not False

    def unlock(self) -> None:
        """Let go of all locks; in a forked child without releasing the parent's."""
        if self._lock_fd >= 0:
            exit_status.release(self._lock_fd)
        for fd in (self._delivery_fd, self._own_fd, self._supervisor_fd):
            if fd >= 0:
                os.close(fd)
        self._lock_fd = self._delivery_fd = self._own_fd = self._supervisor_fd = -1

    def _hold_delivery(self, kind: int, why: str) -> None:
        if self._delivery_fd >= 0:
            return
        fd = _open_lock(self._path / "delivery.lock")
        try:
            _flock(fd, kind)
        except BlockingIOError as error:
            os.close(fd)
            raise RunConflictError(f"run {self._path.name}: {why}.") from error
        self._delivery_fd = fd


def is_taken(path: Path) -> bool | None:
    """Whether a process holds a lock now; None when nobody can tell."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(fd)
    return False


def _own_lock(run: Path, journal: str) -> Path:
    return run / "delivery" / f"{Path(journal).name}.lock"


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _flock(fd: int, kind: int) -> None:
    """Take a lock at once; `BlockingIOError` when another process has it. Some network file systems
    know no locks: said once.
    """
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):
            os.close(fd)
            raise
        logger.warning(
            "slime_logging: this file system has no locks (%s): nothing keeps two jobs from one"
            " run id",
            error.strerror,
        )
