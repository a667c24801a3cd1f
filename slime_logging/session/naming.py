"""Which run a primary makes or continues: the id that it was given, else what the job says.

Policy of `--tracking-run-id-from auto`: a run is continued only where the job itself says that this
is another start of it: a restart by its scheduler, agent or Ray; a start with the same command
after one that did not end well, in the same allocation; or a resume from its own checkpoints. In
every other case a new run is made: nobody's finished run is continued by accident, and no living
one.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from slime_logging.delivery.ending import find_ending, read_ending
from slime_logging.errors import RunNotFoundError, SettingsError
from slime_logging.hosts.checkpoints import Checkpoints, checkpoints_of
from slime_logging.hosts.election import Turn, turn
from slime_logging.hosts.identity import Job, job_of, jobs_of
from slime_logging.hosts.rendezvous import RunAddress
from slime_logging.hosts.workers import ask_workers
from slime_logging.record.run import RunDirectory, check_run_id, mint_run_id, newest_run
from slime_logging.redaction.placeholder import as_name
from slime_logging.redaction.redact import Redactor
from slime_logging.settings.settings import Settings

logger = logging.getLogger("slime_logging")

WORKERS_S = 30.0
"""How long a worker of torchrun waits for the one that makes the run, seconds."""

LET_GO_S = 10.0
"""How long a start that a scheduler ended may still hold the run's lock, seconds."""


@contextmanager
def chosen_run_id(args: Namespace, settings: Settings, redactor: Redactor) -> Iterator[str]:
    """The id of the run that this primary is to make or continue, as long as the block lasts: no
    other start of the same job chooses meanwhile.

    Args:
        args: of the job.
        settings: of this process.
        redactor: hides the secrets in the names of runs.

    Raises:
        SettingsError: the id cannot be one, or the job is not what `--tracking-run-id-from` says.
        OSError: the id cannot be kept beside the checkpoints, where that was asked for.
    """
    kind = settings.run_id_from
    if settings.run_id is not None:
        yield check_run_id(settings.run_id)
    elif kind == "none":
        yield _newest(settings, redactor) or mint_run_id()
    elif kind == "auto":
        with _chosen_by_itself(args, settings, redactor) as run_id:
            yield run_id
    elif kind == "checkpoint":
        kept = _checkpoints(args, settings, redactor)
        if kept is None:
            raise SettingsError("--tracking-run-id-from checkpoint: the job has no --save.")
        with turn(settings.directory, ("checkpoint", str(kept.place))):
            run_id = kept.run_id() or mint_run_id()
            kept.keep(run_id)
            yield run_id
    else:
        yield job_of(kind).run_id


def find_by_job(settings: Settings) -> RunAddress | None:
    """The run of the job that this process is part of, where nothing else names it; waits for a run
    that a worker of the same torchrun makes. None where the job does not say.

    Raises:
        SettingsError: the job is not what `--tracking-run-id-from` says.
    """
    kind = settings.run_id_from
    if settings.run_id is not None or kind == "none":
        return None
    if kind in ("slurm", "ray"):
        return RunAddress(run_id=job_of(kind).run_id)
    return ask_workers(settings.directory, WORKERS_S)


@contextmanager
def _chosen_by_itself(args: Namespace, settings: Settings, redactor: Redactor) -> Iterator[str]:
    with ExitStack() as stack:
        turns: list[tuple[Job, Turn]] = []
        for job in jobs_of():
            key = ("start", job.kind, *job.key, _part(job, settings))
            turns.append((job, stack.enter_context(turn(settings.directory, key))))
        kept = _checkpoints(args, settings, redactor)
        run_id = (
            next(filter(None, (_last_start(settings, job, mine) for job, mine in turns)), None)
            or _of_checkpoints(args, settings, kept)
            or _newest(settings, redactor)
            or mint_run_id()
        )
        for job, mine in turns:
            mine.leave(run_id, job.attempt)
        try:
            if kept is not None:
                kept.keep(run_id)
        except OSError as error:
            logger.debug("slime_logging: no id is kept beside the checkpoints: %s", error)
        yield run_id


def _part(job: Job, settings: Settings) -> str:
    """What tells programs of one job apart: their place in it, else what each is called with; and
    the names of the run.
    """
    place = (job.part,) if job.part else sys.argv
    words = (settings.project, settings.group or "", settings.name or "", *place)
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()


def _last_start(settings: Settings, job: Job, mine: Turn) -> str | None:
    """The run of the job's last start, where this is another start of the same."""
    run_id, attempt = mine.last()
    if run_id is None:
        return None
    directory = RunDirectory(settings.directory / run_id)
    try:
        run = directory.read()
    except RunNotFoundError:
        return None
    is_restart = attempt != job.attempt
    if not _is_let_go(directory, LET_GO_S if is_restart else 0.0):
        return None
    if is_restart:
        return run_id
    ending = read_ending(directory, run.num_starts) or find_ending(
        directory, run.num_starts, None, is_terminated=False
    )
    return run_id if ending.exit_code != 0 else None


def _of_checkpoints(args: object, settings: Settings, kept: Checkpoints | None) -> str | None:
    """The run that the checkpoints are of, where the job goes on from them."""
    if kept is None or not kept.is_resumed_by(args):
        return None
    run_id = kept.run_id()
    is_free = run_id is not None and _is_let_go(RunDirectory(settings.directory / run_id), 0.0)
    return run_id if is_free else None


def _is_let_go(directory: RunDirectory, wait_s: float) -> bool:
    deadline_s = time.monotonic() + wait_s
    while directory.locks.has_living_primary:
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(0.05)
    return True


def _newest(settings: Settings, redactor: Redactor) -> str | None:
    """With `--tracking-resume`, the newest run of the same project and group."""
    if not settings.is_resuming_newest:
        return None
    names = _names(settings, redactor)
    newest = newest_run(settings.directory, lambda run: (run.project, run.group) == names)
    return None if newest is None else newest.path.name


def _checkpoints(args: object, settings: Settings, redactor: Redactor) -> Checkpoints | None:
    return checkpoints_of(args, *_names(settings, redactor))


def _names(settings: Settings, redactor: Redactor) -> tuple[str, str | None]:
    """Project and group, as the runs' own descriptions have them."""
    group = settings.group
    project = as_name(redactor.text(settings.project))
    return project, None if group is None else as_name(redactor.text(group))
