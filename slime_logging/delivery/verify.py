"""Whether a tracker holds what the journals hold: row by row and key by key, in the tracker's own
precision.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import cast

from slime_logging.backends import new_backend
from slime_logging.backends.base import Readable
from slime_logging.delivery.status import journal_config, journal_rows
from slime_logging.errors import TrackingError
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

    `num_points` counts what the tracker should hold (W&B and TensorBoard: one a row, MLflow: one a
    metric).
    """

    backend: str
    num_rows: int
    num_points: int
    missing: tuple[Row, ...]
    doubled: tuple[Point, ...]
    unknown: tuple[Point, ...]
    config: tuple[ConfigDifference, ...]
    num_keys: int

    @property
    def is_equal(self) -> bool:
        """Nothing lost, nothing doubled, nothing different."""
        return not (self.missing or self.doubled or self.unknown or self.config)


def verify(directory: RunDirectory, backend: str, facts: RunFacts) -> Verdict:
    """Read a tracker back and compare it with the journals; changes nothing.

    Raises:
        TrackingError: this tracker cannot be read back.
        TryAgain, WillNeverWork: it could not be read now, or refuses it.
    """
    tracker = new_backend(backend)
    if not hasattr(tracker, "read_points"):
        raise TrackingError(f"{backend} cannot be read back; only its own page can tell.")
    readable = cast(Readable, tracker)
    # The tracker first: of a running job, what it holds is then in the journals too.
    held = Counter(readable.read_points(facts))
    rows = list(journal_rows(directory))
    points = [readable.points(row) for row in rows]
    expected = Counter(point for of_row in points for point in of_row)
    lacking = expected - held
    extra = held - expected
    config = journal_config(directory, facts.roles)
    wanted = readable.config_as_held(config)
    return Verdict(
        backend=backend,
        num_rows=len(rows),
        num_points=sum(expected.values()),
        missing=tuple(
            row
            for row, of_row in zip(rows, points, strict=True)
            if any(point in lacking for point in of_row)
        ),
        doubled=tuple(point for point in extra if point in expected),
        unknown=tuple(point for point in extra if point not in expected),
        config=_differences(wanted, readable.read_config(facts)),
        num_keys=len(wanted),
    )


def _differences(wanted: dict[str, Json], held: dict[str, Json]) -> tuple[ConfigDifference, ...]:
    return tuple(
        ConfigDifference(key=key, expected=value, held=held.get(key), is_missing=key not in held)
        for key, value in sorted(wanted.items())
        if key not in held or held[key] != value
    )
