"""Tables for a terminal: what differs between roles, and what is wrong with a role file.

Policy: everything from a file or an argument is printed as plain text, without markup and control characters; nothing
is cut off without a mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slime_logging.config.diff import MISSING, Difference
from slime_logging.config.problems import Problem, looks_secret, shown_value
from slime_logging.config.targets import as_yaml

if TYPE_CHECKING:
    from rich.console import RenderableType

COLOURS: Mapping[str, str] = {"file": "green", "forced": "magenta", "preset": "magenta", "derived": "cyan", "": "dim"}
"""Why a role has a value -> its colour."""


def differences_table(differences: Sequence[Difference], roles: Sequence[str], title: str) -> RenderableType:
    """One line a key: the base, each role, and why; a role's value that equals the base's is dim.

    Args:
        differences: What differs; roles: The columns, in order; title: Stands above the table.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    has_base = any(difference.base is not MISSING for difference in differences)
    table.add_column("argument", no_wrap=True)
    for name in (*(("base",) if has_base else ()), *roles, "why"):
        table.add_column(name, overflow="fold")
    for item in differences:
        cells = [Text(item.key, style="bold")]
        if has_base:
            cells.append(Text(cell(item.key, item.base)))
        cells += [
            Text(cell(item.key, item.values.get(role, MISSING)), style=COLOURS.get(item.sources.get(role, ""), ""))
            for role in roles
        ]
        cells.append(Text(", ".join(f"{role}: {source}" for role, source in item.sources.items())))
        table.add_row(*cells)
    return table


def cell(key: str, value: Any) -> str:
    """A value as text for a table, hidden under a secret-looking name."""
    if looks_secret(key):
        return "<hidden>"
    return value if value is MISSING else shown_value(key, as_yaml(value))


def problems_text(path: str, problems: Sequence[Problem]) -> RenderableType:
    """The mistakes of a role file, in colour, in the words of the exception."""
    from rich.text import Text

    from slime_logging.config.problems import message

    text = Text(message(path, problems))
    text.highlight_regex(r"(?m)^ +why:", "yellow")
    text.highlight_regex(r"(?m)^ +fix:", "green")
    text.highlight_regex(r"(?m)^  \d+\. .*$", "bold red")
    return text
