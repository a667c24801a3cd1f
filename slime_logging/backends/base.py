"""What a tracker must do to be delivered to, and the values that are handed to it.

Policy of every backend:

- It has a process of its own, or runs in a `BackendProcess`: it may set variables there, change the
  directory, and let its vendor print. It is opened, written and closed by one thread, and needs no
  locks of its own.
- It imports its vendor inside `open` (or inside the reading functions), never at import time.
- All text it gets is redacted and all values are plain JSON already: it adds nothing of this
  process (no argv, no environment), and must stop its vendor's client from doing so.
- Each foreign exception is mapped to `errors.TryAgain` or `errors.WillNeverWork`; anything else is
  a bug.
- What the tracker cannot hold is stored in the nearest form and warned about once; it is never
  silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """Which process delivers: its label, whether it is the run's primary, and whether other clients
    write the run too.

    `is_shared` is True where other processes may open clients of their own on this run (W&B's
    shared mode). `is_sync` is True for `slime-logging sync`: nobody else writes.
    """

    label: str
    is_primary: bool = True
    is_shared: bool = False
    is_sync: bool = False


class Backend(Protocol):
    """A tracker, as delivery sees it. Calls come in the order open, (set_config | write)*, close.

    `is_durable` says what a returned `write` means: True, the rows survive the death of this
    process; False, only a `close` that returned does (a client with a queue of its own). Such a
    client that broke may go on writing as long as its process lives: it is opened once a process.
    """

    name: str
    is_durable: bool

    def open(self, run: RunFacts, writer: Writer) -> None:
        """Create the run in the tracker, or continue the one with this id; bounded in time (at most
        about 30 s).
        """

    def settle_s(self, run: RunFacts) -> float:
        """For how many seconds after a client of the run ended badly the tracker may still take in
        what that client sent, or tell less than it holds; 0 where `is_durable`.
        """

    def set_config(self, config: RunConfig) -> None:
        """Make the tracker show this configuration; called again with the whole of it when anything
        changed.
        """

    def write(self, rows: Sequence[Row]) -> None:
        """Hand over rows, in order. On an exception none or some of them are held: delivery finds
        out by `read_points`.
        """

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Flush and release everything. `exit_code` None: this writer stops, but the run is not
        over.

        Raises `TryAgain` when the tracker has not confirmed everything within `timeout_s`;
        resources are freed even then. May be called twice, and without a successful `open`.
        """


class Readable(Protocol):
    """A backend whose tracker can be read back, for `verify` and to find out what a killed delivery
    had written.

    `points(row)` is what the tracker should hold for a row; `read_points` what it does hold. Both
    in the tracker's own precision (float32 for TensorBoard, milliseconds for MLflow), so that
    nothing lost and nothing doubled means: equal multisets, or where the backend has
    `merges_equal_points`, which are then held once, equal sets. `config_as_held` and `read_config`
    are the same pair for the configuration.
    """

    def points(self, row: Row) -> list[Point]:
        """The points that this row becomes, deterministic, independent of any connection."""

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """Every point the tracker holds for the run; raises `TryAgain` when it cannot be asked
        now.
        """

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """The configuration in the form in which this tracker keeps it."""

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The configuration that the tracker holds for the run."""


class Drops(Protocol):
    """A backend whose tracker can be made to show some rows no more."""

    def drop(self, rows: Iterable[Row]) -> None:
        """Between `open` and `close`: show none of these rows any more. Harmless for those that the
        tracker does not hold, and when it is done again.
        """


class ShowsMedia(Protocol):
    """A readable backend whose tracker holds samples and images beside the rows that refer to
    them, and can be asked for those too.

    `media(row, run)` is what it should hold for a row, by the metric's name: nothing for a file
    that the run itself has no more. `read_media` is what it does hold. Contents are compared by
    their digests.
    """

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The table or image of each metric of this row that has one."""

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """Every table and image that the tracker holds for the run."""
