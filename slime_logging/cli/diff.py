"""`slime-logging diff RUN [RUN]`: what differs between the roles of a run, or between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from slime_logging.cli.options import DirectoryOption, JsonOption, RunArgument
from slime_logging.cli.runs import (
    console,
    one_line,
    open_run,
    print_json,
    told_plainly,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slime_logging.layout.diff import Difference
    from slime_logging.layout.runs import RunDifference
    from slime_logging.record.lasts import LastValue
    from slime_logging.record.run import RunDirectory

NUM_METRICS = 40
ROLES = ("actor", "critic")


def diff(
    run: RunArgument,
    other: Annotated[
        str | None, typer.Argument(metavar="RUN", help="A second run, to compare the two.")
    ] = None,
    tracking_dir: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what differs between the roles of a run, or between two runs: what each really used.

    With two runs: their configurations, role by role, with what a role file set, and the last
    values of their metrics.

    Examples:

        slime-logging diff @newest

        slime-logging diff abc12345 def67890
    """
    with told_plainly():
        directory = open_run(run, tracking_dir)
        second = open_run(other, tracking_dir) if other is not None else None
        if second is not None:
            _two(directory, second, as_json=as_json)
        else:
            _one(directory, as_json=as_json)


def _one(directory: RunDirectory, *, as_json: bool) -> None:
    from slime_logging.cli.tables import differences_table
    from slime_logging.delivery.status import journal_config
    from slime_logging.layout.diff import logged_differences

    roles, found = logged_differences(journal_config(directory, ROLES))
    if as_json:
        print_json([_row(item, "roles") for item in found])
        return
    if len(roles) < 2:
        name = directory.path.name
        text = f"{name} has one configuration, no roles that differ."
        text += f" Compare it: slime-logging diff {name} RUN"
        console().print(one_line(text), markup=False)
        return
    title = f"{directory.path.name}: what differs between {', '.join(roles)}"
    console().print(differences_table(found, roles, title))
    if not found:
        console().print("nothing: each used the same")


def _row(item: Difference, columns: str) -> dict[str, Any]:
    return {
        "argument": item.key,
        "base": item.base,
        columns: dict(item.values),
        "sources": dict(item.sources),
    }


def _two(first: RunDirectory, second: RunDirectory, *, as_json: bool) -> None:
    from slime_logging.delivery.status import journal_config
    from slime_logging.layout.runs import run_differences
    from slime_logging.record.lasts import last_values

    names = [first.path.name, second.path.name]
    if names[0] == names[1]:  # the same id in two tracking directories
        names = [str(first.path), str(second.path)]
    both = dict(zip(names, (first, second), strict=True))
    found = run_differences({name: journal_config(run, ROLES) for name, run in both.items()})
    lasts = {name: last_values(run) for name, run in both.items()}
    metrics = sorted({metric for of_run in lasts.values() for metric in of_run}, key=_order)
    if as_json:
        print_json(
            {
                "config": [
                    {"role": item.role or None, **_row(item.difference, "runs")} for item in found
                ],
                "metrics": {
                    metric: {name: _number(lasts[name].get(metric)) for name in names}
                    for metric in metrics
                },
            }
        )
        return
    console().print(_configuration(found, names))
    console().print()
    console().print(_metrics(metrics, names, lasts))


def _configuration(found: Sequence[RunDifference], names: Sequence[str]) -> Any:
    from slime_logging.cli.tables import Listing, cell
    from slime_logging.layout.diff import MISSING

    table = Listing(
        title="What differs in the configuration", columns=("argument", "role", *names, "why")
    )
    for item in found:
        key, values = item.difference.key, item.difference.values
        why = [
            f"{name}: role file" if source == "file" else f"{name}: {source}"
            for name, source in item.difference.sources.items()
            if source
        ]
        cells = (cell(key, values.get(name, MISSING)) for name in names)
        table.rows.append([*map(one_line, (key, item.role, *cells, ", ".join(why)))])
    if not found:
        table.notes.append("nothing: both used the same")
    return table


def _metrics(metrics: list[str], names: list[str], lasts: dict[str, dict[str, LastValue]]) -> Any:
    from slime_logging.cli.tables import Listing

    table = Listing(
        title="Last values of the metrics",
        columns=("metric", *names, "difference"),
        numbers=frozenset({*names, "difference"}),
    )
    for metric in metrics[:NUM_METRICS]:
        values = [_number(lasts[name].get(metric)) for name in names]
        a, b = values
        change = "" if a is None or b is None else f"{b - a:+.4g}"
        texts = ["-" if value is None else f"{value:.6g}" for value in values]
        table.rows.append([one_line(metric), *texts, change])
    if len(metrics) > NUM_METRICS:
        table.notes.append(
            f"and {len(metrics) - NUM_METRICS:,} further metrics: --json has them all"
        )
    return table


def _number(value: LastValue | None) -> float | None:
    return None if value is None else value.value


def _order(metric: str) -> tuple[int, str]:
    """Results first, what the machine did last."""
    first = ("rollout", "eval", "train", "explorer", "trainer")
    prefix = metric.partition("/")[0]
    last = {"perf": 8, "system": 9}.get(prefix, 7)
    return (first.index(prefix) if prefix in first else last, metric)
