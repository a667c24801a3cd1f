"""What a relay leaves beside the journals that it carries, for the processes of its host.

Policy: a file, so that a training process asks no actor how far its rows are.
"""

from __future__ import annotations

import logging
import shlex
import socket
import time
from pathlib import Path

import msgspec

from slime_logging.record.journal import SUFFIX
from slime_logging.record.run import RunDirectory, write_whole

logger = logging.getLogger("slime_logging")

STATUS_FILE = "relay.json"
MAX_STATUS_BYTES = 64 * 2**20


class RelayStatus(msgspec.Struct):
    """How many bytes the run's own directory holds of each file, by name; why there are not more;
    and which files it can never take, and why.
    """

    confirmed: dict[str, int]
    problem: str = ""
    refused: dict[str, str] = {}


def write_status(directory: Path, status: RelayStatus) -> bool:
    """Leave it in the directory; whether that was possible."""
    try:
        write_whole(directory / STATUS_FILE, msgspec.json.encode(status))
    except OSError as error:
        logger.debug("slime_logging: %s: %s", STATUS_FILE, error)
        return False
    return True


def read_status(directory: Path) -> RelayStatus:
    """What the relay of this directory said last; nothing confirmed when it has said nothing."""
    try:
        with (directory / STATUS_FILE).open("rb") as file:
            return msgspec.json.decode(file.read(MAX_STATUS_BYTES), type=RelayStatus)
    except FileNotFoundError:
        return RelayStatus(confirmed={}, problem="no relay has said anything here yet")
    except (OSError, msgspec.MsgspecError) as error:
        return RelayStatus(confirmed={}, problem=str(error))


def wait_until_carried(directory: RunDirectory, journal: str, timeout_s: float) -> str:
    """Wait until the run's own directory holds all of a journal that is finished.

    Args:
        directory: the one on this host.
        journal: the journal's name.
        timeout_s: the longest time to wait, seconds.

    Returns:
        "" when it does, else why it does not yet.
    """
    path = directory.journals / (journal + SUFFIX)
    name = f"journals/{path.name}"
    deadline = time.monotonic() + timeout_s
    while True:
        status = read_status(directory.path)
        try:
            if status.confirmed.get(name, 0) >= path.stat().st_size:
                return ""
        except OSError as error:
            return error.strerror or str(error)
        if name in status.refused:
            return status.refused[name]
        if time.monotonic() >= deadline:
            return status.problem or "the relay is behind"
        time.sleep(0.05)


def bring_by_hand(directory: Path, why: str = "") -> str:
    """Where rows wait on this host, why, and the commands that bring them."""
    place = shlex.quote(str(directory))
    return (
        f"rows of this run wait on host {socket.gethostname()} in {directory}"
        f"{f' ({why})' if why else ''}. Nothing is lost. While a Ray cluster of both hosts is up,"
        f" bring them with: slime-logging push {place}   Otherwise copy the directory to the run's"
        " host, and there: slime-logging merge COPY --into RUN"
    )
