"""`slime_logging.redaction.safe_text`: foreign texts made safe to print."""

from __future__ import annotations

from slime_logging.redaction.redact import Redactor, escape_terminal, safe_exception_text


def test_control_characters_and_escapes_become_visible() -> None:
    """No colour, no cleared screen, no turned text."""
    assert escape_terminal("a\x1b[31mb\x07\u202ec\x9bd\re") == "a\\x1b[31mb\\x07\\u202ec\\x9bd\\re"


def test_newlines_tabs_and_other_scripts_stay() -> None:
    """What a terminal shows as it is meant is not escaped."""
    assert escape_terminal("a\n\tä 中文 😀 [bold]") == "a\n\tä 中文 😀 [bold]"


def test_an_exception_becomes_one_redacted_line() -> None:
    """Type, message, no secret, no line breaks, no escapes."""
    error = ValueError("bad\n  request https://u:Zq7canary1@host?api_key=Zq7canary2 \x1b[2J")
    assert safe_exception_text(Redactor(), error) == (
        "ValueError: bad request https://<hidden: url userinfo>@host?api_key=<hidden: api_key> \\x1b[2J"
    )


def test_a_secret_at_the_place_of_shortening_is_hidden_before_it() -> None:
    """Half a secret is never shown."""
    redactor = Redactor.of({"wandb_key": "Zq7-canary-" + "x7" * 20}, {})
    text = safe_exception_text(redactor, RuntimeError("a" * 480 + " Zq7-canary-" + "x7" * 20))
    assert "Zq7" not in text
    assert len(text) < 510


def test_an_exception_that_cannot_be_read_is_named() -> None:
    """A vendor's broken `__str__` does not reach training."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert safe_exception_text(Redactor(), Broken()) == "Broken: <unreadable>"


def test_an_exception_without_message_is_its_name() -> None:
    """No trailing colon."""
    assert safe_exception_text(Redactor(), TimeoutError()) == "TimeoutError"
