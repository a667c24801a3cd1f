"""What a run needs done on each host: its system metrics, those of the engines, and its journals
brought to the disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from slime_logging.delivery.engines import EngineProbe, engines_lock
from slime_logging.delivery.sampler import Sampler
from slime_logging.delivery.spec import DeliverySpec
from slime_logging.delivery.system import HostProbe, host_lock, is_sampled
from slime_logging.delivery.watch import Watch
from slime_logging.record.entries import Opening
from slime_logging.record.journal import journal_name
from slime_logging.record.recorder import Recorder
from slime_logging.record.run import RunDirectory, now_s
from slime_logging.redaction.redact import Redactor

SYNC_INTERVAL_S = 0.5


class Host:
    """This host's part in a run.

    Args:
        directory: the run's.
        spec: whose delivery this is.
    """

    def __init__(self, directory: RunDirectory, spec: DeliverySpec) -> None:
        self._directory = directory
        self._spec = spec
        self._samplers: list[Sampler] = []
        self._watch = Watch(directory.journals)
        self._due_s = 0.0

    def is_wanted(self) -> bool:
        """Whether this host's metrics are to be sampled, and nobody does."""
        is_on = self._spec.interval_s is not None
        return is_on and not is_sampled(self._directory, self._spec.host_label)

    def begin(self) -> None:
        """Sample the host and the engines, if nobody else does."""
        directory, interval_s, label = self._directory, self._spec.interval_s, self._spec.host_label
        if interval_s is None:
            return
        created_s = directory.read().created_s
        for lock, new_probe in (
            (host_lock(directory, label), lambda: HostProbe(label)),
            (engines_lock(directory), lambda: EngineProbe(directory)),
        ):
            sampler = Sampler(lock, created_s, interval_s, self._new_recorder, new_probe)
            self._samplers.append(sampler)
            sampler.start()

    def end(self) -> None:
        """Take last samples, and stop."""
        for sampler in self._samplers:
            sampler.stop()
        for sampler in self._samplers:
            sampler.wait()
        self._samplers.clear()

    def sync_journals(self, now: float) -> None:
        """Bring what was written on this host to the disk, at most twice a second."""
        if now < self._due_s:
            return
        self._due_s = now + SYNC_INTERVAL_S
        for path in self._watch.grown(self._directory.journal_paths(), now):
            _sync(path)

    def _new_recorder(self) -> Recorder:
        opening = Opening(
            run_id=self._directory.read().run_id,
            journal=journal_name("system"),
            role="system",
            is_primary=False,
            host=self._spec.host_label,
            pid=os.getpid(),
            start=self._spec.start,
            time_s=now_s(),
            owner=self._spec.label,
        )
        return Recorder(self._directory, opening, Redactor.of({}, {}))


def _sync(path: Path) -> None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)
        finally:
            os.close(fd)
