"""Tables for a terminal: what differs between roles, and what is wrong with a role file.

Policy: everything from a file or an argument is printed as plain text, without markup and control
characters; nothing is cut off without a mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slime_logging.layout.diff import MISSING, Difference
from slime_logging.roles.problems import Problem, looks_secret, shown, shown_value
from slime_logging.roles.targets import as_yaml

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

COLOURS: Mapping[str, str] = {
    "file": "green",
    "forced": "magenta",
    "preset": "magenta",
    "derived": "cyan",
    "": "dim",
}
"""Why a role has a value -> its colour."""


@dataclass(kw_only=True)
class Listing:
    """Rows of named cells: a table where the width is enough. Rows that are too wide for it stand
    below it, each with its cells below each other, so that no word is broken and nothing is cut.

    A column without anything in it is left out; where the width is not enough, so are those of
    `less_wanted`, the first one first, which is told. `notes` stand under it, a line each.
    """

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Text | str]] = field(default_factory=list)
    numbers: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    less_wanted: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, and the rows that do not fit into it."""
        from rich.text import Text

        rows = [[c if isinstance(c, Text) else Text(c) for c in row] for row in self.rows]
        used = [i for i in range(len(self.columns)) if not i or any(str(row[i]) for row in rows)]
        left_out: list[str] = []
        for name in (None, *self.less_wanted):
            if name is not None and self.columns.index(name) in used:
                used.remove(self.columns.index(name))
                left_out.append(name)
            names = [self.columns[i] for i in used]
            cells = [[row[i] for i in used] for row in rows]
            fitting, wide = _split(cells, names, options.max_width)
            if not wide:
                break
        if self.title:
            yield Text(self.title, style="bold")
        if fitting:
            yield self._table(fitting, names)
        for row in wide:
            yield from _below_each_other(row, names)
        notes = [f"left out for the width: {', '.join(left_out)}"] if left_out else []
        for note in (*self.notes, *notes):
            yield Text(note, overflow="fold")

    def _table(self, rows: list[list[Text]], names: list[str]) -> RenderableType:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        filled = [i for i in range(len(names)) if not i or any(str(row[i]) for row in rows)]
        for i in filled:
            justify: Any = "right" if names[i] in self.numbers else "left"
            table.add_column(Text(names[i]), justify=justify, no_wrap=True)
        for row in rows:
            table.add_row(*(row[i] for i in filled))
        return table


_BETWEEN_COLUMNS = 3


def _split(
    rows: list[list[Text]], names: list[str], width: int
) -> tuple[list[list[Text]], list[list[Text]]]:
    """The rows that make a table of this width, and the others, both in their order: those with
    the widest cells are left out, and all of them where less than half would stay.
    """
    from rich.cells import cell_len

    sizes = [[max(map(cell_len, str(c).split("\n"))) for c in row] for row in rows]
    kept = list(range(len(rows)))
    while kept:
        columns = [
            max(cell_len(name), *(sizes[n][i] for n in kept)) for i, name in enumerate(names)
        ]
        if sum(columns) + _BETWEEN_COLUMNS * (len(names) - 1) <= width:
            break
        widest = max(range(len(names)), key=lambda i: columns[i] - cell_len(names[i]))
        longest = max(sizes[n][widest] for n in kept)
        kept = [n for n in kept if sizes[n][widest] < longest]
        if 2 * len(kept) < len(rows):
            kept = []
    return [rows[n] for n in kept], [row for n, row in enumerate(rows) if n not in set(kept)]


def _below_each_other(row: list[Text], names: list[str]) -> RenderResult:
    from rich.padding import Padding
    from rich.text import Text

    margin = max(map(len, names[1:]), default=0)
    head = row[0].copy()
    head.stylize("bold")
    head.overflow = "fold"
    yield head
    for name, cell_text in zip(names[1:], row[1:], strict=True):
        if str(cell_text):
            line = Text(f"{name:<{margin}}  ", style="dim", overflow="fold")
            yield Padding(line.append_text(cell_text), (0, 0, 0, 2), expand=False)


def differences_table(
    differences: Sequence[Difference], roles: Sequence[str], title: str
) -> RenderableType:
    """One line a key: the base, each role, and what set a value that the role file did not;
    unchanged values are dim.

    Args:
        differences: What differs; roles: The columns, in order; title: Stands above the table.
    """
    from rich.text import Text

    has_base = any(difference.base is not MISSING for difference in differences)
    names = ("argument", *(("base",) if has_base else ()), *map(shown, roles), "why")
    table = Listing(title=shown(title), columns=names)
    for item in differences:
        cells = [Text(shown(item.key), style="bold")]
        if has_base:
            cells.append(Text(cell(item.key, item.base)))
        cells += [
            Text(
                cell(item.key, item.values.get(role, MISSING)),
                style=COLOURS.get(item.sources.get(role, ""), ""),
            )
            for role in roles
        ]
        cells.append(Text(shown(_why(item.sources))))
        table.rows.append(cells)
    return table


def _why(sources: Mapping[str, str]) -> str:
    """What explains values that no role file wrote: one word where all agree, so that 80 columns
    are enough.
    """
    unwritten = {role: source for role, source in sources.items() if source != "file"}
    if len(set(unwritten.values())) == 1:
        return next(iter(unwritten.values()))
    return ", ".join(f"{role}: {source}" for role, source in unwritten.items())


def cell(key: str, value: Any) -> str:
    """A value as text for a table, hidden under a secret-looking name."""
    if looks_secret(key):
        return "<hidden>"
    return value if value is MISSING else shown_value(key, as_yaml(value))


def problems_text(path: str, problems: Sequence[Problem]) -> RenderableType:
    """The mistakes of a role file, in colour, in the words of the exception."""
    from rich.text import Text

    from slime_logging.roles.problems import message

    text = Text(message(path, problems))
    text.highlight_regex(r"(?m)^ +why:", "yellow")
    text.highlight_regex(r"(?m)^ +fix:", "green")
    text.highlight_regex(r"(?m)^  \d+\. .*$", "bold red")
    return text
