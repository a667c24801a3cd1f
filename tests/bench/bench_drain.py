"""Draining journals to W&B offline, against calling `wandb.log` directly with the same rows, both until all is on disk.

Each drain is a process of its own; ours includes reading and checking the journal and speaking to the process that
holds W&B's client.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from tests.bench import Figure, figure
from tests.bench.contestants import rows
from tests.bench.runs import apart, deliver, recorded

NUM_ROWS = 100_000
NUM_ROUNDS = 3
SHARE = 0.8


def run(quick: bool = False) -> list[Figure]:
    """Rows a second."""
    num_rows, num_rounds = (500, 1) if quick else (NUM_ROWS // NUM_ROUNDS, NUM_ROUNDS)
    rates: dict[str, list[float]] = {"ours": [], "direct": []}
    for number in range(num_rounds):
        for name in ("ours", "direct")[:: 1 if number % 2 == 0 else -1]:
            if quick and name == "direct":
                continue
            with tempfile.TemporaryDirectory(
                prefix="bench-drain-", ignore_cleanup_errors=True
            ) as directory:
                rates[name].append(
                    num_rows / apart(_ours if name == "ours" else _direct, directory, num_rows)
                )
    ratio = None
    if rates["direct"]:
        ratio = median(
            mine / theirs for mine, theirs in zip(rates["ours"], rates["direct"], strict=True)
        )
    return [
        figure(
            f"drain {num_rows * num_rounds:,} rows to W&B offline",
            median(rates["ours"]),
            "rows/s",
            n=num_rounds,
            others={} if ratio is None else {"wandb.log directly": median(rates["direct"])},
            ratio={} if ratio is None else {"wandb.log directly": ratio},
            target=f">= {SHARE:g}x the direct rate",
            is_met=None if ratio is None else ratio >= SHARE,
        )
    ]


def _ours(directory: str, num_rows: int) -> float:
    _, seconds = deliver(recorded(Path(directory), num_rows), "wandb")
    return seconds


def _direct(directory: str, num_rows: int) -> float:
    import wandb

    settings = wandb.Settings(silent=True, console="off")
    run = wandb.init(mode="offline", dir=directory, project="bench", settings=settings)
    batch = rows(1_000, 0)
    start = time.perf_counter()
    for number in range(num_rows):
        run.log(batch[number % len(batch)])
    run.finish()
    return time.perf_counter() - start
