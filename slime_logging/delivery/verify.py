"""Whether a tracker holds what the journals hold: row by row and key by key, in the tracker's own
precision.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from slime_logging.backends.base import Backend, Readable, ShowsMedia
from slime_logging.backends.process import backend_of_anyone
from slime_logging.delivery.digests import difference, digest_of, digests_of
from slime_logging.delivery.rewind import Rewinds, dropper, rewinds_of
from slime_logging.delivery.status import journal_config, journal_rows
from slime_logging.record.reading import UnreadableJournal, survey
from slime_logging.record.run import RunDirectory
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunFacts


@dataclass(frozen=True, kw_only=True)
class ConfigDifference:
    """A configuration key that the tracker does not hold as it should; `held` is None with
    `is_missing`.
    """

    key: str
    expected: Json
    held: Json
    is_missing: bool


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What `verify` found. `missing` rows lack at least one point; `doubled` and `unknown` points
    are there too often, or by no row.

    `media` names the samples and images that are not there as they were logged, of `num_media`.
    `num_points` counts what the tracker should hold (W&B and TensorBoard: one a row, MLflow: one a
    metric). `num_dropped` rows are in the journals alone: the tracker dropped them for those of a
    later start.
    """

    backend: str
    num_rows: int
    num_points: int
    missing: tuple[Row, ...]
    doubled: tuple[Point, ...]
    unknown: tuple[Point, ...]
    config: tuple[ConfigDifference, ...]
    num_keys: int
    media: tuple[str, ...] = ()
    num_media: int = 0
    num_dropped: int = 0
    unreadable: tuple[UnreadableJournal, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Nothing lost, nothing doubled, nothing different, and every journal could be read."""
        wrong = self.missing or self.doubled or self.unknown or self.config or self.media
        return not (wrong or self.unreadable)


def verify(directory: RunDirectory, backend: str, facts: RunFacts) -> Verdict:
    """Read a tracker back and compare it with the journals; changes nothing.

    Raises:
        NotReadable: this tracker cannot be read back.
        TryAgain, WillNeverWork: it could not be read now, or refuses it.
    """
    tracker = backend_of_anyone(backend)
    readable = cast(Readable, tracker)
    # The tracker first: of a running job, what it holds is then in the journals too.
    held = digests_of(readable.read_points(facts))
    rows = _Shown(directory, tracker)
    counts = [0, 0]
    expected = digests_of(_counted_points(rows, readable, counts))
    if getattr(tracker, "merges_equal_points", False):
        expected = array("Q", set(expected))
    lacking, extra = difference(expected, held)
    wanted = _wanted_config(directory, readable, facts.roles)
    extras = [p for p in readable.read_points(facts) if digest_of(p) in extra] if extra else []
    known = set(expected) if extras else set()
    media, num_media = _media_lacking(rows, tracker, facts)
    return Verdict(
        backend=backend,
        num_rows=counts[0],
        num_points=counts[1],
        missing=tuple(_rows_lacking(rows, readable, lacking)),
        doubled=tuple({p: None for p in extras if digest_of(p) in known}),
        unknown=tuple({p: None for p in extras if digest_of(p) not in known}),
        config=_differences(wanted, readable.read_config(facts)),
        num_keys=len(wanted),
        media=media,
        num_media=num_media,
        num_dropped=rows.num_dropped,
        unreadable=survey(directory)[1],
    )


class _Shown:
    """The rows that a tracker should show: all, or where it drops those that a later start
    replaced, the others; `num_dropped` of the last pass.
    """

    def __init__(self, directory: RunDirectory, tracker: Backend) -> None:
        self._directory = directory
        self._rewinds = rewinds_of(directory) if dropper(tracker) else Rewinds()
        self.num_dropped = 0

    def __iter__(self) -> Iterator[Row]:
        self.num_dropped = 0
        for row in journal_rows(self._directory):
            if self._rewinds.is_replaced(row):
                self.num_dropped += 1
            else:
                yield row


def _counted_points(rows: _Shown, readable: Readable, counts: list[int]) -> Iterator[Point]:
    for row in rows:
        points = readable.points(row)
        counts[0] += 1
        counts[1] += len(points)
        yield from points


def _rows_lacking(rows: _Shown, readable: Readable, lacking: set[int]) -> Iterator[Row]:
    """The rows of which the tracker lacks a point; the journals are read again for them."""
    for row in rows if lacking else ():
        if any(digest_of(point) in lacking for point in readable.points(row)):
            yield row


def _wanted_config(
    directory: RunDirectory, readable: Readable, roles: tuple[str, ...]
) -> dict[str, Json]:
    """What the tracker should hold. Of directories that are not merged yet only what one of them
    knows: each host delivered its own, and none could compare it with the others'.
    """
    wanted = readable.config_as_held(journal_config(directory, roles))
    if len(directory.parts) == 1:
        return wanted
    held = [readable.config_as_held(journal_config(part, roles)) for part in directory.parts]
    return {key: wanted[key] for each in held for key in each if key in wanted}


def _media_lacking(rows: _Shown, tracker: Backend, facts: RunFacts) -> tuple[tuple[str, ...], int]:
    """Which samples and images the tracker lacks, or holds otherwise, and how many it should
    hold.
    """
    if not hasattr(tracker, "read_media"):
        return (), 0
    shows = cast(ShowsMedia, tracker)
    expected = {
        mark: f"{name} ({row.step_key} = {row.step})"
        for row in rows
        if any(isinstance(value, dict) for value in row.metrics.values())
        for name, mark in shows.media(row, facts).items()
    }
    held = set(shows.read_media(facts)) if expected else set()
    return tuple(text for mark, text in expected.items() if mark not in held), len(expected)


def _differences(wanted: dict[str, Json], held: dict[str, Json]) -> tuple[ConfigDifference, ...]:
    return tuple(
        ConfigDifference(key=key, expected=value, held=held.get(key), is_missing=key not in held)
        for key, value in sorted(wanted.items())
        if key not in held or held[key] != value
    )
