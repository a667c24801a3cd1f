"""One process's part in a run: what it records, and what it delivers itself.

Policy: whatever is done with a session is quiet; its start (`starting`) is strict.
"""

from __future__ import annotations

import logging
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from slime_logging.backends.table import tracker_environment
from slime_logging.delivery.result import DeliveryResult
from slime_logging.delivery.spec import DeliverySpec
from slime_logging.errors import TrackingError
from slime_logging.hosts.relay import flush
from slime_logging.hosts.rendezvous import RunAddress
from slime_logging.hosts.roles import has_rows, roles_that_never_joined
from slime_logging.layout.scope import (
    late_values,
    scope_of,
)
from slime_logging.record.recorder import (
    RANK_LATE,
    Recorder,
)
from slime_logging.record.run import (
    RunDirectory,
    RunFile,
    now_s,
)
from slime_logging.record.samples import SampleStore, by_step
from slime_logging.redaction.redact import Redactor, safe_exception_text
from slime_logging.session.delivering import OwnDelivery, is_host_unattended
from slime_logging.session.description import shown_options
from slime_logging.session.outpost import Outpost
from slime_logging.session.surprises import tell_all
from slime_logging.settings.settings import Settings
from slime_logging.values.samples import samples_name

logger = logging.getLogger("slime_logging")

FLUSH_S = 30.0
"""How long the end of the primary waits for other hosts to bring what they have, seconds."""

ON_THEIR_WAY = (
    "slime_logging: rows of other hosts are still on their way to this run. They are kept there and"
    " brought on; what comes after this process has ended is delivered with: slime-logging sync %s"
)
NEVER_JOINED = (
    "slime_logging: expected of this job, and not in its run: role %s. If it ran on a host that"
    " does not see %s, bring its journal with: slime-logging merge COPY --into RUN"
)

NO_ROW = (
    "slime_logging: this run ends without a row in %s. `slime-logging doctor` in the job's"
    " environment says where its calls of tracking go; what hosts wrote that do not see this"
    " directory is brought to it by `slime-logging merge`."
)


class Session:
    """A process that takes part in a run. Made in `starting`.

    `log`, `log_config`, `finish` and `leave` never raise for a reason outside of the caller's own
    arguments.
    """

    def __init__(
        self,
        args: Namespace,
        settings: Settings,
        directory: RunDirectory,
        recorder: Recorder,
        redactor: Redactor,
    ) -> None:
        self.args = args
        self.known_args: tuple[object, ...] = (args,)
        self.minted_id: str | None = None
        self.settings = settings
        self.directory = directory
        self.recorder = recorder
        self.samples = SampleStore(directory.path, recorder.opening.journal, redactor)
        self.redactor = redactor
        self.is_finished = False
        self.begun_s = now_s()
        self.outpost: Outpost | None = None
        self._delivery: OwnDelivery | None = None

    @property
    def role(self) -> str | None:
        """The role that this process joined with."""
        return self.recorder.opening.role

    @property
    def is_primary(self) -> bool:
        """Whether this process made the run."""
        return self.recorder.opening.is_primary

    def log(self, metrics: Mapping[str, Any], step_key: str) -> None:
        """Record one row; it survives the death of this process from here on."""
        if not self.is_finished:
            self.recorder.row(metrics, step_key)

    def log_samples(self, samples: Sequence[Mapping[str, Any]], step_key: str) -> None:
        """Record a table of samples at each of its steps; `KeyError` without the step key."""
        if not self.is_finished:
            for step, of_step in by_step(samples, step_key):
                reference = self.samples.write(of_step)
                self.recorder.row({step_key: step, samples_name(step_key): reference}, step_key)

    def log_config(self, values: Mapping[str, Any], role: str | None) -> None:
        """Record configuration values that became known late."""
        if not self.is_finished:
            hidden = late_values(self.args, values, self.redactor)
            role = self.redactor.key(role) if role else self.role
            self.recorder.config(scope_of(role, self.args), RANK_LATE, hidden)

    def finish(self, exit_code: int) -> list[DeliveryResult]:
        """End this process's part with the code that it deserves, and wait, bounded, until the
        trackers have confirmed what is delivered for it.
        """
        if self.is_finished:
            return []
        self.is_finished = True
        self.recorder.finish(exit_code)
        with suppress(TrackingError, OSError):  # its directory is gone: what is left is delivered
            _settle_with_other_hosts(self, exit_code)
        self.directory.locks.unlock()  # the run is over for its delivery, which may end from now on
        if self._delivery is None:
            return []
        code = exit_code if self.is_primary else None
        return self._delivery.wait(code, self.settings.finish_timeout_s)

    @property
    def address(self) -> RunAddress:
        """The run's own address, also where this host keeps a directory of its own."""
        opening = self.recorder.opening
        if self.outpost is not None:
            return self.outpost.address
        return RunAddress(run_id=opening.run_id, directory=self.directory.path, start=opening.start)

    def leave(self, exit_code: int | None) -> None:
        """The process ends by itself, with a code that may be known only later: say that it does,
        and wait for nobody. Its locks go with it.
        """
        if not self.is_finished:
            self.is_finished = True
            self.recorder.finish(exit_code)
            if self._delivery is not None:
                self._delivery.leave(exit_code)

    def abandon(self) -> None:
        """In a forked child: let go of the parent's files."""
        self.is_finished = True
        self.recorder.journal.abandon()
        self.directory.locks.unlock()

    def deliver(self, run: RunFile, trackers: tuple[str, ...], *, is_shared: bool) -> None:
        """Start the delivery to these trackers, of the whole run in the primary, else of the own
        journals; without any, look after this host if nobody does.
        """
        spec = self._spec(run, trackers, is_shared=is_shared)
        if trackers or self.is_primary or is_host_unattended(self.directory, run, spec):
            self._delivery = OwnDelivery(
                self.directory, run, spec, partial(safe_exception_text, self.redactor)
            )

    def _spec(self, run: RunFile, trackers: tuple[str, ...], *, is_shared: bool) -> DeliverySpec:
        opening = self.recorder.opening
        options = {**self.settings.options, **shown_options(self.settings, self.redactor)}
        return DeliverySpec(
            directory=str(self.directory.path),
            trackers=trackers,
            label=opening.journal,
            start=run.num_starts,
            host=opening.host,
            host_label=self.redactor.text(opening.host),
            pid=opening.pid,
            is_primary=self.is_primary,
            finish_timeout_s=self.settings.finish_timeout_s,
            is_shared=is_shared,
            only=opening.journal if trackers and not self.is_primary else None,
            interval_s=self.settings.system_metrics_s,
            options=options,
            environment={name: tracker_environment(name) for name in trackers},
        )


def _settle_with_other_hosts(session: Session, exit_code: int) -> None:
    """Have the rows of hosts that do not see the run's directory brought to it; bounded."""
    if session.outpost is not None:
        text = session.outpost.wait(session.recorder.opening.journal)
        if text:
            logger.error("slime_logging: %s", text)
    elif session.is_primary:
        if not flush(session.address, min(FLUSH_S, session.settings.finish_timeout_s)):
            logger.error(ON_THEIR_WAY, shlex.quote(str(session.directory.path)))
        tell_all(session.directory)
        absent = roles_that_never_joined(session.directory)
        if absent:
            logger.error(NEVER_JOINED, ", ".join(absent), session.directory.path)
        if exit_code == 0 and session.directory.read().roles and not has_rows(session.directory):
            logger.warning(NO_ROW, session.directory.path)
