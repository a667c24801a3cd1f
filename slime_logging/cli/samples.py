"""The samples of a run in the terminal: `slime-logging show RUN --samples`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slime_logging.cli.runs import console, one_line, plain, print_json
from slime_logging.redaction.redact import escape_terminal

if TYPE_CHECKING:
    from slime_logging.record.run import RunDirectory

MAX_SHOWN_CHARS = 4_000
"""Of a text in the terminal; `--json` has the whole of it."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of samples: of which step, under which name, in which file."""

    name: str
    step_key: str
    step: float
    role: str | None
    file: str
    time_s: float


def show_samples(directory: RunDirectory, step: float | None, limit: int, *, as_json: bool) -> None:
    """Print the samples of a step, of the last one where none is named; `limit` at most."""
    tables = sample_tables(directory)
    if not tables:
        text = f"{directory.path} has no samples: the job calls log_samples for them."
        console().print(plain(text))
        return
    wanted = step if step is not None else max(tables, key=lambda table: table.time_s).step
    chosen = [table for table in tables if table.step == wanted]
    if not chosen:
        steps = sorted({table.step for table in tables})
        there = f"there are {len(steps)} steps, {steps[0]:g} to {steps[-1]:g}."
        console().print(plain(f"no samples of step {wanted:g}; {there}"))
        return
    found = [one for table in chosen for one in _samples(directory, table)]
    if as_json:
        print_json(found[:limit])
        return
    for number, one in enumerate(found[:limit]):
        _print(number, one)
    if len(found) > limit:
        text = f"and {len(found) - limit:,} more of this step: --num {len(found)} shows them"
        console().print(plain(text))


def _samples(directory: RunDirectory, table: Table) -> list[dict[str, Any]]:
    """Those of a table; none, and a line that says why, where its file cannot be read."""
    from slime_logging.values.samples import read_samples

    of_table = {"name": table.name, "role": table.role, "step": table.step}
    try:
        return [{**of_table, "sample": one} for one in read_samples(directory.path, table.file)]
    except (OSError, ValueError) as error:
        console(is_error=True).print(plain(f"{table.file}: {error}"))
        return []


def sample_tables(directory: RunDirectory) -> list[Table]:
    """Every table of samples that the run's rows refer to, journal by journal, but for those that a
    later start replaced.
    """
    from slime_logging.delivery.rewind import rewinds_of
    from slime_logging.delivery.status import journal_rows
    from slime_logging.values.samples import references

    rewinds = rewinds_of(directory)
    return [
        Table(
            name=name,
            step_key=row.step_key,
            step=row.step,
            role=row.role,
            file=file,
            time_s=row.time_s,
        )
        for row in journal_rows(directory)
        if not rewinds.is_replaced(row)
        for name, file in references(row.metrics)
    ]


def _print(number: int, one: dict[str, Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    role = f" of {one['role']}" if one["role"] else ""
    out.print(
        Text(one_line(f"{one['name']}{role}, step {one['step']:g}, sample {number}"), style="bold")
    )
    texts = {name: value for name, value in one["sample"].items() if isinstance(value, str)}
    short = {name: value for name, value in one["sample"].items() if name not in texts}
    if short:
        out.print(
            Text("  " + one_line("  ".join(f"{name} {value}" for name, value in short.items())))
        )
    for name, value in texts.items():
        shown = escape_terminal(value[:MAX_SHOWN_CHARS])
        more = (
            f"... ({len(value):,} characters: --json has the whole)"
            if len(value) > MAX_SHOWN_CHARS
            else ""
        )
        out.print(Text(f"  {one_line(name)}", style="dim"))
        out.print(Padding(Text(shown + more, overflow="fold"), (0, 0, 0, 4), expand=False))
