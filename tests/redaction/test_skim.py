"""The quick way through long texts hides what the thorough one hides."""

from __future__ import annotations

import random
from argparse import Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.redaction.redact import Redactor
from slime_logging.redaction.skim import Skimmer

SECRETS = {
    "wandb_key": "0123456789abcdef0123456789abcdef01234567",
    "db_password": "hunter2x9",
    "api_key": "correct horse 8attery staple",
    "hf_token": "Zq9-Wv8_Ux7.Ty6-Sr5",
}
TOKENS = (
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "https://user:pa55word@host.example/x",
    "Authorization: Basic dXNlcjpwYXNz",
    "password=Xk29fjQ0pLm3ZzRt77",
    "-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END PRIVATE KEY-----",
    "sshpass -p swordfish7 ssh host",
)
FILLER = (
    "the model answers",
    "x = 3.14159",
    "\\frac{1}{2}",
    "self.model.forward(x)",
    "\n",
    "大",
    "a_b_c",
)


def skimmer() -> tuple[Redactor, Skimmer]:
    redactor = Redactor.of(Namespace(**SECRETS), {})
    made = Skimmer(redactor)
    made.refresh()
    return redactor, made


def long_text(secret: str, seed: int) -> str:
    words = random.Random(seed).choices(FILLER, k=600)
    words[len(words) // 2] = f" {secret} "
    return " ".join(words)


@pytest.mark.parametrize("secret", [*SECRETS.values(), *TOKENS])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_a_row_hides_is_hidden_in_a_long_text(secret: str, seed: int) -> None:
    redactor, quick = skimmer()
    text = long_text(secret, seed)
    assert quick.hide("completion", text) == redactor.row({"completion": text})["completion"]


@given(
    st.lists(st.sampled_from([*SECRETS.values(), *TOKENS, *FILLER]), max_size=12),
    st.sampled_from([" ", "\n", ", ", "; "]),
)
def test_whatever_the_order_no_secret_is_left(parts: list[str], between: str) -> None:
    _, quick = skimmer()
    text = quick.hide("completion", between.join(parts))
    for secret in SECRETS.values():
        assert secret not in text


def test_what_is_learned_later_is_hidden_after_a_refresh() -> None:
    redactor, quick = skimmer()
    redactor.learn("late", "qwert9z")
    quick.refresh()
    assert "qwert9z" not in quick.hide("completion", "the word qwert9z in a text")


def test_the_users_own_patterns_hold_here_too() -> None:
    redactor = Redactor.of(Namespace(), {}, hide=["text:zeb[a-z]a"])
    quick = Skimmer(redactor)
    quick.refresh()
    assert "zebra" not in quick.hide("completion", "a zebra crosses")


def test_a_known_secret_inside_of_a_block_of_data_is_hidden() -> None:
    """A run that is longer than any token is not looked through, but what is known is found in it."""
    _, quick = skimmer()
    block = "aB3" * 10_000
    assert quick.hide("completion", f"data {block} end") == f"data {block} end"
    assert SECRETS["wandb_key"] not in quick.hide(
        "completion", f"{block}{SECRETS['wandb_key']}{block}"
    )
