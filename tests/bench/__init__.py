"""Benchmarks: ours and the others', side by side in one run. `python -m tests.bench` rewrites docs/benchmarks.md.

Policy: contestants take turns in rounds, so that a machine that slows down slows all of them; what is compared is the
median over rounds of the ratio within a round. A module `bench_<name>` has `run(quick=False) -> list[Figure]`; `quick`
does the same with so little work that the figures mean nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypedDict


class Figure(TypedDict):
    """One row of the table.

    `others` and `ratio` share their keys: what somebody else needs for the same, and ours divided by it. `target` is
    what was promised, "" for nothing; `is_met` None where there is no target. `n` is how many measurements stand
    behind `ours`.
    """

    name: str
    ours: float
    others: Mapping[str, float]
    unit: str
    ratio: Mapping[str, float]
    n: int
    target: str
    is_met: bool | None


def figure(
    name: str,
    ours: float,
    unit: str,
    *,
    n: int,
    others: Mapping[str, float] | None = None,
    ratio: Mapping[str, float] | None = None,
    target: str = "",
    is_met: bool | None = None,
) -> Figure:
    """A row; the ratios are those of the figures unless better ones (medians over rounds) are given."""
    others = others or {}
    ratio = (
        ratio
        if ratio is not None
        else {other: ours / value for other, value in others.items() if value}
    )
    return Figure(
        name=name,
        ours=ours,
        others=others,
        unit=unit,
        ratio=ratio,
        n=n,
        target=target,
        is_met=is_met,
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def take_turns(
    contestants: Mapping[str, Callable[[], object]], num_rounds: int
) -> dict[str, list[float]]:
    """Seconds per call of each contestant, by round; in every other round the order is reversed."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(num_rounds):
        for name in list(contestants)[:: 1 if number % 2 == 0 else -1]:
            start = perf_counter()
            contestants[name]()
            seconds[name].append(perf_counter() - start)
    return seconds


def ratios(rounds: Mapping[str, Sequence[float]], ours: str) -> dict[str, float]:
    """The median over rounds of ours divided by each other's."""
    return {
        name: median(mine / theirs for mine, theirs in zip(rounds[ours], values, strict=True))
        for name, values in rounds.items()
        if name != ours
    }


def environment(directory: Path) -> dict[str, str]:
    """This process's environment for a child: no tracker of anybody's, no stored login, nothing sent to a vendor."""
    ours = ("WANDB_", "SLIME_LOGGING_", "TRACKIO_", "MLFLOW_", "SWANLAB_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return kept | {"NETRC": str(directory / "no-netrc"), "WANDB_ERROR_REPORTING": "false"}
