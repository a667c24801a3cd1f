"""How far a delivery has come: one small file per tracker and delivering process, replaced as a whole.

Policy: `confirmed` is what the tracker certainly holds, `handed` what its client was given. They differ for clients with a queue
of their own, and after a crash only `confirmed` counts: what lies between is looked up in the tracker before it is sent again.
A cursor that was not closed says that such a look is needed, until a later one that absorbed it was closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import orjson

from slime_logging.record.run import RunDirectory, now_s, write_whole

MAX_CURSOR_BYTES = 64 * 2**20


@dataclass
class Place:
    """Where one journal stands: byte offsets behind the last record, and how many rows lie before each."""

    confirmed: int = 0
    handed: int = 0
    num_confirmed: int = 0
    num_handed: int = 0


@dataclass
class Cursor:
    """The state of one delivery to one destination (see `backends.destination`). `state` is one word (opening, delivering, waiting, refused, closed); `reason` says why."""

    backend: str
    destination: str
    label: str
    state: str = "opening"
    reason: str = ""
    is_closed: bool = False
    num_set_aside: int = 0
    updated_s: float = 0.0
    places: dict[str, Place] = field(default_factory=dict)
    absorbed: list[str] = field(default_factory=list)

    def place(self, journal: str) -> Place:
        """The place in a journal, from its start when it is new."""
        return self.places.setdefault(journal, Place())

    def hand(self, journal: str, offset: int, num_rows: int, *, is_confirmed: bool) -> None:
        """Note that everything before `offset`, `num_rows` rows more than before, is with the client."""
        place = self.place(journal)
        place.handed, place.num_handed = offset, place.num_handed + num_rows
        if is_confirmed:
            place.confirmed, place.num_confirmed = offset, place.num_handed

    def confirm(self) -> None:
        """Note that the tracker holds all that was handed over."""
        for place in self.places.values():
            place.confirmed, place.num_confirmed = place.handed, place.num_handed

    def save(self, directory: RunDirectory) -> None:
        """Replace the cursor's file."""
        self.updated_s = now_s()
        write_whole(directory.delivery / f"{self.destination}@{self.label}.json", orjson.dumps(asdict(self)))


def read_cursors(directory: RunDirectory, destination: str | None = None) -> list[Cursor]:
    """Every cursor of a destination (None: of all) that can be read, in the order of their last change."""
    cursors = []
    for path in sorted(directory.delivery.glob("*@*.json")):
        try:
            if path.is_symlink() or path.stat().st_size > MAX_CURSOR_BYTES:
                continue
            cursor = msgspec.json.decode(path.read_bytes(), type=Cursor)
        except (OSError, msgspec.MsgspecError):
            continue
        if destination in (None, cursor.destination):
            cursors.append(cursor)
    return sorted(cursors, key=lambda cursor: cursor.updated_s)


def next_cursor(backend: str, destination: str, label: str, before: Iterable[Cursor]) -> tuple[Cursor, bool]:
    """A cursor that goes on where the earlier ones ended, and whether the tracker must be looked at first.

    Args:
        backend: the tracker.
        destination: where its rows go.
        label: the new delivery's label.
        before: all earlier cursors of the destination for this run.
    """
    cursor = Cursor(backend=backend, destination=destination, label=label)
    earlier = list(before)
    settled = {name for old in earlier if old.is_closed for name in old.absorbed}
    for old in earlier:
        cursor.absorbed.append(old.label)
        for journal, place in old.places.items():
            mine = cursor.place(journal)
            if place.confirmed >= mine.confirmed:
                cursor.places[journal] = Place(place.confirmed, place.confirmed, place.num_confirmed, place.num_confirmed)
    must_look = any(not old.is_closed and old.label not in settled for old in earlier)
    return cursor, must_look
