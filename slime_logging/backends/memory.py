"""A tracker inside this process, for tests: everything delivered is kept in `RUNS`, by run id,
until `forget`.

Policy: it needs no package, touches neither disk nor network, and holds every value exactly as it
was delivered. Like the real trackers it keeps a run over close and a second open, so resumption and
replay can be tested against it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from slime_logging.backends.base import Writer
from slime_logging.backends.storable import canonical
from slime_logging.errors import WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts


@dataclass(kw_only=True, slots=True)
class MemoryRun:
    """What the memory tracker holds of one run.

    `configs` are all configurations in the order set, the last one being in force. `exit_code` is
    that of the last close with one, None while the run is not over. `writers` are those that opened
    the run, in order.
    """

    facts: RunFacts
    writers: list[Writer] = field(default_factory=list)
    configs: list[RunConfig] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    exit_code: int | None = None

    @property
    def config(self) -> RunConfig:
        """The configuration in force; empty before the first."""
        return self.configs[-1] if self.configs else RunConfig(values={}, roles={})


RUNS: dict[str, MemoryRun] = {}
"""Every run of this process, by run id."""


def forget() -> None:
    """Drop everything held; for the start of a test."""
    RUNS.clear()


class MemoryBackend:
    """Keeps the run in `RUNS`."""

    name = "memory"
    is_durable = True

    def __init__(self) -> None:
        self._run: MemoryRun | None = None

    def open(self, run: RunFacts, writer: Writer) -> None:
        """Create the run, or continue the one with this id."""
        self._run = RUNS.setdefault(run.run_id, MemoryRun(facts=run))
        self._run.writers.append(writer)

    def settle_s(self, run: RunFacts) -> float:  # noqa: ARG002 - of whatever run
        """None: what was written is there."""
        return 0.0

    def set_config(self, config: RunConfig) -> None:
        """Keep a copy of the configuration."""
        self._opened().configs.append(copy.deepcopy(config))

    def write(self, rows: Sequence[Row]) -> None:
        """Keep the rows."""
        self._opened().rows.extend(rows)

    def drop(self, rows: Iterable[Row]) -> None:
        """Forget the rows."""
        gone = {row.row_id for row in rows}
        held = self._opened().rows
        held[:] = [row for row in held if row.row_id not in gone]

    def close(self, exit_code: int | None, timeout_s: float) -> None:  # noqa: ARG002 - nothing to wait for
        """Note the exit code."""
        if self._run is not None and exit_code is not None:
            self._run.exit_code = exit_code
        self._run = None

    def points(self, row: Row) -> list[Point]:
        """One point a row: all of it."""
        metrics = canonical(dict(row.metrics))
        return [(row.row_id, row.role, row.step_key, row.step, row.time_s, metrics)]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The points of all rows held."""
        held = RUNS.get(run.run_id)
        for row in held.rows if held else ():
            yield from self.points(row)

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """The flat view, unchanged."""
        return dict(config.values)

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The flat view of the configuration in force."""
        held = RUNS.get(run.run_id)
        return dict(held.config.values) if held else {}

    def _opened(self) -> MemoryRun:
        if self._run is None:
            raise WillNeverWork("memory: not open")
        return self._run
