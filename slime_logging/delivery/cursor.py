"""How far a delivery has come: one small file per tracker and delivering process, replaced as a
whole.

Policy: `confirmed` is what the tracker certainly holds, `handed` what its client was given. They
differ for clients with a queue of their own, and after a crash only `confirmed` counts: what lies
between is looked up in the tracker before it is sent again. A cursor that was not closed says that
such a look is needed, until a later one that absorbed it was closed. The cursor of a process that
delivers its own journals speaks for these alone, and is absorbed only by one that takes them over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import orjson

from slime_logging.record.run import RunDirectory, now_s, write_whole

MAX_CURSOR_BYTES = 64 * 2**20


@dataclass
class Place:
    """Where one journal stands: byte offsets behind the last record, and how many rows before each
    were taken, and how many set aside.
    """

    confirmed: int = 0
    handed: int = 0
    num_confirmed: int = 0
    num_handed: int = 0
    num_aside: int = 0
    num_aside_confirmed: int = 0


@dataclass
class Cursor:
    """The state of one delivery to one destination (see `backends.destination`).

    `state` is one word (opening, delivering, waiting, refused, closed); `reason` says why. `only`
    names the process whose own journals it delivers, "" where it delivers all of the run. `page` is
    the run's address at a server, as its client told it. `is_careful`: the tracker refused
    something, and rows are handed over one by one to find out which.
    """

    backend: str
    destination: str
    label: str
    state: str = "opening"
    reason: str = ""
    is_closed: bool = False
    only: str = ""
    updated_s: float = 0.0
    places: dict[str, Place] = field(default_factory=dict)
    absorbed: list[str] = field(default_factory=list)
    page: str = ""
    is_careful: bool = False

    def place(self, journal: str) -> Place:
        """The place in a journal, from its start when it is new."""
        return self.places.setdefault(journal, Place())

    @property
    def num_set_aside(self) -> int:
        """Rows that the tracker refused for good."""
        return sum(place.num_aside for place in list(self.places.values()))

    def hand(
        self, journal: str, offset: int, num_rows: int, num_aside: int, *, is_confirmed: bool
    ) -> None:
        """Note that of what lies before `offset`, `num_rows` rows more than before are with the
        client, and so many more set aside.
        """
        place = self.place(journal)
        place.handed, place.num_handed, place.num_aside = (
            offset,
            place.num_handed + num_rows,
            place.num_aside + num_aside,
        )
        if is_confirmed:
            _confirm(place)

    def confirm(self) -> None:
        """Note that the tracker holds all that was handed over."""
        for place in self.places.values():
            _confirm(place)

    def take_back(self) -> None:
        """Note that of what was handed over and not confirmed, nothing is certain."""
        for journal in list(self.places):
            self.places[journal] = _at_confirmed(self.places[journal])

    def save(self, directory: RunDirectory) -> None:
        """Replace the cursor's file."""
        self.updated_s = now_s()
        write_whole(
            directory.delivery / f"{self.destination}@{self.label}.json", orjson.dumps(self)
        )


def read_cursors(directory: RunDirectory, destination: str | None = None) -> list[Cursor]:
    """Every cursor of a destination (None: of all) that can be read, in the order of their last
    change; in all `MAX_CURSOR_BYTES` at most.
    """
    cursors = []
    num_bytes = 0
    for path in sorted(directory.delivery.glob("*@*.json")):
        try:
            if (
                path.is_symlink()
                or not path.is_file()
                or num_bytes + path.stat().st_size > MAX_CURSOR_BYTES
            ):
                continue
            data = path.read_bytes()
            num_bytes += len(data)
            cursor = msgspec.json.decode(data, type=Cursor)
        except (OSError, msgspec.MsgspecError):
            continue
        if destination in (None, cursor.destination):
            cursors.append(cursor)
    return sorted(cursors, key=lambda cursor: cursor.updated_s)


def next_cursor(
    backend: str, destination: str, label: str, before: Iterable[Cursor], *, only: str = ""
) -> tuple[Cursor, bool]:
    """A cursor that goes on where the earlier ones ended, and whether the tracker must be looked at
    first.

    Args:
        backend: the tracker.
        destination: where its rows go.
        label: the new delivery's label.
        before: all earlier cursors of the destination for this run.
        only: the process whose own journals are delivered: nobody but a process of the same label
            can have delivered any of them.
    """
    cursor = Cursor(backend=backend, destination=destination, label=label, only=only)
    earlier = [old for old in before if not only or old.label == label]
    settled = _settled(earlier)
    for old in earlier:
        for journal in old.places:
            _adopt_place(cursor, journal, old)
        if not old.only:
            cursor.absorbed.append(old.label)
        cursor.is_careful |= old.is_careful and old.label == label
    return cursor, any(
        not old.is_closed and (bool(only) or not old.only) and old.label not in settled
        for old in earlier
    )


def adopt(
    cursor: Cursor,
    journal: str,
    owner: str,
    before: Iterable[Cursor],
    *,
    trusts_places: bool = True,
) -> bool:
    """Take over a journal that its process, now gone, delivered itself; whether the tracker must be
    looked at first. So it must where nothing here says how far that process was: its cursor may
    have stayed on another host.

    Args:
        cursor: the one that takes over.
        journal: the journal's name.
        owner: the name of its process's main journal.
        before: the cursors of the destination as they are now.
        trusts_places: False for a delivery that trusts no cursor.
    """
    earlier = list(before)
    settled = _settled(earlier)
    ours = [old for old in earlier if old.only == owner]
    must_look = not ours and journal not in cursor.places
    for old in ours:
        if trusts_places and journal in old.places:
            _adopt_place(cursor, journal, old)
        if old.label not in cursor.absorbed:
            cursor.absorbed.append(old.label)
        must_look |= not old.is_closed and old.label not in settled
    return must_look


def _settled(cursors: Iterable[Cursor]) -> set[str]:
    return {name for cursor in cursors if cursor.is_closed for name in cursor.absorbed}


def _adopt_place(cursor: Cursor, journal: str, old: Cursor) -> None:
    if old.places[journal].confirmed >= cursor.place(journal).confirmed:
        cursor.places[journal] = _at_confirmed(old.places[journal])


def _confirm(place: Place) -> None:
    place.confirmed, place.num_confirmed, place.num_aside_confirmed = (
        place.handed,
        place.num_handed,
        place.num_aside,
    )


def _at_confirmed(place: Place) -> Place:
    rows, aside = place.num_confirmed, place.num_aside_confirmed
    return Place(place.confirmed, place.confirmed, rows, rows, aside, aside)
