"""`slime-logging report` as a process of its own, its start included: a long run and a wide one.

Time is that of the processor, so that other work on the machine counts less. The floor is the least that reading takes:
each line parsed by orjson, nothing kept.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

from slime_logging.record.run import RunDirectory
from tests.bench import Figure, figure
from tests.report.runs import write

LONG_S, WIDE_S, WIDE_BYTES = 6.0, 2.0, 2**20


def run(quick: bool = False) -> list[Figure]:
    """Seconds a page, and the size of one."""
    scale = 100 if quick else 1
    with tempfile.TemporaryDirectory(prefix="bench-report-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        long = _run(directory / "long", 10, [("actor", None)], 1_000_000 // scale)
        ranks = [(role, rank) for role in ("actor", "critic") for rank in (0, 1)]
        wide = _run(directory / "wide", 200, ranks, 5_000 // scale)
        num_bytes = len(_page(wide).read_bytes())
        return [
            _timed("report of 1,000,000 rows of ten metrics", long, LONG_S),
            _timed("report of 20,000 rows of 200 metrics, of 4 processes", wide, WIDE_S),
            figure(
                "the same: its page",
                num_bytes / 2**20,
                "MiB",
                n=1,
                target="<= 1 MiB",
                is_met=num_bytes <= WIDE_BYTES,
            ),
        ]


def _run(path: Path, num_metrics: int, processes: list[Any], num_rows: int) -> RunDirectory:
    chance = random.Random(1)
    names = [f"train/layer_{n}/norm" for n in range(num_metrics)]
    run = write(path, [(*process, []) for process in processes], exit_code=None)
    for journal in run.journal_paths():
        with journal.open("ab") as file:
            for step in range(num_rows):
                row = {"kind": "row", "seq": step + 2, "time_s": step + 0.5}
                row |= {"step_key": "train/step", "step": step}
                metrics = {name: chance.random() for name in names}
                file.write(orjson.dumps(row | {"metrics": metrics}) + b"\n")
    return run


def _page(run: RunDirectory) -> Path:
    page = run.path / "page.html"
    main = "from slime_logging.cli import main; main()"
    command = [sys.executable, "-c", main, "report", str(run.path), "-o", str(page)]
    subprocess.run(command, check=True, capture_output=True)
    return page


def _timed(name: str, run: RunDirectory, promised_s: float) -> Figure:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _page(run)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ours = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    start = time.process_time()
    for journal in run.journal_paths():
        with journal.open("rb") as file:
            for line in file:
                orjson.loads(line)
    floor = time.process_time() - start
    return figure(
        name,
        ours,
        "s",
        n=1,
        others={"orjson.loads of each line": floor},
        target=f"< {promised_s:g} s",
        is_met=ours < promised_s,
    )
