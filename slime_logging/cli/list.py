"""`slime-logging list`: the runs of a tracking directory beside each other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slime_logging.cli.options import DirectoryOption, JsonOption
from slime_logging.cli.runs import (
    age,
    console,
    one_line,
    print_json,
    runs_directory,
    told_plainly,
)
from slime_logging.errors import RunNotFoundError, SettingsError

if TYPE_CHECKING:
    from slime_logging.record.lasts import LastValue
    from slime_logging.record.run import RunDirectory, RunFile

REWARDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:.*/)?raw_reward",
        r"(?:.*/)?rewards?",
        r"(?:.*/)?rewards?/mean",
        r"(?:.*/)?score/mean",
        r"eval/[^/]+",
    )
)
"""What is taken for a run's reward where no metric is named, the first that it has."""

COLUMNS = ("run", "name", "project", "roles", "state", "rows", "metric", "value", "step", "age")
NUMBERS = frozenset({"rows", "value", "step", "age"})


Metric = Annotated[
    str | None, typer.Option("--metric", help="Whose last value is shown. Default: the reward.")
]
Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="TEXT|COLUMN=TEXT",
        help="Runs with this text in them, or in one column; repeatable: all must hold.",
    ),
]
Sort = Annotated[str, typer.Option(help=f"By which column: {', '.join(COLUMNS)}.")]
Reverse = Annotated[bool, typer.Option("--reverse", help="The other way round.")]


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A run as `list` shows it. Times are Unix seconds; `value` is the last one of `metric`, None
    where the run has none.
    """

    run: str
    name: str
    project: str
    group: str | None
    tags: str
    roles: tuple[str, ...]
    trackers: tuple[str, ...]
    state: str
    rows: int
    metric: str | None
    value: float | None
    step: float | None
    created_s: float
    path: str


def list_runs(
    metric: Metric = None,
    only: Filter = None,
    sort: Sort = "age",
    reverse: Reverse = False,
    tracking_dir: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs of a tracking directory: what each is, how it ended, its last reward.

    With `--sort value` the best run comes first.

    Examples:

        slime-logging list --sort value

        slime-logging list --metric eval/math --filter state=finished
    """
    with told_plainly():
        directory = runs_directory(tracking_dir)
        found, unreadable = _read(directory, metric)
        found = [run for run in found if all(_holds(run, text) for text in only or ())]
        found.sort(key=_order(sort), reverse=not reverse if sort in _LARGEST_FIRST else reverse)
        found.sort(key=lambda run: sort in ("value", "step") and getattr(run, sort) is None)
    if as_json:
        print_json([asdict(run) for run in found])
    else:
        _print(found, directory, metric)
    for reason in unreadable:
        console(is_error=True).print(one_line(f"left out: {reason}"), markup=False)


_LARGEST_FIRST = ("age", "rows", "value", "step")


def _read(directory: Path, metric: str | None) -> tuple[list[Listed], list[str]]:
    from slime_logging.record.finding import run_directories

    choose: Callable[[str], int | None] = _reward_rank
    if metric is not None:
        choose = {metric: 0}.get
    found, unreadable = [], []
    for run in run_directories(directory):
        try:
            found.append(_listed(run, choose))
        except (RunNotFoundError, OSError) as error:
            unreadable.append(str(error))
    return found, unreadable


def _listed(directory: RunDirectory, choose: Callable[[str], int | None]) -> Listed:
    from slime_logging.record.lasts import last_value
    from slime_logging.record.reading import count_rows

    run = directory.read()
    last: LastValue | None = last_value(directory, choose)
    return Listed(
        run=directory.path.name,
        name=run.name,
        project=run.project,
        group=run.group,
        tags=str(run.options.get("tracking_tags") or ""),
        roles=_roles(directory) or run.roles,
        trackers=run.trackers,
        state=state_of(directory, run),
        rows=sum(map(count_rows, directory.journal_paths())),
        metric=last.name if last else None,
        value=last.value if last else None,
        step=last.step if last else None,
        created_s=run.created_s,
        path=str(directory.path),
    )


def _roles(directory: RunDirectory) -> tuple[str, ...]:
    """The roles with which processes joined, in the order of their start, but for `system`."""
    from slime_logging.record.reading import openings

    known = (opening for _, opening in openings(directory))
    joined = sorted((o.time_s, o.role) for o in known if o.role and o.owner is None)
    return tuple(dict.fromkeys(role for _, role in joined if role != "system"))


def state_of(directory: RunDirectory, run: RunFile) -> str:
    """`running`, `finished`, `failed (exit code N)`, whatever else its delivery recorded, or
    `died`: nobody said anything of an end.
    """
    from slime_logging.delivery.ending import Ending, read_ending
    from slime_logging.record.lasts import exit_code

    if directory.locks.has_living_primary:
        return "running"
    ending = read_ending(directory, run.num_starts)
    code = exit_code(directory, run.num_starts) if ending is None else None
    if ending is None and code is not None:
        ending = Ending.of_code(run.num_starts, code)
    if ending is None:
        return "died"
    return f"{ending.state} (exit code {ending.exit_code})" if ending.exit_code else ending.state


def _reward_rank(name: str) -> int | None:
    return next((n for n, pattern in enumerate(REWARDS) if pattern.fullmatch(name)), None)


def _holds(run: Listed, text: str) -> bool:
    column, is_one, wanted = text.partition("=")
    if not is_one:
        return any(text.lower() in _text(value) for value in asdict(run).values())
    if column not in (fields := asdict(run)):
        raise SettingsError(
            f"--filter {text}: no column {column!r}; there are: {', '.join(fields)}."
        )
    return wanted.lower() in _text(fields[column])


def _text(value: Any) -> str:
    return (" ".join(value) if isinstance(value, tuple) else str(value)).lower()


def _order(column: str) -> Callable[[Listed], Any]:
    if column not in COLUMNS:
        raise SettingsError(f"--sort {column}: no such column; there are: {', '.join(COLUMNS)}.")
    name = "created_s" if column == "age" else column
    return lambda run: getattr(run, name) if getattr(run, name) is not None else 0


def _print(found: list[Listed], directory: Path, metric: str | None) -> None:
    from slime_logging.cli.tables import Listing

    if not found:
        console().print(one_line(f"no runs in {directory}, or none that was asked for."))
        return
    table = Listing(title=f"Runs in {directory}", columns=COLUMNS, numbers=NUMBERS)
    table.less_wanted = ("roles", "project", "step", "rows")
    for run in found:
        is_named = run.name not in (run.run, f"{run.group or run.project}-{run.run}")
        cells = (
            run.run,
            run.name if is_named else "",
            run.project,
            " ".join(run.roles),
            run.state,
            f"{run.rows:,}",
            "" if metric else run.metric or "",
            "" if run.value is None else f"{run.value:.6g}",
            "" if run.step is None else f"{run.step:g}",
            age(run.created_s),
        )
        table.rows.append([one_line(cell) for cell in cells])
    console().print(table)
