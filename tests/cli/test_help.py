"""`--help` of every command: paragraphs fill the terminal's lines, whatever its width."""

from __future__ import annotations

from itertools import pairwise

import pytest
import typer.main
from typer.testing import CliRunner

from slime_logging.cli.app import app

GROUP = typer.main.get_command(app)
COMMANDS = [(name,) for name in GROUP.commands] + [("demo", "ppo"), ("demo", "explorer-trainer")]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("words", [(), *COMMANDS], ids=" ".join)
def test_help_is_folded_where_the_terminal_ends(words: tuple[str, ...], columns: int) -> None:
    """No line is longer, and none ends where only the source's does."""
    result = CliRunner().invoke(
        app, [*words, "--help"], env={"COLUMNS": str(columns), "NO_COLOR": "1"}
    )
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.output.splitlines()]
    assert max(map(len, lines)) <= columns
    prose = lines[: next(n for n, line in enumerate(lines) if line.startswith("╭"))]
    for line, after in pairwise(prose):
        if line and after and not line.startswith("     "):
            assert len(line) + 1 + len(after.split()[0]) >= columns, line
