"""Which roles a run expected, which of them are in its journals, and whether anything is."""

from __future__ import annotations

from slime_logging.record.reading import openings, read_rows
from slime_logging.record.run import RunDirectory


def roles_that_never_joined(directory: RunDirectory) -> tuple[str, ...]:
    """The roles that `run.json` names and no journal of the last start is of.

    The actor's arguments are the run's own, and a job of one process needs no actor beside its
    primary: it is missed only where another of these roles has joined.
    """
    run = directory.read()
    present = {each.role for _, each in openings(directory) if each.start == run.num_starts}
    has_others = bool(present & set(run.roles))
    return tuple(
        role for role in run.roles if role not in present and (role != "actor" or has_others)
    )


def has_rows(directory: RunDirectory) -> bool:
    """Whether a process of the job logged a row in the run's last start."""
    start = directory.read().num_starts
    return any(
        next(read_rows(path), None) is not None
        for path, opening in openings(directory)
        if opening.start == start and opening.role != "system"
    )
