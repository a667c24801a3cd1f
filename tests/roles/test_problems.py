"""Messages: their form, and what they must not hold."""

from __future__ import annotations

import pytest

from slime_logging.roles.problems import (
    HIDDEN,
    MAX_SHOWN,
    Problem,
    looks_secret,
    message,
    shown,
    shown_line,
    shown_value,
)


def test_problems_are_told_in_the_order_of_the_file() -> None:
    """Numbered, each with place, text, reason and fix."""
    late = Problem(line=9, column=2, text="a: b", reason="late", fix="mend", role="actor")
    early = Problem(line=2, column=1, text="", reason="early", fix="mend")
    assert message("r.yaml", [late, early]) == (
        "2 mistakes in the role file r.yaml:\n"
        "  1. r.yaml:2:1 (line 2, column 1)\n     why: early\n     fix: mend\n"
        "  2. r.yaml:9:2 (line 9, column 2), role actor\n       a: b\n     why: late\n     fix: mend"
    )


@pytest.mark.parametrize(
    "name", ["wandb_key", "hf_token", "api-key", "db_password", "client_secret", "my_credentials"]
)
def test_secret_names(name: str) -> None:
    """What stands under them is not shown."""
    assert looks_secret(name)
    assert shown_value(name, "v") == HIDDEN


@pytest.mark.parametrize(
    "name",
    ["lr", "reward_key", "input_key", "multimodal_keys", "max_tokens_per_gpu", "tokenizer_type"],
)
def test_names_that_are_no_secrets(name: str) -> None:
    """Columns and counts are shown."""
    assert shown_value(name, "v") == "v"


def test_shown_text_is_short_and_harmless() -> None:
    """Long texts are cut with a mark, control characters are escaped."""
    assert len(shown("a" * 500)) == MAX_SHOWN
    assert shown("a" * 500).endswith("…")
    assert shown("\x1b[31m\n") == "\\x1b[31m\\n"


def test_a_broken_line_is_shown_without_its_comment() -> None:
    """And not at all where a name on it looks like a secret, or a word like a key."""
    assert shown_line("lr: [1  # a remark") == "lr: [1"
    assert shown_line("# all of it") == ""
    assert shown_line("wandb_key: x: y") == HIDDEN
    assert shown_line("  hf_aKJh87hjKJH87hkjhKJH78kjhKH") == HIDDEN


def test_thousands_of_mistakes_are_told_within_bounds() -> None:
    """The first are told, the others counted."""
    problems = [
        Problem(line=n, column=1, text="x" * 80, reason="why", fix="fix") for n in range(1, 4001)
    ]
    text = message("roles.yaml", problems)
    assert "4000 mistakes" in text
    assert text.endswith("and 3950 more")
    assert len(text) < 20_000
