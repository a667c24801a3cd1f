"""Texts of a run as a page shows them, still to be escaped for HTML."""

from __future__ import annotations

import re

from slime_logging.backends.storable import as_text
from slime_logging.redaction.safe_text import escape_terminal
from slime_logging.values.json_value import Json

MAX_TEXT_CHARS = 2_000


def shown(value: Json) -> str:
    """A value as people write it, as `shortened` shows texts."""
    return shortened(as_text(value))


def shortened(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """A text with its control characters made visible, and its middle left out where it is longer
    than `most`.
    """
    if len(text) > most:
        text = f"{text[: most - 100]} ... ({len(text):,} characters) ... {text[-50:]}"
    return escape_terminal(text)


def natural(name: str) -> list[tuple[int, int, str]]:
    """The order in which people count: `layer_2` before `layer_10`."""
    pieces = re.split(r"([0-9]+)", name)
    numbers = [piece.lstrip("0") for piece in pieces]
    return [
        (len(number) + 1, 0, number) if place % 2 else (0, 0, piece)
        for place, (piece, number) in enumerate(zip(pieces, numbers, strict=True))
    ]
