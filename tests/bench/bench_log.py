"""`log` of a row of 30 floats against the trackers' own calls, and against the least that a durable row takes.

Each contestant lives in a process of its own; they take turns, so that one's background work does not run on another's
clock. Two cadences: back to back, which measures the call, and with a pause between two rows, which is how training
logs and where a thread in the background has its turn.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from tests.bench import Figure, environment, figure, quantile, ratios
from tests.bench.contestants import CONTESTANTS

PAUSE_S = 0.002
SETTLE_S = 0.1
FEWER = {"mlflow": 50, "tensorboardx": 4}
"""What takes milliseconds a row logs this many times fewer."""

LABELS = {
    "floor": "orjson + one write",
    "wandb": "wandb.log",
    "tensorboard": "tensorboard EventFileWriter",
    "tensorboardx": "tensorboardX add_scalar x30",
    "trackio": "trackio.log",
    "mlflow": "mlflow log_batch",
    "ours_delivering": "ours, in the primary",
}


class _Contestant:
    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        directory.mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.contestants", name, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(directory),
        )
        if self._read().strip() != "ready":
            raise RuntimeError(f"{name} could not be started")

    def take(self, num_rows: int, pause_s: float) -> list[int]:
        """Nanoseconds of each call."""
        assert self._process.stdin is not None
        print(
            json.dumps([max(1, num_rows // FEWER.get(self.name, 1)), pause_s]),
            file=self._process.stdin,
            flush=True,
        )
        taken: list[int] = json.loads(self._read())
        return taken

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def run(quick: bool = False) -> list[Figure]:
    """Median and 99th percentile, both cadences."""
    names = [name for name in CONTESTANTS if not quick or name in ("floor", "ours")]
    num_rounds, num_burst, num_paced = (2, 50, 10) if quick else (10, 1_000, 200)
    with tempfile.TemporaryDirectory(prefix="bench-log-", ignore_cleanup_errors=True) as directory:
        contestants = [_Contestant(name, Path(directory, name)) for name in names]
        try:
            for contestant in contestants:
                contestant.take(num_burst // 4, 0.0)
            burst = _rounds(contestants, num_rounds, num_burst, 0.0)
            paced = _rounds(contestants, num_rounds, num_paced, PAUSE_S)
        finally:
            for contestant in contestants:
                contestant.close()
    return [*_figures("back to back", burst), *_figures(f"{PAUSE_S * 1000:g} ms apart", paced)]


def _rounds(
    contestants: Sequence[_Contestant], num_rounds: int, num_rows: int, pause_s: float
) -> dict[str, list[list[int]]]:
    taken: dict[str, list[list[int]]] = {contestant.name: [] for contestant in contestants}
    for number in range(num_rounds):
        for contestant in contestants[:: 1 if number % 2 == 0 else -1]:
            taken[contestant.name].append(contestant.take(num_rows, pause_s))
            time.sleep(SETTLE_S)
    return taken


def _figures(cadence: str, taken: Mapping[str, list[list[int]]]) -> list[Figure]:
    figures = []
    for label, share in (("median", 0.5), ("99th percentile", 0.99)):
        by_round = {
            name: [quantile(calls, share) for calls in rounds] for name, rounds in taken.items()
        }
        whole = {
            name: quantile(list(chain.from_iterable(rounds)), share) / 1000
            for name, rounds in taken.items()
        }
        compared = ratios(by_round, "ours")
        if share > 0.5:  # a slow tracker's round has too few calls for a percentile of its own
            compared = {name: whole["ours"] / whole[name] for name in compared}
        target, is_met = _verdict(share, cadence, compared)
        figures.append(
            figure(
                f"log of 30 floats, {cadence}, {label}",
                whole["ours"],
                "us",
                n=sum(map(len, taken["ours"])),
                others={LABELS[name]: value for name, value in whole.items() if name != "ours"},
                ratio={LABELS[name]: value for name, value in compared.items()},
                target=target,
                is_met=is_met,
            )
        )
    return figures


def _verdict(share: float, cadence: str, compared: Mapping[str, float]) -> tuple[str, bool | None]:
    if share == 0.5 and cadence == "back to back":
        return "<= 0.15x wandb.log, <= 4x the floor", compared.get(
            "wandb", 0.0
        ) <= 0.15 and compared["floor"] <= 4
    if share == 0.99:
        others = [
            value for name, value in compared.items() if name not in ("floor", "ours_delivering")
        ]
        return "below every tracker's", all(value < 1 for value in others)
    return "", None
