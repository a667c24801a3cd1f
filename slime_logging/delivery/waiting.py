"""Waiting, bounded, until the cursors say that trackers have confirmed everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slime_logging.delivery.cursor import Cursor, read_cursors
from slime_logging.delivery.ending import read_ending
from slime_logging.delivery.result import DeliveryResult
from slime_logging.record.reading import count_rows
from slime_logging.record.run import RunDirectory

POLL_S = 0.05
START_S = 10.0
"""How long a delivery process may take from its start to its lock."""

NUM_RESTARTS = 2


@dataclass(frozen=True, kw_only=True)
class Awaited:
    """Whose word is waited for: the delivery with this label, by tracker the key of its place."""

    label: str
    start: int
    keys: Mapping[str, str]
    is_whole_run: bool
    started_s: float


def wait_until_confirmed(
    directory: RunDirectory, awaited: Awaited, timeout_s: float, restart: Callable[[], None]
) -> list[DeliveryResult]:
    """Wait until every tracker holds everything, or there is no more hope in this time.

    Args:
        directory: the run's.
        awaited: whose cursors are looked at.
        timeout_s: how long at most.
        restart: starts the delivery process again, where it was killed.

    Returns:
        How far each tracker is.
    """
    deadline_s = time.monotonic() + timeout_s
    num_restarts = 0
    while time.monotonic() < deadline_s:
        cursors = _cursors(directory, awaited)
        if all(cursor is not None and cursor.is_closed for cursor in cursors.values()):
            break
        if _is_gone(directory, awaited):
            has_ended = read_ending(directory, awaited.start) is not None
            is_refused = any(c is not None and c.state == "refused" for c in cursors.values())
            if num_restarts >= NUM_RESTARTS or (has_ended and is_refused):
                break
            num_restarts += 1
            restart()
            time.sleep(1.0)
        time.sleep(POLL_S)
    return [
        _result(directory, tracker, cursor)
        for tracker, cursor in _cursors(directory, awaited).items()
    ]


def _cursors(directory: RunDirectory, awaited: Awaited) -> dict[str, Cursor | None]:
    found = {cursor.destination: cursor for cursor in _own(directory, awaited)}
    return {tracker: found.get(key) for tracker, key in awaited.keys.items()}


def _own(directory: RunDirectory, awaited: Awaited) -> list[Cursor]:
    return [cursor for cursor in read_cursors(directory) if cursor.label == awaited.label]


def _is_gone(directory: RunDirectory, awaited: Awaited) -> bool:
    if time.monotonic() - awaited.started_s < START_S and not _own(directory, awaited):
        return False
    if awaited.is_whole_run:
        return not directory.locks.has_living_supervisor
    return not directory.locks.is_held(awaited.label)


def _result(directory: RunDirectory, tracker: str, cursor: Cursor | None) -> DeliveryResult:
    places = [] if cursor is None else list(cursor.places.values())
    num_confirmed = sum(place.num_confirmed for place in places)
    num_aside = 0 if cursor is None else cursor.num_set_aside
    is_closed = cursor is not None and cursor.is_closed
    num_rows = 0 if is_closed else sum(count_rows(path) for path in directory.journal_paths())
    return DeliveryResult(
        backend=tracker,
        state="unfinished" if cursor is None else cursor.state,
        reason="" if cursor is None else cursor.reason,
        num_confirmed=num_confirmed,
        num_left=max(0, num_rows - num_confirmed - num_aside),
        num_set_aside=num_aside,
    )
