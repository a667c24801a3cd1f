"""What a process has others deliver for it: the process that does it, and the wait at the end.

Policy: the trackers' own processes are started once and left alone. The tracker `memory` alone is
delivered to inside of this process, by a thread: it is for tests.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace

from slime_logging.backends.base import Writer
from slime_logging.backends.place import place_of
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.delivery import Delivery
from slime_logging.delivery.result import DeliveryResult
from slime_logging.delivery.spec import DeliverySpec
from slime_logging.delivery.start import start_supervisor
from slime_logging.delivery.system import is_sampled
from slime_logging.delivery.waiting import Awaited, wait_until_confirmed
from slime_logging.record.run import RunDirectory, RunFile

logger = logging.getLogger("slime_logging")

INSIDE = "memory"


class OwnDelivery:
    """The delivery that a session asked for.

    Args:
        directory: the run's.
        run: what `run.json` says.
        spec: what to deliver.
        safe_text: makes a foreign exception's text fit to be written down.
    """

    def __init__(
        self,
        directory: RunDirectory,
        run: RunFile,
        spec: DeliverySpec,
        safe_text: Callable[[BaseException], str],
    ) -> None:
        self._directory = directory
        self._spec = replace(spec, trackers=tuple(name for name in spec.trackers if name != INSIDE))
        self._started_s = time.monotonic()
        self._inside: Delivery | None = None
        if INSIDE in spec.trackers:
            writer = Writer(label=spec.label, is_primary=spec.is_primary, is_shared=spec.is_shared)
            facts = run.facts(directory.path, spec.options)
            self._inside = Delivery(
                Assignment(
                    tracker=INSIDE,
                    directory=directory,
                    facts=facts,
                    writer=writer,
                    only=spec.only,
                    start=spec.start,
                ),
                safe_text=safe_text,
            )
            self._inside.start()
        self._start()
        options = {**spec.options, "run_name": run.name}
        keys = {
            tracker: place_of(tracker, options, os.environ, directory.path).key
            for tracker in self._spec.trackers
        }
        self._awaited = Awaited(
            label=spec.label,
            start=spec.start,
            keys=keys,
            is_whole_run=spec.is_primary,
            started_s=self._started_s,
        )

    def wait(self, exit_code: int | None, timeout_s: float) -> list[DeliveryResult]:
        """Wait, bounded, until everything is confirmed; how far each tracker is."""
        inside = self._stop_inside(exit_code, timeout_s)
        if not self._spec.trackers:
            return inside
        return inside + wait_until_confirmed(self._directory, self._awaited, timeout_s, self._start)

    def leave(self, exit_code: int | None) -> None:
        """This process ends, and waits for nobody but for what is delivered inside of it."""
        self._stop_inside(exit_code or 0, self._spec.finish_timeout_s)

    def _stop_inside(self, exit_code: int | None, timeout_s: float) -> list[DeliveryResult]:
        if self._inside is None:
            return []
        self._inside.stop(exit_code, timeout_s)
        return [self._inside.wait()]

    def _start(self) -> None:
        if not self._spec.trackers and self._inside is not None:
            return
        locks, spec = self._directory.locks, self._spec
        try:
            if spec.only is None:
                start_supervisor(spec)
            else:
                locks.hold(spec.label)
                locks.give(lambda fd: start_supervisor(spec, fd))
        except OSError as error:
            logger.error(
                "slime_logging: the delivery cannot be started (%s); rows are kept in %s, and"
                " `slime-logging sync` brings them later",
                error.strerror or error,
                self._directory.path,
            )


def is_host_unattended(directory: RunDirectory, run: RunFile, spec: DeliverySpec) -> bool:
    """Whether this host is another one than the primary's, and nobody samples it."""
    if spec.interval_s is None or spec.host == run.host:
        return False
    return not is_sampled(directory, spec.host_label)
