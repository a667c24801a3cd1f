"""Tables for a terminal: what differs between roles, and what is wrong with a role file.

Policy: everything from a file or an argument is printed as plain text, without markup and control
characters; nothing is cut off without a mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slime_logging.layout.diff import MISSING, Difference
from slime_logging.roles.problems import Problem, looks_secret, shown, shown_value
from slime_logging.roles.targets import as_yaml

if TYPE_CHECKING:
    from rich.console import RenderableType

COLOURS: Mapping[str, str] = {
    "file": "green",
    "forced": "magenta",
    "preset": "magenta",
    "derived": "cyan",
    "": "dim",
}
"""Why a role has a value -> its colour."""


def differences_table(
    differences: Sequence[Difference], roles: Sequence[str], title: str
) -> RenderableType:
    """One line a key: the base, each role, and what set a value that the role file did not;
    unchanged values are dim.

    Args:
        differences: What differs; roles: The columns, in order; title: Stands above the table.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(shown(title)), title_justify="left")
    has_base = any(difference.base is not MISSING for difference in differences)
    table.add_column("argument", no_wrap=True)
    for name in (*(("base",) if has_base else ()), *roles, "why"):
        table.add_column(Text(shown(name)), overflow="fold")
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
        table.add_row(*cells)
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
