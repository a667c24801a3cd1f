"""`slime_logging.redaction.known_secrets`: texts that are hidden wherever they turn up."""

from __future__ import annotations

import pytest

from slime_logging.redaction.known_secrets import KnownSecrets, encoded_forms, is_learnable
from slime_logging.redaction.placeholder import placeholder
from slime_logging.redaction.search import Budget


def hide(secrets: KnownSecrets, text: str) -> str:
    return secrets.replace(text.encode(), placeholder, Budget()).decode()


def known(**secrets: str) -> KnownSecrets:
    found = KnownSecrets()
    for name, text in secrets.items():
        found.learn(name, text)
    return found


@pytest.mark.parametrize("order", [("inner", "outer"), ("outer", "inner")])
@pytest.mark.parametrize("is_used_between", [True, False])
def test_a_secret_around_another_is_hidden_whole_whichever_was_learned_first(
    order: tuple[str, str], is_used_between: bool
) -> None:
    """No end of the longer one is left standing."""
    texts = {"inner": "Zq7-4711-inner", "outer": "pre-Zq7-4711-inner-post"}
    secrets = KnownSecrets()
    for name in order:
        secrets.learn(name, texts[name])
        if is_used_between:
            hide(secrets, "anything")
    assert (
        hide(secrets, "a pre-Zq7-4711-inner-post b Zq7-4711-inner c")
        == "a <hidden: outer> b <hidden: inner> c"
    )


def test_every_one_of_many_secrets_is_found_however_they_were_learned() -> None:
    """Learning in bursts, with searches between them."""
    secrets = KnownSecrets()
    texts = [f"Zq7x{number:05d}xyz" for number in range(60)]
    for number, text in enumerate(texts):
        secrets.learn("key", text)
        if number % 7 == 0:
            hide(secrets, "anything")
    assert hide(secrets, " ".join(texts)) == " ".join(["<hidden: key>"] * 60)


def test_lines_of_a_key_of_several_lines_are_secrets_too() -> None:
    """A private key that was printed line by line."""
    secrets = known(pem="-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END KEY-----")
    assert hide(secrets, "line 2: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC") == "line 2: <hidden: pem>"


def test_placeholders_are_left_alone() -> None:
    """A secret that reads like a part of a placeholder does not break placeholders."""
    assert hide(known(x="hidden: wandb"), "<hidden: wandb_key>") == "<hidden: wandb_key>"


@pytest.mark.parametrize(
    "text",
    [
        "abcde",
        "EMPTY",
        "None",
        "changeme",
        "123456789",
        "aaaaaaaaaa",
        "ababab",
        "~/.netrc",
        "/home/me/key.json",
    ],
)
def test_what_is_short_common_or_a_path_is_not_learned(text: str) -> None:
    """It would be found in places that have nothing to do with the secret."""
    assert not is_learnable(text)


def test_ordinary_texts_are_not_learned() -> None:
    """A key that is set to the name of an option does not hide that option."""
    assert not KnownSecrets().learn("key", "optimizer", frozenset({"optimizer"}))


def test_forms_are_unique_and_long_enough() -> None:
    """Nothing is searched for twice."""
    forms = encoded_forms("Zq7 4711/äö'\"")
    assert len(forms) == len(set(forms))
    assert all(len(form) >= 6 for form in forms)


def test_repr_holds_no_secret() -> None:
    """Only how many there are."""
    assert repr(known(a="Zq7-4711-inner")) == "KnownSecrets(num_secrets=1)"
