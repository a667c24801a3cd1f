"""`slime-logging show RUN`: the processes of a run, their rows, and how far each tracker is."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.cli.runs import (
    DirectoryOption,
    RunArgument,
    open_run,
    plain,
    print_json,
    told_plainly,
)

if TYPE_CHECKING:
    from rich.table import Table

    from slime_logging.delivery.status import RunStatus

MAX_REASONS = 20


def show(
    run: RunArgument,
    tracking_dir: DirectoryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Show a run: its processes, roles and rows, and what each tracker has confirmed.

    Works while the job runs and after it ended, however it ended; nothing is changed.
    """
    from slime_logging.delivery.status import run_status

    with told_plainly():
        status = run_status(open_run(run, tracking_dir))
    if as_json:
        print_json(asdict(status))
        return
    _print(status)


def _print(status: RunStatus) -> None:
    from rich.console import Console

    console = Console()
    run = status.run
    state = "running" if status.is_running else "not running"
    console.print(
        plain(
            f"Run {run.run_id} ({run.name}), project {run.project}, {state}, start {run.num_starts}"
        )
    )
    console.print(
        plain(f"{status.path}: {status.num_rows:,} rows of {len(status.journals)} processes")
    )
    console.print(_processes(status))
    console.print(_deliveries(status))
    if status.set_aside:
        console.print(_set_aside(status))
    for line in _advice(status):
        console.print(plain(line))


def _processes(status: RunStatus) -> Table:
    from rich.table import Table

    table = Table(title="Processes", title_justify="left")
    for name in ("process", "role", "start", "host", "pid", "rows", "last row", "ended", "damage"):
        table.add_column(name, justify="right" if name in ("start", "pid", "rows") else "left")
    for journal in status.journals:
        opening = journal.opening
        damage = [f"{journal.num_torn_bytes} torn bytes"] if journal.num_torn_bytes else []
        damage += [f"{journal.num_damaged} damaged lines"] if journal.num_damaged else []
        damage += [f"{journal.num_missing} missing"] if journal.num_missing else []
        table.add_row(
            plain("primary" if opening.is_primary else "secondary"),
            plain(opening.role or "-"),
            str(opening.start),
            plain(opening.host),
            str(opening.pid),
            f"{journal.num_rows:,}",
            _age(journal.last_s),
            "-" if journal.exit_code is None else f"exit {journal.exit_code}",
            plain(", ".join(damage) or "-"),
        )
    return table


def _deliveries(status: RunStatus) -> Table:
    from rich.table import Table

    table = Table(title="Trackers", title_justify="left")
    for name in (
        "tracker",
        "state",
        "confirmed",
        "handed over",
        "left",
        "set aside",
        "updated",
        "reason",
    ):
        table.add_column(
            name,
            justify=(
                "right" if name in ("confirmed", "handed over", "left", "set aside") else "left"
            ),
        )
    for delivery in status.deliveries:
        table.add_row(
            plain(delivery.destination),
            plain(delivery.state),
            f"{delivery.num_confirmed:,}",
            f"{delivery.num_handed:,}",
            f"{delivery.num_left:,}",
            f"{delivery.num_set_aside:,}",
            _age(delivery.updated_s),
            plain(delivery.reason or "-"),
        )
    return table


def _set_aside(status: RunStatus) -> Table:
    from rich.table import Table

    table = Table(
        title="Set aside: refused for good, and still in the journals", title_justify="left"
    )
    for name in ("tracker", "rows", "why", "first row"):
        table.add_column(name, justify="right" if name == "rows" else "left", overflow="fold")
    for item in status.set_aside[:MAX_REASONS]:
        table.add_row(
            plain(item.destination),
            f"{item.num_rows:,}",
            plain(item.reason),
            plain(item.first_row_id),
        )
    if len(status.set_aside) > MAX_REASONS:
        table.caption = (
            f"and {len(status.set_aside) - MAX_REASONS:,} further reasons: --json shows them all"
        )
    return table


def _advice(status: RunStatus) -> list[str]:
    left = [d.destination for d in status.deliveries if d.num_left or d.state != "closed"]
    if not left or status.is_running:
        return []
    return [
        f"Not everything is confirmed by {', '.join(left)}. Deliver it with: slime-logging sync"
        f" {status.path}"
    ]


def _age(time_s: float) -> str:
    seconds = time.time() - time_s
    if time_s <= 0:
        return "-"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"
