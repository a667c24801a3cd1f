"""Who still writes a run: told by the locks that writers hold, and by journals that grow."""

from __future__ import annotations

import time
from pathlib import Path

from slime_logging.delivery.spec import DeliverySpec
from slime_logging.delivery.watch import Watch
from slime_logging.record.entries import Opening
from slime_logging.record.journal import SUFFIX, is_written
from slime_logging.record.reading import read_opening
from slime_logging.record.run import RunDirectory

CHECK_INTERVAL_S = 1.0
QUIET_S = 20.0
"""After the primary ended, trackers are closed when nobody wrote for so long; a later row opens
them again.
"""


class Writers:
    """The processes that write a run, as one delivery sees them.

    Args:
        directory: the run's.
        spec: which of them matter.
    """

    def __init__(self, directory: RunDirectory, spec: DeliverySpec) -> None:
        self._directory = directory
        self._spec = spec
        self._watch = Watch(directory.journals)
        self._openings: dict[Path, Opening | None] = {}
        self._living: Path | None = None
        self._are_alive = True
        self._checked_at_s = 0.0
        self._grown_at_s = time.monotonic()
        self._has_grown = False

    def is_owner_alive(self) -> bool:
        """Whether the one lives for whom this delivery was started: the primary, one process, or
        any process of the host.
        """
        if self._spec.only is not None:
            return is_written(self._directory.journals / f"{self._spec.only}{SUFFIX}")
        if not self._spec.is_primary:
            return self.are_others_alive()
        return self._directory.locks.has_living_primary

    def are_others_alive(self) -> bool:
        """Whether any process that matters writes a journal; asked of the system once a second."""
        now_s = time.monotonic()
        if now_s - self._checked_at_s >= CHECK_INTERVAL_S:
            self._checked_at_s = now_s
            self._are_alive = self._find_living()
        return self._are_alive

    def note_end(self) -> None:
        """What is in the journals now is delivered: only what comes later counts as grown."""
        self._watch.forget()
        self._look()
        self._has_grown = False
        self._grown_at_s = time.monotonic()

    def have_grown(self, *, is_certain: bool = False) -> bool:
        """Whether a journal grew since `note_end`; `is_certain` looks at every one now."""
        self._look(is_due=is_certain)
        return self._has_grown

    def are_others_at_work(self) -> bool:
        """Whether any lives, and a journal grew within `QUIET_S`."""
        self._look()
        return self.are_others_alive() and time.monotonic() - self._grown_at_s < QUIET_S

    def _look(self, *, is_due: bool = False) -> None:
        now_s = time.monotonic()
        if self._watch.grown(self._paths(), now_s, is_due=is_due):
            self._has_grown = True
            self._grown_at_s = now_s

    def _find_living(self) -> bool:
        if self._living is not None and is_written(self._living):
            return True
        self._living = next((path for path in self._paths() if is_written(path)), None)
        return self._living is not None

    def _paths(self) -> list[Path]:
        """The journals that count: not the samples of hosts, which stop when the others do."""
        return [path for path in self._directory.journal_paths() if self._counts(path)]

    def _counts(self, path: Path) -> bool:
        if path not in self._openings:
            opening = read_opening(path)
            if opening is None:
                return self._spec.is_primary
            self._openings[path] = opening
        opening = self._openings[path]
        if opening is None or opening.role == "system":
            return False
        if self._spec.only is not None:
            return self._spec.only in (opening.journal, opening.owner)
        return self._spec.is_primary or opening.host == self._spec.host
