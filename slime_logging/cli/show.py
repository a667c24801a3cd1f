"""`slime-logging show RUN`: the processes of a run, their rows, how far each tracker is, and its
samples.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slime_logging.cli.list import state_of
from slime_logging.cli.options import DirectoryOption, JsonOption, RunArgument
from slime_logging.cli.runs import (
    age,
    console,
    one_line,
    open_run,
    plain,
    print_json,
    told_plainly,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from slime_logging.delivery.status import DeliveryStatus, RunStatus
    from slime_logging.record.journal_status import JournalStatus

MAX_PROCESSES = 500
MAX_REASONS = 20
NUM_SAMPLES = 8


def show(
    run: RunArgument,
    samples: Annotated[
        bool, typer.Option("--samples", help="Its samples: prompts, completions, rewards.")
    ] = False,
    step: Annotated[
        float | None, typer.Option(help="Of this step. Default: the last that has samples.")
    ] = None,
    num: Annotated[int, typer.Option(min=1, help="How many samples at most.")] = NUM_SAMPLES,
    tracking_dir: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run: its processes, roles and rows, and what each tracker has confirmed.

    Works while the job runs and after it ended, however it ended; nothing is changed.

    Examples:

        slime-logging show @newest

        slime-logging show abc12345 --samples --step 20
    """
    from slime_logging.delivery.status import run_status

    with told_plainly():
        directory = open_run(run, tracking_dir)
        if samples:
            from slime_logging.cli.samples import show_samples

            show_samples(directory, step, num, as_json=as_json)
            return
        status = run_status(directory)
        state = state_of(directory, status.run)
    if as_json:
        print_json({**asdict(status), "state": state, "addresses": _addresses(status)})
        return
    _print(status, state)


def _print(status: RunStatus, state: str) -> None:
    out = console()
    run = status.run
    starts = f", started {run.num_starts} times" if run.num_starts > 1 else ""
    out.print(plain(f"Run {run.run_id} ({run.name}) of project {run.project}: {state}{starts}"))
    for name in ("tags", "notes", "job_type"):
        if text := run.options.get(f"tracking_{name}"):
            out.print(plain(f"{name.replace('_', ' ')}: {text}"))
    number = len(status.journals)
    num_processes = f"{number} process{'es' if number != 1 else ''}"
    out.print(plain(f"{status.path}: {status.num_rows:,} rows of {num_processes}"))
    out.print()
    out.print(_processes(status))
    if status.deliveries:
        out.print()
        out.print(_deliveries(status))
    if status.set_aside:
        out.print()
        out.print(_set_aside(status))
    addresses = _addresses(status)
    if addresses:
        out.print()
    for tracker, address in addresses.items():
        out.print(plain(f"{tracker}: {address}"), soft_wrap=True)
    for journal in status.unreadable:
        out.print(plain(f"Not read: {journal.name}: {journal.reason}"))
    for line in _advice(status):
        out.print(plain(line), soft_wrap=True)


def _processes(status: RunStatus) -> RenderableType:
    from slime_logging.cli.tables import Listing

    table = Listing(
        title="Processes",
        columns=("process", "start", "host", "pid", "rows", "last row", "ended", "damage"),
        numbers=frozenset({"start", "pid", "rows"}),
    )
    for journal in _most_telling(status.journals):
        opening = journal.opening
        cells = (
            opening.process + (" (primary)" if opening.is_primary and opening.role else ""),
            str(opening.start) if status.run.num_starts > 1 else "",
            opening.host,
            str(opening.pid),
            f"{journal.num_rows:,}",
            age(journal.last_s),
            "" if journal.exit_code is None else f"exit {journal.exit_code}",
            _damage(journal),
        )
        table.rows.append([one_line(cell) for cell in cells])
    if len(status.journals) > MAX_PROCESSES:
        num_more = len(status.journals) - MAX_PROCESSES
        table.notes.append(f"and {num_more:,} further processes: --json shows them all")
    return table


def _most_telling(journals: Sequence[JournalStatus]) -> list[JournalStatus]:
    """As many as a person may look at, in their order: of more those that a fault shows in, and
    the primaries, before the others.
    """

    def is_telling(journal: JournalStatus) -> bool:
        return bool(_damage(journal) or journal.exit_code or journal.opening.is_primary)

    places = sorted(range(len(journals)), key=lambda at: not is_telling(journals[at]))
    return [journals[at] for at in sorted(places[:MAX_PROCESSES])]


def _damage(journal: JournalStatus) -> str:
    damage = [f"{journal.num_torn_bytes} torn bytes"] if journal.num_torn_bytes else []
    damage += [f"{journal.num_damaged} damaged lines"] if journal.num_damaged else []
    damage += [f"{journal.num_missing} missing"] if journal.num_missing else []
    damage += [f"{journal.num_lost} values not kept"] if journal.num_lost else []
    return ", ".join(damage)


def _deliveries(status: RunStatus) -> RenderableType:
    from slime_logging.cli.tables import Listing

    counts = ("confirmed", "handed over", "left", "set aside")
    table = Listing(
        title="Trackers",
        columns=("tracker", "state", *counts, "updated"),
        numbers=frozenset(counts),
    )
    for delivery in status.deliveries:
        numbers = (
            delivery.num_confirmed,
            delivery.num_handed,
            delivery.num_left,
            delivery.num_set_aside,
        )
        texts = [delivery.destination, delivery.state, *(f"{n:,}" for n in numbers)]
        table.rows.append([one_line(text) for text in (*texts, age(delivery.updated_s))])
        if delivery.reason:
            table.notes.append(one_line(f"{delivery.destination}: {delivery.reason}"))
    return table


def _set_aside(status: RunStatus) -> RenderableType:
    from slime_logging.cli.tables import Listing

    table = Listing(
        title="Set aside: refused for good, and still in the journals",
        columns=("tracker", "rows", "why", "first row"),
        numbers=frozenset({"rows"}),
    )
    for item in status.set_aside[:MAX_REASONS]:
        cells = (item.destination, f"{item.num_rows:,}", item.reason, item.first_row_id)
        table.rows.append([one_line(cell) for cell in cells])
    if len(status.set_aside) > MAX_REASONS:
        num_more = len(status.set_aside) - MAX_REASONS
        table.notes.append(f"and {num_more:,} further reasons: --json shows them all")
    return table


def _addresses(status: RunStatus) -> dict[str, str]:
    """Where to look at the run, by tracker: a page's address, or the command that shows it."""
    from slime_logging.backends.place import address_of

    # Said anew, because the directory may have been moved since its job wrote run.json.
    facts = status.run.facts(status.path, status.run.options)
    found = {name: address_of(name, facts) for name in status.run.trackers}
    pages = {d.destination.partition("-")[0]: d.page for d in status.deliveries if d.page}
    return {name: a.command or a.place for name, a in found.items() if a is not None} | pages


def _advice(status: RunStatus) -> list[str]:
    """The command that delivers what is left, where one can."""
    left = [d for d in status.deliveries if d.num_left or d.state != "closed"]
    if status.is_running:
        return []
    begun = {delivery.destination.partition("-")[0] for delivery in status.deliveries}
    if status.num_rows and set(status.run.trackers) - begun - {"memory"}:
        names = ", ".join(name for name in status.run.trackers if name not in begun)
        command = shlex.join(["slime-logging", "sync", str(status.path)])
        return [f"Nothing was delivered to {names} yet. Deliver it with:", command]
    if not left:
        return []
    commands = dict.fromkeys(_sync(status, delivery) for delivery in left)
    names = ", ".join(delivery.destination for delivery in left)
    return [f"Not everything is confirmed by {names}. Deliver it with:", *commands]


def _sync(status: RunStatus, delivery: DeliveryStatus) -> str:
    """`sync` to this destination: with the options that lead there, where the job itself went
    elsewhere.
    """
    tracker, *place = delivery.destination.split("-")
    words: list[Any] = ["slime-logging", "sync", str(status.path)]
    own_mode = status.run.options.get(f"{tracker}_mode")
    is_elsewhere = "online" in place and own_mode not in ("online", "cloud")
    if tracker not in status.run.trackers or is_elsewhere:
        words += ["--to", tracker]
    if is_elsewhere:
        words += ["--online"] if tracker == "wandb" else ["-o", f"{tracker}_mode=cloud"]
    command = shlex.join(words)
    is_unknown = tracker == "mlflow" and place and not status.run.options.get("mlflow_tracking_uri")
    return f"{command} -o mlflow_tracking_uri=THE-SERVER" if is_unknown else command
