"""Where a tracker keeps a store of its own on this machine: one for all runs of a tracking
directory, so that it can show them beside each other.

Policy: a run whose own directory holds such a store already, as earlier versions made it, goes on
there: its rows stay in one place.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def local_store(run: Path, name: str) -> Path:
    """The directory of the store called `name`: the run's own where there is one, else
    `<tracking-dir>/<name>`. Nothing is made; `run` is the run's directory.
    """
    own = run / name
    return own if own.is_dir() and not own.is_symlink() else run.parent / name


@contextmanager
def one_at_a_time(path: Path | None) -> Iterator[None]:
    """Hold the lock file `path` over the block; other processes wait. None: no lock.

    Raises:
        OSError: the file cannot be made.
    """
    if path is None:
        yield
        return
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
