"""Make the run or join it, whoever comes first.

Policy: a run is known by its id, else by its project, group and name as long as it lives, else by
the job that this process is part of. Under Ray one process of the cluster decides, on a host or a
shared directory a lock file does; so there is one primary, whatever the race. A process that has
nothing in common with others makes a run of its own.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from slime_logging.errors import RunConflictError, RunNotFoundError, SettingsError
from slime_logging.hosts.election import Key, ask_in_ray, claim_in_ray, turn
from slime_logging.hosts.identity import jobs_of
from slime_logging.hosts.rendezvous import ENV_TOKEN, RunAddress, tell_when_waiting
from slime_logging.layout.scope import RoleConfig
from slime_logging.record.entries import Opening
from slime_logging.record.journal import is_written
from slime_logging.record.reading import read_opening
from slime_logging.record.run import RunDirectory, check_run_id, mint_run_id
from slime_logging.session.session import Session
from slime_logging.session.starting import JOIN_WAIT_S, join, start_primary
from slime_logging.settings.settings import Settings

POLL_S = 0.1

logger = logging.getLogger("slime_logging")


def meet(
    args: RoleConfig, settings: Settings, *, make: bool | None, is_resuming: bool
) -> tuple[Session, Any]:
    """Make the run or join it.

    Args:
        args: of this process.
        settings: of this process.
        make: True: make the run; False: join it, waiting for it up to `JOIN_WAIT_S`; None: whatever
            comes first.
        is_resuming: continue the last run that was made under this name.

    Returns:
        The session, and what this process must keep while it is in the run.

    Raises:
        RunConflictError: `make` is True, and the run has a living primary.
        RunNotFoundError: `make` is False, and there is no run.
        SettingsError, MissingBackendError, OSError: as `start_primary`.
    """
    settings = _with_token(settings, os.environ)
    key = identity(settings, os.environ)
    if key is None:
        if make is False:
            raise SettingsError(
                f"make=False, but nothing says which run: give name= or id=, or set {ENV_TOKEN}."
            )
        return _made(args, settings), None
    what = f"the run {' '.join(key[1:])!r}, which is not in {settings.directory} yet"
    return tell_when_waiting(what, lambda: _meet_in_time(args, settings, key, make, is_resuming))


def _meet_in_time(
    args: RoleConfig, settings: Settings, key: Key, make: bool | None, is_resuming: bool
) -> tuple[Session, Any]:
    deadline = time.monotonic() + JOIN_WAIT_S
    while True:
        found = _in_ray(args, settings, key, make, is_resuming) if _is_ray_up() else None
        if found is None and (make is False or not _is_ray_up()):
            session = _here(args, settings, key, make, is_resuming)
            found = None if session is None else (session, None)
        if found is not None:
            return found
        if time.monotonic() >= deadline:
            raise RunNotFoundError(
                f"no process has made the run {' '.join(key[1:])!r} within {JOIN_WAIT_S:.0f} s"
                f" (looked in {settings.directory})."
            )
        time.sleep(POLL_S)


def identity(settings: Settings, environ: Mapping[str, str]) -> Key | None:
    """What tells this run from all others: its id, its name, or the job; None where nothing
    does.
    """
    if settings.run_id is not None:
        return ("id", check_run_id(settings.run_id))
    if settings.name is not None:
        return ("name", settings.project, settings.group or "", settings.name)
    jobs = jobs_of(environ)
    for job in sorted(jobs, key=lambda job: job.kind != "ray"):  # all of it, where Ray spans it
        step = environ.get("SLURM_STEP_ID", "") if job.kind == "slurm" else ""
        return ("job", settings.project, job.kind, *job.key, step)
    return None


def _same_job(environ: Mapping[str, str]) -> str:
    """What the processes that one `torchrun` or `srun` starts have in common, those that it starts
    again included; "" elsewhere.

    One of them may have ended before another begins; the run is theirs all the same.
    """
    for job in jobs_of(environ):
        if job.kind == "torchelastic":
            return " ".join(job.key)
        if job.kind == "slurm" and environ.get("SLURM_STEP_ID"):
            return " ".join((*job.key, environ["SLURM_STEP_ID"]))
    return ""


def _with_token(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The run that `SLIME_LOGGING_RUN` names, unless the code names one by its id."""
    token = environ.get(ENV_TOKEN)
    if not token or settings.run_id is not None:
        return settings
    address = RunAddress.of_token(token)
    directory = settings.directory if address.directory is None else address.directory.parent
    return replace(settings, run_id=address.run_id, directory=directory)


def _here(
    args: RoleConfig, settings: Settings, key: Key, make: bool | None, is_resuming: bool
) -> Session | None:
    """Make or join the run in the tracking directory; None where there is none and it may not be
    made.
    """
    with turn(settings.directory, key) as mine:
        last, its_job = mine.last()
        run_id, job = settings.run_id or last, _same_job(os.environ)
        living = None if run_id is None else _living(settings.directory / run_id)
        if living is not None:
            _refuse_to_make(make, key, living.directory)
            return _joined(args, settings, key, living)
        if make is False:
            return None
        if settings.run_id is None:
            is_same_job = bool(job) and job == its_job
            run_id = run_id if run_id and (is_resuming or is_same_job) else mint_run_id()
            mine.leave(run_id, job)
        return _made(args, replace(settings, run_id=run_id))


def _in_ray(
    args: RoleConfig, settings: Settings, key: Key, make: bool | None, is_resuming: bool
) -> tuple[Session, Any] | None:
    """Make or join the run in a Ray cluster; None where that is to be tried again."""
    desk = None if make is False else claim_in_ray(key)
    if desk is None:
        address = ask_in_ray(key, JOIN_WAIT_S)
        if address is None:
            return None
        _refuse_to_make(make, key, address.directory)
        return _joined(args, settings, key, address), None
    session = _here(args, settings, key, make, is_resuming)
    if session is None:
        return None
    desk.tell.remote(session.address.to_token())
    return session, desk


def _made(args: RoleConfig, settings: Settings) -> Session:
    session = start_primary(args, settings, args.role)
    print(f"slime_logging: run {session.directory.path}", file=sys.stderr, flush=True)
    return session


def _joined(args: RoleConfig, settings: Settings, key: Key, address: RunAddress) -> Session:
    """Join; and where only a name says that it is this run, tell whose it is: it may be another
    job's.
    """
    session = join(args, settings, args.role, address)
    if key[0] == "name":
        text = f"joined the run {session.directory.path}, which has the name {key[-1]!r} and lives"
        print(f"slime_logging: {text}", file=sys.stderr, flush=True)
        others = [] if hasattr(args, "rank") else _who_logs_as(args.role, session)
        if others:
            logger.warning(
                "slime_logging: %s on %s logs as %s in this run already. If that is another job,"
                " give this one a name= or id= of its own; make=True refuses to join.",
                f"process {others[0].pid}" + (", like others," if others[1:] else ""),
                others[0].host,
                f"role {args.role!r}" if args.role else "a process without a role",
            )
    return session


def _who_logs_as(role: str | None, session: Session) -> list[Opening]:
    """The other living processes of this role."""
    mine = session.recorder.opening.journal
    paths = [path for path in session.directory.journal_paths() if path.stem != mine]
    found = [read_opening(path) for path in paths if is_written(path)]
    return [one for one in found if one and one.role == role and one.owner is None]


def _refuse_to_make(make: bool | None, key: Key, where: Path | None) -> None:
    if make:
        raise RunConflictError(
            f"make=True, but the run {' '.join(key[1:])!r} lives already in {where}. Join it with"
            " make=None, give another name= or id=, or end its processes first."
        )


def _living(path: Path) -> RunAddress | None:
    """The run in a directory if a process of it lives."""
    directory = RunDirectory(path)
    is_written_to = any(is_written(journal) for journal in directory.journal_paths())
    if not is_written_to and not directory.locks.has_living_primary:
        return None
    run = directory.read()
    if run.outpost_of is not None:
        return RunAddress.of_token(run.outpost_of)
    return RunAddress(run_id=path.name, directory=directory.path, start=run.num_starts)


def _is_ray_up() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())
