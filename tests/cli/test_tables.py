"""Tables for a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from slime_logging.cli.tables import Listing, cell, differences_table, problems_text
from slime_logging.layout.diff import MISSING, Difference
from slime_logging.roles.problems import Problem


def printed(what: object, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(what)
    return out.getvalue()


def test_a_line_for_each_difference() -> None:
    """Argument, base, each role, and why."""
    item = Difference(
        key="lr", base=1, values={"actor": 1, "critic": 2}, sources={"critic": "file"}
    )
    text = printed(differences_table([item], ("actor", "critic"), "title"))
    assert "title" in text
    row = next(line for line in text.splitlines() if "lr" in line)
    assert row.split() == ["lr", "1", "1", "2"]


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


WIDE = Listing(
    title="t",
    columns=("name", "kind", "count", "reason"),
    numbers=frozenset({"count"}),
    rows=[("a", "x", "1", ""), ("b", "y", "22", "a" * 90 + " " + "b" * 60)],
    notes=["a note"],
)


@pytest.mark.parametrize("width", [20, 80, 120, 1000])
def test_nothing_is_cut_whatever_the_width(width: int) -> None:
    """What does not fit into the table stands below it; long texts are folded, and no line is too long."""
    text = printed(WIDE, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    joined = "".join(text.split())
    assert "a" * 90 + "b" * 60 in joined
    assert "a note" in " ".join(text.split())
    assert ("reason" in text.splitlines()[1]) == (width == 1000)


def test_less_wanted_columns_go_first_and_are_told() -> None:
    table = Listing(
        title="", columns=("a", "b", "c"), rows=[("1" * 10, "2" * 10, "3" * 10)], less_wanted=("b",)
    )
    assert "left out for the width: b" in printed(table, 30)
    assert "2222222222" not in printed(table, 30)
    assert "2222222222" in printed(table, 80)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_four_roles_break_no_word(width: int) -> None:
    item = Difference(
        key="lr_decay_style_of_the_optimizer",
        base="constant",
        values={role: f"cosine_{role}" for role in ("actor", "critic", "reference", "explorer")},
        sources={"actor": "file", "critic": "derived"},
    )
    text = printed(differences_table([item], tuple(item.values), "title"), width)
    for word in (item.key, "constant", *map(str, item.values.values()), "derived"):
        assert word in " ".join(text.split()), text
