"""Runs to measure with: journals written in advance, and a tracker that takes rows and keeps nothing but the time."""

from __future__ import annotations

import contextlib
import io
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

import psutil

import slime_logging
from slime_logging.backends.base import Writer
from slime_logging.backends.table import BACKENDS, Tracker
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.delivery import Delivery
from slime_logging.delivery.result import DeliveryResult
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from tests.bench.contestants import STEP, rows

TIMEOUT_S = 600.0

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


def apart(
    call: Callable[_Arguments, _Value], *arguments: _Arguments.args, **options: _Arguments.kwargs
) -> _Value:
    """What a function of a module returns when it is called in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *arguments, **options).result()


class NullBackend:
    """Takes everything; `TAKEN`, emptied by each `open`, holds when how many rows came, and the memory then."""

    name = "null"
    is_durable = True

    def settle_s(self, run: RunFacts) -> float:
        return 0.0

    def open(self, run: RunFacts, writer: Writer) -> None:
        TAKEN.clear()
        self._note(0)

    def set_config(self, config: RunConfig) -> None:
        """Nothing to keep."""

    def write(self, rows: Sequence[Row]) -> None:
        self._note(len(rows))

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        self._note(0)

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """It holds nothing."""
        return iter(())

    def _note(self, num_rows: int) -> None:
        TAKEN.append(
            Taken(time.process_time(), num_rows, psutil.Process().memory_info().rss / 2**20)
        )


class Taken(NamedTuple):
    """One hand-over; `cpu_s` is the time that the process has computed so far, whatever others did to the machine."""

    cpu_s: float
    num_rows: int
    rss_mib: float


TAKEN: list[Taken] = []


def join(directory: Path) -> Namespace:
    """A run without a tracker, quietly."""
    args = Namespace(
        tracking_dir=str(directory), tracking_system_metrics="off", wandb_mode="offline"
    )
    with contextlib.redirect_stderr(io.StringIO()):
        slime_logging.init_tracking(args)
    return args


def recorded(directory: Path, num_rows: int, num_journals: int = 1) -> RunDirectory:
    """A finished run with these many rows of 30 floats, evenly in these many journals."""
    args = join(directory)
    sources = [args]
    for number in range(1, num_journals):
        other = Namespace(**vars(args))
        slime_logging.init_tracking(other, primary=False, role=f"worker{number}")
        sources.append(other)
    batch = rows(1_000, 0)
    for number in range(num_rows):
        slime_logging.log(
            sources[number * num_journals // num_rows], batch[number % len(batch)], STEP
        )
    for source in reversed(sources):
        slime_logging.finish_tracking(source)
    return RunDirectory(Path(args.tracking_run_dir))


def deliver(directory: RunDirectory, tracker: str) -> tuple[DeliveryResult, float]:
    """Deliver a finished run as `sync` does, and the seconds from the tracker being open to all being confirmed."""
    BACKENDS.setdefault("null", Tracker("tests.bench.runs:NullBackend"))
    delivery = Delivery(
        Assignment(
            tracker=tracker,
            directory=directory,
            facts=directory.read().facts(directory.path, {"wandb_mode": "offline"}),
            writer=Writer(label="bench", is_sync=True),
        )
    )
    delivery.start()
    while delivery.result().state == "opening":
        time.sleep(0.001)
    opened_s = time.perf_counter()
    delivery.stop(0, TIMEOUT_S)
    result = delivery.wait()
    seconds = time.perf_counter() - opened_s
    if not result.is_complete:
        raise RuntimeError(f"not delivered: {result}")
    return result, seconds
