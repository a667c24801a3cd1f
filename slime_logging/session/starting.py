"""A process's start in a run: as its primary, or joining it.

Policy: strict. A mistake in flags or role file raises before anything is made. Which process
delivers what is decided here, once:

- the primary delivers every journal that it sees and whose process does not deliver it itself;
- a process that sees the primary's run directory leaves delivery to it, unless it asked for a
  client of its own (policy `shared`, or `init_wandb_secondary`) and W&B is online;
- a process that does not see it keeps its journal in a directory of its own host (`outpost`).
"""

from __future__ import annotations

import os
import socket
from argparse import Namespace
from pathlib import Path

from slime_logging.backends.table import require_packages
from slime_logging.hosts.rendezvous import APPEAR_S, RunAddress, publish, see, tell_when_waiting
from slime_logging.layout.scope import (
    UNPREFIXED_ROLES,
    RoleConfig,
    has_own_values,
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
    RANK_OWN,
    RANK_POSSIBLE,
    Recorder,
)
from slime_logging.record.run import (
    RunDirectory,
    RunFile,
    now_s,
)
from slime_logging.redaction.redact import Redactor
from slime_logging.session.description import describe_run, redactor_of
from slime_logging.session.naming import chosen_run_id
from slime_logging.session.outpost import Outpost
from slime_logging.session.process import calling_module, process_facts, rank_of, world_rank
from slime_logging.session.session import Session
from slime_logging.session.surprises import tell_own
from slime_logging.settings.settings import Settings

JOIN_WAIT_S = 30.0
"""How long a process that knows only the run's id waits for the primary to make the run."""


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
        delivers = _own_trackers(settings, run, wants_client=wants_client)
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
    _record_own_values(session, args)
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
        rewind=run.rewind,
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


def _own_trackers(settings: Settings, run: RunFile, *, wants_client: bool) -> tuple[str, ...]:
    """What a process delivers itself although it sees the run: W&B, where it asked for that."""
    is_wanted = wants_client or settings.writer == "shared"
    can_be = run.is_shared and settings.is_wandb_online and settings.is_delivering
    return ("wandb",) if is_wanted and can_be else ()


def _record_own_values(session: Session, args: Namespace) -> None:
    role = session.role
    if has_own_values(role, args):
        values = own_values(args, session.redactor)
        session.recorder.config(scope_of(role, args), RANK_OWN, values)
        if role is not None and session.outpost is None and not isinstance(args, RoleConfig):
            tell_own(session.directory, session.recorder.opening, scope_of(role), values)


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
