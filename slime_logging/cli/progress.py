"""Bars of rows on stderr; nothing where that is no terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def rows_progress(*, is_transient: bool = False) -> Progress:
    """A bar for each task: its description, the rows that are done of all, the time.

    Args:
        is_transient: whether the bars vanish at the end.
    """
    errors = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
    )
    return Progress(
        *columns, console=errors, transient=is_transient, disable=not errors.is_terminal
    )
