"""Whether the cost of a row stays what it was: over 1,000,000 rows of one process, and over 256 journals.

Logging is measured in windows of 1,000 rows, each followed by as many rows of the floor (orjson and one write), so that
what the disk or the machine does meanwhile shows in both. Delivery goes to a tracker that does nothing; its cost is the
time that the process computes.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import orjson
import psutil

import slime_logging
from slime_logging.record.run import RunDirectory
from tests.bench import Figure, figure
from tests.bench.contestants import STEP, rows
from tests.bench.runs import TAKEN, apart, deliver, join, recorded

WINDOW = 1_000
NUM_ROWS = 1_000_000
NUM_JOURNAL_ROWS = 51_200
NUM_JOURNALS = 256
MOST = 1.2
"""A ratio up to this counts as flat: two windows of the same code differ as much on a machine that others use too."""
MAX_GROWTH_MIB = 1.0


class _Marathon(NamedTuple):
    log_us: list[float]
    floor_us: list[float]
    rss_mib: list[float]
    deliver_us: list[float]
    delivery_rss_mib: list[float]


def run(quick: bool = False) -> list[Figure]:
    """Cost of the last rows divided by that of the first, growth in memory, and cost with many journals."""
    num_rows = 4 * WINDOW if quick else NUM_ROWS
    with tempfile.TemporaryDirectory(prefix="bench-flat-", ignore_cleanup_errors=True) as directory:
        marathon = (
            _marathon(directory, num_rows) if quick else apart(_marathon, directory, num_rows)
        )
    return [*_of_rows(marathon, num_rows), _of_journals(quick)]


def _of_rows(marathon: _Marathon, num_rows: int) -> list[Figure]:
    share = max(1, len(marathon.log_us) // 10)
    relative = [
        mine / least for mine, least in zip(marathon.log_us, marathon.floor_us, strict=True)
    ]
    log_ratio = median(relative[-share:]) / median(relative[:share])
    growth_mib = marathon.rss_mib[-1] - marathon.rss_mib[0]
    tenth = max(1, len(marathon.deliver_us) // 10)
    deliver_ratio = median(marathon.deliver_us[-tenth:]) / median(marathon.deliver_us[:tenth])
    delivery_mib = marathon.delivery_rss_mib[-1] - marathon.delivery_rss_mib[0]
    first, last = f"the first {num_rows // 10:,}", f"the last {num_rows // 10:,} of {num_rows:,}"
    return [
        _flat(
            f"log: a row among {last}",
            marathon.log_us[-share:],
            marathon.log_us[:share],
            first,
            log_ratio,
        ),
        figure(
            f"memory of a process over {num_rows:,} rows: growth",
            growth_mib,
            "MiB",
            n=1,
            target=f"<= {MAX_GROWTH_MIB:g} MiB",
            is_met=growth_mib <= MAX_GROWTH_MIB,
        ),
        _flat(
            f"delivery: a row among {last}",
            marathon.deliver_us[-tenth:],
            marathon.deliver_us[:tenth],
            first,
            deliver_ratio,
        ),
        figure(
            f"memory of a delivery over {num_rows:,} rows: growth",
            delivery_mib,
            "MiB",
            n=1,
            target=f"<= {4 * MAX_GROWTH_MIB:g} MiB",
            is_met=delivery_mib <= 4 * MAX_GROWTH_MIB,
        ),
    ]


def _flat(
    name: str, ours: Sequence[float], before: Sequence[float], first: str, ratio: float
) -> Figure:
    return figure(
        name,
        median(ours),
        "us",
        n=len(ours),
        others={first: median(before)},
        ratio={first: ratio},
        target=f"flat: <= {MOST:g}x",
        is_met=ratio <= MOST,
    )


def _marathon(directory: str, num_rows: int) -> _Marathon:
    """Log the rows, then deliver them, all in this process; memory is read after the first windows and at the end."""
    path = Path(directory)
    args, batch, process = join(path), rows(WINDOW, 0), psutil.Process()
    fd = os.open(path / "floor.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log_us, floor_us, rss_mib = [], [], []
    for number in range(num_rows // WINDOW):
        start = time.perf_counter()
        for row in batch:
            slime_logging.log(args, row, STEP)
        middle = time.perf_counter()
        for row in batch:
            os.write(fd, orjson.dumps(row) + b"\n")
        log_us.append((middle - start) / WINDOW * 1e6)
        floor_us.append((time.perf_counter() - middle) / WINDOW * 1e6)
        if number:
            rss_mib.append(process.memory_info().rss / 2**20)
        if number % 50 == 0:
            os.ftruncate(fd, 0)
    os.close(fd)
    slime_logging.finish_tracking(args)
    deliver(RunDirectory(Path(args.tracking_run_dir)), "null")
    pairs = [(earlier, later) for earlier, later in pairwise(TAKEN) if later.num_rows]
    deliver_us = [(later.cpu_s - earlier.cpu_s) / later.num_rows * 1e6 for earlier, later in pairs]
    return _Marathon(log_us, floor_us, rss_mib, deliver_us, [later.rss_mib for _, later in pairs])


def _of_journals(quick: bool) -> Figure:
    num_rows, num_rounds = (512, 1) if quick else (NUM_JOURNAL_ROWS, 5)
    costs: dict[int, list[float]] = {1: [], NUM_JOURNALS if not quick else 4: []}
    many = max(costs)
    for number in range(num_rounds):
        for num_journals in (1, many)[:: 1 if number % 2 == 0 else -1]:
            with tempfile.TemporaryDirectory(
                prefix="bench-flat-", ignore_cleanup_errors=True
            ) as directory:
                run_directory = recorded(Path(directory), num_rows, num_journals)
                deliver(run_directory, "null")
                costs[num_journals].append((TAKEN[-1].cpu_s - TAKEN[0].cpu_s) / num_rows * 1e6)
    ratio = median(mine / one for mine, one in zip(costs[many], costs[1], strict=True))
    return _flat(
        f"delivery of {num_rows:,} rows: a row, from {many} journals",
        costs[many],
        costs[1],
        "from 1 journal",
        ratio,
    )
