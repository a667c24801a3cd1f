"""One process's part in a run: what it records, and what it delivers itself.

Policy: starting is strict (a mistake in flags or role file raises before anything is made), the
rest is quiet. Which process delivers what is decided here, once:

- the primary delivers every journal that it sees and whose process does not deliver it itself;
- a process that sees the primary's run directory leaves delivery to it, unless it asked for a
  client of its own (policy `shared`, or `init_wandb_secondary`) and W&B is online;
- a process that does not see it keeps its journal in a directory of its own host (`outpost`).
"""

from __future__ import annotations

import logging
import os
import socket
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slime_logging.backends.table import require_packages, tracker_environment
from slime_logging.delivery.result import DeliveryResult
from slime_logging.delivery.spec import DeliverySpec
from slime_logging.hosts.relay import flush
from slime_logging.hosts.rendezvous import APPEAR_S, RunAddress, publish, see, tell_when_waiting
from slime_logging.hosts.roles import roles_that_never_joined
from slime_logging.layout.scope import (
    UNPREFIXED_ROLES,
    RoleConfig,
    has_own_values,
    late_values,
    own_values,
    possible_scopes,
    primary_scopes,
    process_label,
    run_roles,
    scope_of,
    to_json_mapping,
)
from slime_logging.record.entries import Opening
from slime_logging.record.journal import journal_name
from slime_logging.record.recorder import (
    RANK_EXPECTED,
    RANK_LATE,
    RANK_OWN,
    RANK_POSSIBLE,
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
from slime_logging.session.description import describe_run, redactor_of, shown_options
from slime_logging.session.naming import chosen_run_id
from slime_logging.session.outpost import Outpost
from slime_logging.session.process import calling_module, process_facts, rank_of, world_rank
from slime_logging.session.surprises import tell_all, tell_own
from slime_logging.settings.settings import Settings
from slime_logging.values.samples import samples_name

logger = logging.getLogger("slime_logging")

JOIN_WAIT_S = 30.0
"""How long a process that knows only the run's id waits for the primary to make the run."""

FLUSH_S = 10.0
"""How long the end of the primary waits for other hosts to bring what they have, seconds."""

NEVER_JOINED = (
    "slime_logging: expected of this job, and not in its run: role %s. If it ran on a host that"
    " does not see %s, bring its journal with: slime-logging merge COPY --into RUN"
)


class Session:
    """A process that takes part in a run. Made by `start_primary` or `join`.

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
        self.directory.locks.unlock()
        self._settle_with_other_hosts()
        if self._delivery is None:
            return []
        code = exit_code if self.is_primary else None
        return self._delivery.wait(code, self.settings.finish_timeout_s)

    def _settle_with_other_hosts(self) -> None:
        """Have the rows of hosts that do not see the run's directory brought to it; bounded."""
        if self.outpost is not None:
            text = self.outpost.wait(self.recorder.opening.journal)
            if text:
                logger.error("slime_logging: %s", text)
        elif self.is_primary:
            flush(self.address, FLUSH_S)
            tell_all(self.directory)
            absent = roles_that_never_joined(self.directory)
            if absent:
                logger.error(NEVER_JOINED, ", ".join(absent), self.directory.path)

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
            self._delivery = OwnDelivery(self.directory, run, spec, self._safe_text)

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

    def _safe_text(self, error: BaseException) -> str:
        return safe_exception_text(self.redactor, error)


def start_primary(args: Namespace, settings: Settings, role: str | None) -> Session:
    """Make the run, or continue it, and record the configuration of every role that is known.

    Raises:
        SettingsError, RoleConfigError, MissingBackendError: a mistake, before anything was made.
        RunConflictError: the run has a living primary.
        OSError: the run's directory cannot be made.
    """
    redactor = redactor_of(args, settings)
    require_packages(*settings.delivers)
    with chosen_run_id(args, settings, redactor) as run_id:
        return _primary(args, settings, role, redactor, settings.directory / run_id)


def _primary(
    args: Namespace, settings: Settings, role: str | None, redactor: Redactor, path: Path
) -> Session:
    scopes = primary_scopes(args, redactor, settings.logged_environment())
    possible = possible_scopes(args, redactor)
    directory = RunDirectory(path)
    directory.create()
    directory.locks.lock()
    try:
        run = directory.start(
            describe_run(directory.path.name, settings, run_roles(args), redactor)
        )
        opening = _opening(run, role, is_primary=True, rank=None)
        session = _session(args, settings, directory, opening, redactor)
    except BaseException:
        directory.locks.unlock()
        raise
    for rank, of_rank in ((RANK_EXPECTED, scopes), (RANK_POSSIBLE, possible)):
        for scope, values in of_rank.items():
            known = {"wandb_run_id": run.run_id} if "wandb_run_id" in values else {}
            session.recorder.config(scope, rank, {**values, **known})
    if scope_of(role) or isinstance(args, RoleConfig):
        session.recorder.config(scope_of(role, args), RANK_OWN, own_values(args, redactor))
    _record_process(session, args)
    session.recorder.config("", RANK_OWN, {"redacted_keys": list(redactor.hidden)})
    session.minted_id = None if settings.run_id else run.run_id
    publish(args, session.address)
    session.deliver(run, settings.delivers, is_shared=run.is_shared)
    return session


def join(
    args: Namespace,
    settings: Settings,
    role: str | None,
    address: RunAddress,
    *,
    wants_client: bool = False,
) -> Session:
    """Join a run that another process made, with the configuration of one role.

    Args:
        args: the role's own arguments.
        settings: of this process.
        role: None for a process without a configuration of its own.
        address: the run.
        wants_client: open a W&B client of this process's own, where W&B is online.

    Raises:
        MissingBackendError, SettingsError, OSError: as `start_primary`.
    """
    redactor = redactor_of(args, settings)
    directory, outpost = _visible_directory(address, settings), None
    if directory is not None:
        run = directory.read()
        wants_client = (
            (wants_client or settings.writer == "shared")
            and run.is_shared
            and settings.is_wandb_online
            and settings.is_delivering
        )
        delivers: tuple[str, ...] = ("wandb",) if wants_client else ()
    else:
        outpost = Outpost(args, address, settings, redactor)
        directory, run, delivers = outpost.directory, outpost.run, outpost.delivers
        require_packages(*delivers)
        outpost.tell(role)
    rank = rank_of(args) if role is not None else world_rank()
    opening = _opening(run, role, is_primary=False, rank=rank, delivers=delivers)
    try:
        session = _session(args, settings, directory, opening, redactor)
    except BaseException:
        directory.locks.unlock()
        raise
    session.outpost = outpost
    if has_own_values(role, args):
        values = own_values(args, redactor)
        session.recorder.config(scope_of(role, args), RANK_OWN, values)
        if role is not None and outpost is None and not isinstance(args, RoleConfig):
            tell_own(directory, opening, scope_of(role), values)
    _record_process(session, args)
    session.deliver(run, delivers, is_shared=run.is_shared)
    return session


def _visible_directory(address: RunAddress, settings: Settings) -> RunDirectory | None:
    if address.directory is not None:
        is_shared = os.access(address.directory.parent, os.X_OK)
        return see(address, APPEAR_S if is_shared else 0.0)
    place = Path(settings.directory) / address.run_id
    beside = RunAddress(run_id=address.run_id, directory=place)
    what = f"the run {address.run_id} in {place} (up to {JOIN_WAIT_S:.0f} s)"
    return tell_when_waiting(what, lambda: see(beside, JOIN_WAIT_S))


def _opening(
    run: RunFile,
    role: str | None,
    *,
    is_primary: bool,
    rank: int | None,
    delivers: tuple[str, ...] = (),
) -> Opening:
    return Opening(
        run_id=run.run_id,
        journal=journal_name(role or ("primary" if is_primary else calling_module()), rank),
        role=role,
        is_primary=is_primary,
        host=socket.gethostname(),
        pid=os.getpid(),
        start=run.num_starts,
        time_s=now_s(),
        delivers=delivers,
    )


def _session(
    args: Namespace,
    settings: Settings,
    directory: RunDirectory,
    opening: Opening,
    redactor: Redactor,
) -> Session:
    recorder = Recorder(directory, opening, redactor)
    return Session(args, settings, directory, recorder, redactor)


def _record_process(session: Session, args: Namespace) -> None:
    """The facts of this process: under `<role>/process/` for a role, else in one value under
    `process/`.
    """
    facts = session.redactor.config(to_json_mapping(process_facts(args)))
    role = session.role
    if role is None:
        journal = session.recorder.opening.journal
        label = "primary" if session.is_primary else process_label(facts, journal)
        session.recorder.config("", RANK_OWN, {f"process/{label}": dict(facts)})
    elif role in UNPREFIXED_ROLES:
        session.recorder.config(
            "", RANK_OWN, {f"{role}/process/{key}": value for key, value in facts.items()}
        )
    else:
        session.recorder.config(
            role, RANK_OWN, {f"process/{key}": value for key, value in facts.items()}
        )
