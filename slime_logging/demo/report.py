"""What a demo shows at its end: the reward's course, what differs between the roles, the rows, and
where to look.

Policy: pure: a result becomes something to print. Each command is one that a person can paste as it
stands.
"""

from __future__ import annotations

import itertools
import math
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from slime_logging.backends.place import address_of
from slime_logging.cli.tables import differences_table
from slime_logging.demo.job import JobResult
from slime_logging.settings.options import TRACKERS
from slime_logging.values.run import RunFacts

CHART_HEIGHT = 8
CHART_WIDTH = 60
EIGHTHS = " ▁▂▃▄▅▆▇█"


def show_report(result: JobResult, console: Console) -> None:
    """Print the end screen of a job."""
    console.print(_headline(result))
    if result.course:
        console.print(Padding(chart(result.course), (1, 0, 0, 2), expand=False))
    if result.differences:
        console.print()
        console.print(
            differences_table(
                result.differences, ("actor", "critic"), "actor vs critic: what differs"
            )
        )
    console.print(_heading("rows logged"), _rows(result), _heading("where to look"))
    for tracker, place, command in where_to_look(result.args):
        # Soft wrapping keeps each on one line, so that it can be pasted.
        console.print(
            Text(f"  {tracker:<12}", style="bold").append(place, style="not bold dim"),
            soft_wrap=True,
        )
        console.print(Text(f"  {'':<12}{command}", style="cyan"), soft_wrap=True)


def chart(values: Sequence[float]) -> Text:
    """Draw the course of the values, `CHART_HEIGHT` lines high, with its ends beside it: from 0 up,
    or from the lowest value where one is below 0. What is not finite is left empty.
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low = min(0.0, *finite)
    top = max(finite) if max(finite) <= 0.5 else max(1.0, *finite)
    top = top if top > low else low + 1.0
    wide = max(1, min(3, CHART_WIDTH // len(values)))
    columns = _thinned(values, CHART_WIDTH // wide)
    labels = {CHART_HEIGHT - 1: f"{top:.2f}", 0: f"{low:.2f}"}
    margin = max(5, *map(len, labels.values()))
    lines = []
    for line in reversed(range(CHART_HEIGHT)):
        cells = [
            EIGHTHS[
                round(8 * min(1.0, max(0.0, (value - low) / (top - low) * CHART_HEIGHT - line)))
            ]
            if math.isfinite(value)
            else " "
            for value in columns
        ]
        bars = "".join(cell * wide for cell in cells)
        lines.append(
            Text()
            .append(f"{labels.get(line, ''):>{margin}} ", style="dim")
            .append(bars, style="green")
        )
    return Text("\n").join(lines)


def where_to_look(args: Namespace) -> list[tuple[str, str, str]]:
    """Return for the journals, the page that can be made of them, and each tracker that is on: its
    name, its data's place, and the command that shows them.
    """
    run_dir = _short(Path(args.tracking_run_dir))
    places = [
        ("journals", str(run_dir / "journals"), f"{_bin()}slime-logging show {_quoted(run_dir)}"),
        (
            "web page",
            "not made yet: this makes it",
            f"{_bin()}slime-logging report {_quoted(run_dir)}",
        ),
    ]
    facts = RunFacts(
        run_id=run_dir.name,
        project=args.wandb_project,
        name=run_dir.name,
        group=None,
        directory=run_dir,
        created_s=0.0,
        axes={},
        options={"wandb_mode": args.wandb_mode},
    )
    for tracker in TRACKERS:
        address = address_of(tracker, facts, tools=_bin())
        if address is not None and getattr(args, f"use_{tracker}", False):
            places.append((tracker, address.place, address.command))
    return places


def _headline(result: JobResult) -> Text:
    text = Text(f"\nrun {result.args.wandb_run_id}", style="bold")
    if result.course:
        text.append(f"   {result.course_name} {result.course[0]:.3f} ")
        text.append(f"→ {result.course[-1]:.3f}", style="green")
    total = sum(result.num_rows.values())
    number = len(result.num_rows)
    processes = f"{number} process{'es' if number != 1 else ''}"
    return text.append(
        f"   {total} rows from {processes} in {result.seconds:.1f} s",
        style="not bold",
    )


def _heading(title: str) -> Text:
    return Text(f"\n{title}", style="bold")


def _rows(result: JobResult) -> Table:
    table = Table.grid(padding=(0, 2))
    for process, count in result.num_rows.items():
        table.add_row(
            f"  {process}",
            Text(str(count), justify="right"),
            Text(AXES.get(process, ""), style="dim"),
        )
    return table


AXES = {
    "driver": "perf/* over rollout/step",
    "rollout": "rollout/*, perf/* over rollout/step, eval/* over eval/step",
    "actor": "train/* over train/step, rollout/*, perf/* over rollout/step",
    "critic": "train/critic-* over train/step",
    "explorer": "explorer/* over explorer/step",
    "trainer": "trainer/* over trainer/step",
}


def _short(path: Path) -> Path:
    """The path as seen from the working directory, where it lies below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _bin() -> str:
    """What to write before a command: nothing where the shell finds it, else the environment's
    directory.
    """
    is_found = sys.prefix == sys.base_prefix or "VIRTUAL_ENV" in os.environ
    return "" if is_found else f"{_quoted(_short(Path(sys.executable).absolute().parent))}/"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _thinned(values: Sequence[float], width: int) -> Sequence[float]:
    if len(values) <= width:
        return values
    edges = [round(i * len(values) / width) for i in range(width + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
