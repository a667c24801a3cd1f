"""Trackers for the tests of delivery: they keep rows as the memory tracker does, and fail where a test says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from slime_logging.backends.base import Writer
from slime_logging.backends.memory import MemoryBackend
from slime_logging.errors import BackendError
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts


class Plan:
    """What goes wrong, and what was asked. Each list is used up from its front; an exhausted one means all is well."""

    def __init__(self) -> None:
        self.opens: list[Exception | None] = []
        self.writes: list[Exception | None] = []
        self.reads: list[Exception | None] = []
        self.closes: list[Exception | None] = []
        self.num_taken_before_failing = 0
        self.refuses: Callable[[Row], Exception | None] = lambda row: None
        self.opened_at: list[float] = []
        self.close_timeouts: list[float] = []
        self.is_durable = True
        self.has_queue = False
        self.points_by_step = False
        self.settle_s = 0.0

    @property
    def num_opens(self) -> int:
        return len(self.opened_at)


PLAN = Plan()


def new_plan() -> Plan:
    """Forget what the last test planned."""
    PLAN.__init__()
    return PLAN


def _next(failures: list[Exception | None]) -> None:
    failure = failures.pop(0) if failures else None
    if failure is not None:
        raise failure


class FaultyBackend(MemoryBackend):
    """The memory tracker, failing as planned. With `has_queue` it holds nothing before `close`, and a failed write
    loses the queue.
    """

    name = "faulty"

    def __init__(self) -> None:
        super().__init__()
        self._queue: list[Row] = []
        self._config: RunConfig | None = None

    @property
    def is_durable(self) -> bool:
        return PLAN.is_durable

    def settle_s(self, run: RunFacts) -> float:
        return PLAN.settle_s

    def open(self, run: RunFacts, writer: Writer) -> None:
        PLAN.opened_at.append(time.monotonic())
        _next(PLAN.opens)
        super().open(run, writer)

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            refusal = PLAN.refuses(row)
            if refusal is not None:
                raise refusal
        try:
            _next(PLAN.writes)
        except BackendError:
            super().write(rows[: PLAN.num_taken_before_failing])
            self._queue.clear()
            self._config = None
            raise
        if PLAN.has_queue:
            self._queue.extend(rows)
        else:
            super().write(rows)

    def set_config(self, config: RunConfig) -> None:
        if PLAN.has_queue:
            self._config = config
        else:
            super().set_config(config)

    def points(self, row: Row) -> list[Point]:
        return [row.step] if PLAN.points_by_step else super().points(row)

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        _next(PLAN.reads)
        yield from super().read_points(run)

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        PLAN.close_timeouts.append(timeout_s)
        if self._run is not None:
            _next(PLAN.closes)
            super().write(self._queue)
            if self._config is not None:
                super().set_config(self._config)
        self._queue, self._config = [], None
        super().close(exit_code, timeout_s)
