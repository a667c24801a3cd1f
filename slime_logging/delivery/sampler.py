"""Numbers that are read from time to time while a job runs, as rows of a journal of their own.

Policy: one sampler of a kind, however many processes could be it: the one that holds its lock
samples, the others ask for the lock once an interval and take over when it dies. It never raises.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from slime_logging.record.recorder import Recorder

logger = logging.getLogger("slime_logging")

STEP_KEY = "system/elapsed_s"
"""The axis of all sampled rows: whole seconds since the run was made."""


class Probe(Protocol):
    """Reads numbers."""

    def sample(self) -> Mapping[str, float]:
        """The numbers, by the names that they have in the run; empty where there are none now."""
        ...


class Sampler:
    """A background thread that samples while no other process of the run does.

    Args:
        lock: the file of its lock.
        created_s: when the run was made, Unix seconds.
        interval_s: seconds between samples.
        new_recorder: makes the journal, once this process has something to write.
        new_probe: makes what is read, in the thread.
    """

    def __init__(
        self,
        lock: Path,
        created_s: float,
        interval_s: float,
        new_recorder: Callable[[], Recorder],
        new_probe: Callable[[], Probe],
    ) -> None:
        self._lock_path = lock
        self._created_s = created_s
        self._interval_s = interval_s
        self._new_recorder = new_recorder
        self._new_probe = new_probe
        self._fd = -1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slime-logging-sampler", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Take a last sample if this process is the sampler, and end; returns at once."""
        self._stop.set()

    def wait(self) -> None:
        """Wait until it has ended, at most a few seconds."""
        self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            while not self._is_mine():
                if self._stop.wait(self._interval_s):
                    return
            self._sample_until_stopped()
        except (
            Exception
        ) as error:  # a counter that cannot be read must cost nothing but its numbers
            logger.warning("slime_logging: sampling stops: %s: %s", type(error).__name__, error)
        finally:
            if self._fd >= 0:
                os.close(self._fd)

    def _is_mine(self) -> bool:
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def _sample_until_stopped(self) -> None:
        probe, recorder = self._new_probe(), None
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._interval_s)
            sample = probe.sample()
            if sample:
                recorder = recorder or self._new_recorder()
                recorder.row({**sample, STEP_KEY: int(time.time() - self._created_s)}, STEP_KEY)
        if recorder is not None:
            recorder.finish(0)
