"""What a run needs done on each host: its system metrics, and its journals brought to the disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from slime_logging.delivery.spec import DeliverySpec
from slime_logging.delivery.system import SystemSampler, is_sampled
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
        self._sampler: SystemSampler | None = None
        self._watch = Watch(directory.journals)
        self._due_s = 0.0

    def is_wanted(self) -> bool:
        """Whether this host's metrics are to be sampled, and nobody does."""
        is_on = self._spec.interval_s is not None
        return is_on and not is_sampled(self._directory, self._spec.host_label)

    def begin(self) -> None:
        """Sample the host, if nobody else does."""
        spec = self._spec
        if spec.interval_s is None:
            return
        run = self._directory.read()

        def new_recorder() -> Recorder:
            opening = Opening(
                run_id=run.run_id,
                journal=journal_name("system"),
                role="system",
                is_primary=False,
                host=spec.host_label,
                pid=os.getpid(),
                start=spec.start,
                time_s=now_s(),
                owner=spec.label,
            )
            return Recorder(self._directory, opening, Redactor.of({}, {}))

        self._sampler = SystemSampler(
            self._directory, spec.host_label, run.created_s, spec.interval_s, new_recorder
        )
        self._sampler.start()

    def end(self) -> None:
        """Take a last sample, and stop."""
        if self._sampler is not None:
            self._sampler.stop()
            self._sampler = None

    def sync_journals(self, now: float) -> None:
        """Bring what was written on this host to the disk, at most twice a second."""
        if now < self._due_s:
            return
        self._due_s = now + SYNC_INTERVAL_S
        for path in self._watch.grown(self._directory.journal_paths(), now):
            _sync(path)


def _sync(path: Path) -> None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)
        finally:
            os.close(fd)
