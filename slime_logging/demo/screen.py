"""What a demo shows while it runs: a live line on a terminal, a plain line now and then elsewhere.

Policy: shows only what the job itself has measured, and never slows it: at most four updates a
second.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

BARS = "▁▂▃▄▅▆▇█"
LINES = 6
"""How many plain lines a job prints where there is no terminal."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a job is. `course` is the number to watch, so far; `numbers` are shown beside it, by
    name.
    """

    done: int
    total: int
    label: str
    course_name: str
    course: Sequence[float]
    numbers: tuple[tuple[str, float], ...]
    num_rows: int


class Screen:
    """Shows stages and progress on a console; a context manager that leaves the last line
    standing.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._started_s = time.monotonic()
        self._loop_started_s: float | None = None
        self._live: Live | None = None
        self._next_line = 1
        self.run: Path | None = None
        """The directory of the job's run, once there is one."""

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def stage(self, text: str) -> None:
        """Say what begins now."""
        self.console.print(
            f"[dim]{time.monotonic() - self._started_s:5.1f} s[/]  {text}",
            highlight=False,
            soft_wrap=True,
        )

    def show(self, progress: Progress) -> None:
        """Show how far the job is."""
        if self._loop_started_s is None:
            self._loop_started_s = time.monotonic()
        view = self._view(progress)
        if not self.console.is_terminal:
            if progress.done >= self._next_line:
                self._next_line += max(1, progress.total // LINES)
                self.stage(_plain(progress))
            return
        if self._live is None:
            self._live = Live(view, console=self.console, refresh_per_second=4)
            self._live.start()
        self._live.update(view)

    def _view(self, progress: Progress) -> Table:
        grid = Table.grid(padding=(0, 2))
        filled = round(24 * progress.done / max(1, progress.total))
        bar = Text("━" * filled, style="green") + Text("━" * (24 - filled), style="dim")
        took_s = time.monotonic() - (self._loop_started_s or 0.0)
        rate = progress.num_rows / took_s if took_s > 0.5 else 0.0
        grid.add_row(
            Text(f"{progress.label} {progress.done}/{progress.total}", style="bold"),
            bar,
            Text(
                f"{progress.course_name} {progress.course[-1]:.3f}" if progress.course else "",
                style="bold green",
            ),
            Text(sparkline(progress.course), style="green"),
        )
        numbers = "  ".join(f"{name} {value:.4g}" for name, value in progress.numbers)
        rows = (
            f"{progress.num_rows} rows, {rate:.0f} rows/s" if rate else f"{progress.num_rows} rows"
        )
        grid_below = Table.grid()
        grid_below.add_row(grid)
        grid_below.add_row(Text(f"{numbers}  {rows}", style="dim"))
        return grid_below


def sparkline(values: Sequence[float], width: int = 30) -> str:
    """The course of the values as a line of bars, the lowest bar at the smallest; at most `width`
    characters.
    """
    values = [value for value in values if math.isfinite(value)]
    if not values:
        return ""
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(values), max(values)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in values)


def _plain(progress: Progress) -> str:
    numbers = [(progress.course_name, progress.course[-1])] if progress.course else []
    numbers += progress.numbers
    text = ", ".join(f"{name} {value:.4g}" for name, value in numbers)
    return f"{progress.label} {progress.done}/{progress.total}: {text}, {progress.num_rows} rows"
