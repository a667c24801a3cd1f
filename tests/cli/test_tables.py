"""Tables for a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from slime_logging.cli.tables import cell, differences_table, problems_text
from slime_logging.layout.diff import MISSING, Difference
from slime_logging.roles.problems import Problem


def printed(what: object) -> str:
    out = io.StringIO()
    Console(file=out, width=120, color_system=None).print(what)
    return out.getvalue()


def test_a_line_for_each_difference() -> None:
    """Argument, base, each role, and why."""
    item = Difference(
        key="lr", base=1, values={"actor": 1, "critic": 2}, sources={"critic": "file"}
    )
    text = printed(differences_table([item], ("actor", "critic"), "title"))
    assert "title" in text
    row = next(line for line in text.splitlines() if "lr" in line)
    assert [part.strip() for part in row.split("│")[1:-1]] == ["lr", "1", "1", "2", ""]


def test_without_a_base_there_is_no_column_for_it() -> None:
    """A run's configuration does not have the base of every argument."""
    item = Difference(key="lr", base=MISSING, values={"actor": 1, "critic": 2}, sources={})
    assert "base" not in printed(differences_table([item], ("actor", "critic"), "t"))


def test_secrets_markup_and_control_characters_are_not_printed() -> None:
    """What is in a value stays text."""
    assert cell("hf_token", "s3cr3t") == "<hidden>"
    assert cell("save", "[red]x\x1b[2J") == "[red]x\\x1b[2J"


def test_problems_in_the_words_of_the_exception() -> None:
    """The same message, in colour where there is colour."""
    text = printed(
        problems_text("r.yaml", [Problem(line=1, column=2, text="a", reason="b", fix="c")])
    )
    assert "why: b" in text
    assert "r.yaml:1:2 (line 1, column 2)" in text
