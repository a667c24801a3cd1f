"""`slime-logging watch RUN`: a living run in the terminal, from its journals.

Policy: only what was added since the last look is read. It ends when the run does; Ctrl-C ends it
at any time. Without a terminal it prints a line now and then.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.cli.list import REWARDS, state_of
from slime_logging.cli.options import DirectoryOption, RunArgument
from slime_logging.cli.runs import (
    age,
    console,
    one_line,
    open_run,
    told_plainly,
)
from slime_logging.record.entries import Opening

if TYPE_CHECKING:
    from rich.console import RenderableType

    from slime_logging.record.journal_reader import JournalReader
    from slime_logging.record.run import RunDirectory

NUM_METRICS = 14
NUM_KEPT = 400
RATE_S = 30.0


def watch(
    run: RunArgument,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="One look, and no more.")] = False,
    tracking_dir: DirectoryOption = None,
) -> None:
    """Watch a run: reward, losses, rates, processes, and how far the trackers are behind.

    Ends when the run ends.
    """
    from rich.live import Live

    with told_plainly(), suppress(KeyboardInterrupt):
        view = _View(open_run(run, tracking_dir))
        out = console()
        view.look()
        if once or not out.is_terminal:
            out.print(view.line() if not once else view.picture())
            while not once and view.is_running:
                time.sleep(interval)
                view.look()
                out.print(view.line())
            return
        with Live(view.picture(), console=out, auto_refresh=False) as live:
            while view.is_running:
                time.sleep(interval)
                view.look()
                live.update(view.picture(), refresh=True)


class _View:
    """What is known of a run so far."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._run = directory.read()
        self._readers: dict[str, JournalReader] = {}
        self._courses: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=NUM_KEPT))
        self._steps: dict[str, float] = {}
        self._rows: dict[str, tuple[str, int, float]] = {}
        self._seen: deque[tuple[float, int]] = deque()
        self._num_rows = 0
        self.is_running = True

    def look(self) -> None:
        """Read what was added."""
        from slime_logging.record.journal_reader import JournalReader
        from slime_logging.record.reading import read_all

        self.is_running = self._directory.locks.has_living_primary  # before the last rows
        for path in self._directory.journal_paths():
            if path.name not in self._readers:
                with suppress(OSError):
                    self._readers[path.name] = JournalReader(path)
        for name, reader in self._readers.items():
            for _, record in read_all(reader):
                self._take(name, record)
        self._seen.append((time.monotonic(), self._num_rows))
        while len(self._seen) > 2 and self._seen[-1][0] - self._seen[0][0] > RATE_S:
            self._seen.popleft()

    def _take(self, name: str, record: dict[str, object]) -> None:
        process, num_rows, last_s = self._rows.get(name, ("", 0, 0.0))
        if record.get("kind") == "open":
            with suppress(ValueError):
                process = Opening.of(record).process
        metrics, time_s = record.get("metrics"), record.get("time_s")
        if record.get("kind") == "row" and isinstance(metrics, dict):
            num_rows, self._num_rows = num_rows + 1, self._num_rows + 1
            last_s = float(time_s) if isinstance(time_s, (int, float)) else last_s
            step_key, step = record.get("step_key"), record.get("step")
            if isinstance(step_key, str) and isinstance(step, (int, float)):
                self._steps[step_key] = step
            for metric, value in metrics.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self._courses[metric].append(value)
        self._rows[name] = (process, num_rows, last_s)

    def line(self) -> str:
        """The state in one line."""
        numbers = [f"{name} {self._courses[name][-1]:.4g}" for name in self._chosen()[:4]]
        state = state_of(self._directory, self._run)
        return one_line(
            f"{self._run.run_id} {state}: {self._num_rows:,} rows, {', '.join(numbers)}"
        )

    def picture(self) -> RenderableType:
        """The state as a screen."""
        from rich.console import Group
        from rich.text import Text

        run, state = self._run, state_of(self._directory, self._run)
        head = f"Run {run.run_id} ({run.name}), {state}, began {age(run.created_s)}"
        found = sorted((k, s) for k, s in self._steps.items() if not k.startswith("system/"))
        steps = "  ".join(f"{key} {step:g}" for key, step in found)
        rate = f"{self._num_rows:,} rows, {self._rate():.1f} rows/s   {steps}"
        return Group(
            Text(one_line(head), style="bold"),
            Text(one_line(rate)),
            self._metrics(),
            self._processes(),
            self._trackers(),
        )

    def _rate(self) -> float:
        (first_s, before), (last_s, now) = self._seen[0], self._seen[-1]
        return (now - before) / (last_s - first_s) if last_s > first_s else 0.0

    def _chosen(self) -> list[str]:
        """Reward first, then losses, then whatever else there is; not what the hosts measure."""

        def rank(name: str) -> tuple[int, str]:
            reward = next((n for n, one in enumerate(REWARDS) if one.fullmatch(name)), None)
            if reward is not None:
                return reward, name
            is_loss = "loss" in name.rpartition("/")[2]
            return (10 if is_loss else 30 if name.startswith("perf/") else 20), name

        return sorted((n for n in self._courses if not n.startswith("system/")), key=rank)

    def _metrics(self) -> RenderableType:
        from slime_logging.cli.tables import Listing
        from slime_logging.demo.screen import sparkline

        table = Listing(title="", columns=("metric", "last", "course"), numbers=frozenset({"last"}))
        for name in self._chosen()[:NUM_METRICS]:
            course = self._courses[name]
            table.rows.append([one_line(name), f"{course[-1]:.6g}", sparkline(list(course), 24)])
        return table

    def _processes(self) -> RenderableType:
        from slime_logging.cli.tables import Listing

        table = Listing(
            title="", columns=("process", "rows", "last row"), numbers=frozenset({"rows"})
        )
        for process, num_rows, last_s in self._rows.values():
            table.rows.append([one_line(process), f"{num_rows:,}", age(last_s)])
        return table

    def _trackers(self) -> RenderableType:
        from slime_logging.cli.tables import Listing
        from slime_logging.delivery.status import delivery_statuses

        table = Listing(
            title="", columns=("tracker", "state", "behind"), numbers=frozenset({"behind"})
        )
        for one in delivery_statuses(self._directory, self._num_rows):
            table.rows.append([one_line(one.destination), one_line(one.state), f"{one.num_left:,}"])
            if one.reason:
                table.notes.append(one_line(f"{one.destination}: {one.reason}"))
        return table
