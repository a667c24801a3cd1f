"""docs/roles.md says what the tables say."""

from __future__ import annotations

from pathlib import Path

from slime_logging.roles.megatron.derived import FOLLOWING, IMPLIED
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.megatron.requirements import ADVICE, REQUIREMENTS
from slime_logging.roles.rules import FORCED, IGNORED, PRESET, REJECTED, REJECTED_PREFIXES, TOPOLOGY

TEXT = (Path(__file__).parents[2] / "docs/roles.md").read_text(encoding="utf-8")


def test_every_rule_is_documented() -> None:
    """Each argument that a rule forces, ignores, refuses, derives or sets is named in the document."""
    named = {*TOPOLOGY, *REJECTED, *IGNORED, *FORCED["critic"], *PRESET["critic"]}
    named |= {rule.target for rule in (*FOLLOWING, *IMPLIED)}
    named |= {rule.keys[0] for rule in (*REQUIREMENTS, *ADVICE)}
    assert {name for name in named if f"`{name}" not in TEXT} == set()
    assert {prefix for prefix in REJECTED_PREFIXES if f"`{prefix}" not in TEXT} == set()


def test_the_figures_are_the_tables() -> None:
    """The number of options in the text is the table's."""
    assert f"{len(OptionTable.shipped())} options" in TEXT


def test_every_refusal_is_told_as_the_document_tells_it() -> None:
    """The reason in the document is the reason that a person reads."""
    assert [rule.reason for rule in REQUIREMENTS if f"| {rule.reason} |" not in TEXT] == []
