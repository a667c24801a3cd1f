"""A role that joined unexpectedly, and any with other values than expected, is told in the log.

Policy: slime's roles are expected where slime would start them, others where the role file names
them; in a job without a role file they are the job's own affair. The process that joins says it at
once, from the journals of its run's primary; of roles on other hosts, whose processes see no
primary, the primary says it at its end. Nothing raises but a run's directory that is gone.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from slime_logging.delivery.fold import ConfigFold
from slime_logging.layout.joined import SLIMES_ROLES, surprises, told
from slime_logging.record.entries import ConfigEntry, Opening, decode_config
from slime_logging.record.reading import openings, read_records
from slime_logging.record.recorder import RANK_OWN
from slime_logging.record.run import RunDirectory, now_s
from slime_logging.values.json_value import Json

logger = logging.getLogger("slime_logging")

UNEXPECTED = (
    "slime_logging: role %s joined a run that expected only %s. Its own arguments stand in the"
    " run's configuration. If it is meant to be there, %s."
)
REMEDIES = {
    True: "look at use_critic and advantage_estimator of the process that made the run",
    False: "give it an entry in the role file",
}
"""By whether it is a role of slime's."""

OTHERWISE = (
    "slime_logging: role %s runs with other arguments than the command line and the role file give:"
    " %s. The run shows what the role runs with."
)


def tell_own(
    directory: RunDirectory, opening: Opening, scope: str, values: Mapping[str, Json]
) -> None:
    """In a process that joins with a role: say what of it was not expected.

    Args:
        directory: the run's, with the primary's journal in it.
        opening: of this process.
        scope: of its role.
        values: its own, as recorded.
    """
    own = ConfigEntry(
        journal=opening.journal,
        start=opening.start,
        rank=RANK_OWN,
        time_s=now_s(),
        scope=scope,
        values=values,
    )
    paths = directory.journal_paths("primary-")
    _tell(directory, {opening.role or ""}, _folded(paths, opening.start, own))


def tell_all(directory: RunDirectory) -> None:
    """In the primary, at its end: the same of the roles of other hosts."""
    here, start = socket.gethostname(), directory.read().num_starts
    known = dict(openings(directory))
    elsewhere = {each.role for each in known.values() if each.role and each.host != here}
    if elsewhere:
        _tell(directory, elsewhere, _folded(known, start))


def _folded(paths: Iterable[Path], start: int, *more: ConfigEntry) -> ConfigFold:
    fold = ConfigFold()
    for path in paths:
        with suppress(OSError):
            for _, opening, record in read_records(path, has_rows=False):
                if opening.start != start:
                    break
                if record.get("kind") == "config":
                    with suppress(ValueError):
                        fold.add(decode_config(record, opening))
    for entry in more:
        fold.add(entry)
    return fold


def _tell(directory: RunDirectory, roles: set[str], fold: ConfigFold) -> None:
    expected = directory.read().roles
    config = fold.config(expected)
    found = surprises(config)
    has_file = bool(config.values.get("megatron_config_path"))
    for role in sorted(roles) if expected else ():
        is_slimes = role in SLIMES_ROLES
        is_known = role in expected if is_slimes else not has_file or fold.is_known(role)
        if not is_known:
            logger.warning(UNEXPECTED, role, " and ".join(expected), REMEDIES[is_slimes])
        if found.get(role):
            logger.warning(OTHERWISE, role, told(found[role]))
