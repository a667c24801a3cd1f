"""`slime-logging sync RUN`: deliver what is left of a run, or all of it to another tracker."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.cli.follow import follow
from slime_logging.cli.options import DirectoryOption, OnlineOption, TrackerOptions
from slime_logging.cli.runs import (
    check_trackers,
    console,
    facts_of,
    open_run,
    parse_options,
    plain,
    redactor_of,
    told_plainly,
)
from slime_logging.errors import SettingsError

if TYPE_CHECKING:
    from slime_logging.delivery.delivery import Delivery
    from slime_logging.delivery.result import DeliveryResult
    from slime_logging.record.run import RunDirectory, RunFile
    from slime_logging.values.run import RunFacts

DEFAULT_TIMEOUT_S = 600.0

RunOrDirectory = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The run's directory, its id or the beginning of it, or @newest. With --follow also a"
        " directory with runs below it.",
    ),
]
To = Annotated[
    list[str] | None, typer.Option(help="Tracker(s) to deliver to. Default: those of the job.")
]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair", help="Ask the tracker what it holds, and send every row that it lacks."
    ),
]
Following = Annotated[
    bool,
    typer.Option(
        "--follow",
        help="Deliver live, until Ctrl-C: a run, or all runs below a directory, new ones too.",
    ),
]
Timeout = Annotated[float, typer.Option(help="Give up on a tracker after so many seconds.")]


def sync(
    run: RunOrDirectory,
    to: To = None,
    online: OnlineOption = False,
    repair: Repair = False,
    is_following: Following = False,
    option: TrackerOptions = None,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    tracking_dir: DirectoryOption = None,
) -> None:
    """Deliver what is left of a run, or all of it to another tracker.

    May be repeated and interrupted at will: what a tracker holds already is not sent again. Keys
    come from the environment (WANDB_API_KEY, ...).

    With --follow it stays, one line of status a run: for jobs whose nodes have no internet
    (--tracking-delivery off), on a login node that sees their directory.

    Examples:

        slime-logging sync tracking/abc12345

        slime-logging sync --follow tracking --online

        slime-logging sync abc12345 --to mlflow -o mlflow_tracking_uri=http://127.0.0.1:5000
    """
    overrides: dict[str, object] = {
        "wandb_mode": "online" if online else None,
        **parse_options(option or []),
    }
    with told_plainly():
        if is_following:
            if repair:
                raise SettingsError("--follow with --repair: repair one run without --follow.")
            follow(run, tracking_dir, to or (), overrides, timeout)
            return
        results = _sync(open_run(run, tracking_dir), to, overrides, timeout, is_repair=repair)
    _report(results)
    if not all(result.is_complete for result in results):
        raise typer.Exit(1)


def _sync(
    directory: RunDirectory,
    to: list[str] | None,
    overrides: dict[str, object],
    timeout_s: float,
    *,
    is_repair: bool,
) -> list[DeliveryResult]:
    run = directory.read()
    trackers = tuple(to or run.trackers)
    check_trackers(trackers)
    facts = facts_of(directory, run, overrides, trackers, is_writing=True)
    _claim(directory, timeout_s)
    try:
        deliveries = _deliveries(directory, run, trackers, facts, is_repair=is_repair)
        return _deliver(directory, run, deliveries, timeout_s)
    finally:
        directory.locks.unlock()


def _deliveries(
    directory: RunDirectory,
    run: RunFile,
    trackers: tuple[str, ...],
    facts: RunFacts,
    *,
    is_repair: bool,
) -> list[Delivery]:
    from slime_logging.backends.base import Writer
    from slime_logging.delivery.assignment import Assignment
    from slime_logging.delivery.delivery import Delivery
    from slime_logging.redaction.redact import safe_exception_text

    redactor = redactor_of(facts.options)
    return [
        Delivery(
            Assignment(
                tracker=name,
                directory=directory,
                facts=facts,
                writer=Writer(label=f"sync-{secrets.token_hex(8)}", is_sync=True),
                start=run.num_starts,
                is_repair=is_repair,
            ),
            safe_text=lambda error: safe_exception_text(redactor, error),
        )
        for name in trackers
    ]


def _deliver(
    directory: RunDirectory, run: RunFile, deliveries: list[Delivery], timeout_s: float
) -> list[DeliveryResult]:
    from slime_logging.delivery.status import run_status

    num_rows = run_status(directory).num_rows
    exit_code = _exit_code(directory, run.num_starts)
    for delivery in deliveries:
        delivery.start()
        delivery.stop(exit_code, timeout_s)
    _show_progress(deliveries, num_rows, timeout_s)
    return [delivery.wait() for delivery in deliveries]


def _exit_code(directory: RunDirectory, start: int) -> int | None:
    """How a job ended, as far as its directory tells; None while it runs."""
    from slime_logging.delivery.ending import find_ending, read_ending

    if directory.locks.has_living_primary:
        return None
    ending = read_ending(directory, start)
    return (ending or find_ending(directory, start, None, is_terminated=False)).exit_code


def _claim(directory: RunDirectory, timeout_s: float) -> None:
    """Be the only one that delivers; where the job is over, wait for its own delivery to end."""
    import time

    from slime_logging.errors import RunConflictError

    deadline_s = time.monotonic() + timeout_s
    has_told = False
    while True:
        try:
            directory.locks.claim_delivery()
        except RunConflictError:
            if directory.locks.has_living_primary or time.monotonic() > deadline_s:
                raise
            if not has_told:
                has_told = True
                typer.echo("The job's own delivery is still at work; waiting for it.", err=True)
            time.sleep(0.1)
        else:
            return


def _show_progress(deliveries: list[Delivery], num_rows: int, timeout_s: float) -> None:
    import time

    from slime_logging.cli.progress import rows_progress

    with rows_progress() as progress:
        tasks = {
            delivery: progress.add_task(delivery.name, total=num_rows) for delivery in deliveries
        }
        deadline = time.monotonic() + timeout_s
        is_going = True
        while is_going:
            is_going = any(d.is_running for d in deliveries) and time.monotonic() < deadline
            for delivery, task in tasks.items():
                progress.update(task, completed=delivery.num_handed)
            time.sleep(0.1 if is_going else 0)


def _report(results: list[DeliveryResult]) -> None:
    for r in results:
        if r.is_complete:
            aside = f", {r.num_set_aside} set aside for good" if r.num_set_aside else ""
            text = f"complete, {r.num_confirmed:,} rows{aside}"
        else:
            text = f"{r.state}, {r.num_left:,} rows left ({r.reason or 'no reason known'})"
        console().print(plain(f"{r.backend}: {text}"), soft_wrap=True)
