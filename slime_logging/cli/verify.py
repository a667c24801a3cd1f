"""`slime-logging verify RUN ...`: read the trackers back and compare them with the journals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.cli.options import DirectoryOption, OnlineOption, RunsArgument, TrackerOptions
from slime_logging.cli.runs import (
    check_trackers,
    console,
    facts_of,
    open_run,
    parse_options,
    plain,
    told_plainly,
)

if TYPE_CHECKING:
    from slime_logging.delivery.verify import Verdict

NUM_SHOWN = 10
OF_OTHER_HOSTS = (
    "  what is unknown may be of other hosts, which kept their journals: name their directories too"
)
Of = Annotated[
    list[str] | None,
    typer.Option("--of", help="Tracker(s) to read back. Default: those of the job."),
]


def verify(
    run: RunsArgument,
    of: Of = None,
    online: OnlineOption = False,
    option: TrackerOptions = None,
    tracking_dir: DirectoryOption = None,
) -> None:
    """Read the trackers back and compare them with the journals: rows, configuration, media.

    Exit code 0 only if each is there once and equal. What is missing, doubled or different is
    printed; `slime-logging sync RUN --repair` sends what is missing. Where hosts share no disk,
    name the directories of all: their journals are read as one run. A role that was expected and
    never joined is told, and is not equal.
    """
    from slime_logging.delivery.verify import verify as compare
    from slime_logging.hosts.merge import SeenTogether
    from slime_logging.hosts.roles import roles_that_never_joined

    verdicts = []
    with told_plainly():
        directory = SeenTogether([open_run(each, tracking_dir) for each in run])
        description = directory.read()
        trackers = tuple(of or description.trackers)
        check_trackers(trackers)
        if not trackers:
            text = f"{directory.path} was delivered to no tracker: there is nothing to compare."
            console().print(plain(text))
        said = {"wandb_mode": "online" if online else None, **parse_options(option or [])}
        facts = facts_of(directory, description, said, trackers, is_writing=False)
        if is_running := directory.locks.has_living_primary:
            text = "The run is still running: what is on its way to a tracker is told as missing."
            console().print(plain(text))
        for name in trackers:
            verdicts.append(compare(directory, name, facts))
            _print(verdicts[-1], is_running=is_running)
        absent = () if is_running else roles_that_never_joined(directory)
    for role in absent:
        typer.echo(f"role {plain(role)}: never joined the run, or its journal is on another host")
    if absent or not all(verdict.is_equal for verdict in verdicts):
        raise typer.Exit(1)


def _print(verdict: Verdict, *, is_running: bool) -> None:
    out = console()
    rows = f"{verdict.num_rows:,} rows ({verdict.num_points:,} points)"
    rows += f", {verdict.num_dropped:,} dropped for a later start's" if verdict.num_dropped else ""
    head = f"{verdict.backend}: {rows}, {verdict.num_keys:,} config keys"
    head += f", {verdict.num_media:,} samples or images" if verdict.num_media else ""
    is_on_its_way = is_running and not (verdict.doubled or verdict.unknown or verdict.unreadable)
    word = "not all there yet" if is_on_its_way else "NOT EQUAL"
    out.print(plain(f"{head}: {'equal' if verdict.is_equal else word}"))
    lists = {
        "unreadable": [f"{j.name}: {j.reason}" for j in verdict.unreadable],
        "missing": [f"row {r.row_id} ({r.step_key} = {r.step})" for r in verdict.missing],
        "doubled": [str(point)[:200] for point in verdict.doubled],
        "media": [f"{text}: is not there as it was logged" for text in verdict.media],
        "unknown": [str(point)[:200] for point in verdict.unknown],
        "config": [
            f"{d.key}: should be {str(d.expected)[:100]}, "
            + ("is not there" if d.is_missing else f"is {str(d.held)[:100]}")
            for d in verdict.config
        ],
    }
    for title, lines in lists.items():
        if title == "unknown" and lines:
            out.print(plain(OF_OTHER_HOSTS))
        for line in lines[:NUM_SHOWN]:
            out.print(plain(f"  {title}: {line}"))
        if len(lines) > NUM_SHOWN:
            out.print(plain(f"  {title}: and {len(lines) - NUM_SHOWN:,} more"))
