"""The JSON of single values: numbers, text and bytes of Python's own types and of their subclasses.

Policy: nothing of a subclass is called, so a `str` with a `__str__` of its own is read as the text
it holds.
"""

from __future__ import annotations

import base64
import fractions
import math
import re
from typing import Any

from slime_logging.values.json_value import Json

MAX_SAFE_INT = 2**53
"""Beyond it, readers that hold numbers as doubles (JavaScript, so every tracker's page) show a
different integer.
"""
MAX_TEXT_CHARS = 2**20
"""Of one text in the configuration; longer ones are data. A row's texts are never cut here: what is
too long for a line goes to a file of the run (`record.rows`).
"""
MAX_DECIMAL_BITS = 10_000
"""Of an integer that is written with decimal digits. str() of more than 4,300 digits raises
(CPython's limit against quadratic time); hexadecimal has no limit.
"""
_CUT_BACK_CHARS = 256
"""A shortened text ends before a word, if one began within so many characters: half a key is not
recognised as a key.
"""


def same(value: Any) -> Json:
    """The value itself."""
    return value  # type: ignore[no-any-return]


def int_json(value: int) -> Json:
    """The integer, as text beyond `MAX_SAFE_INT`."""
    value = int.__int__(value)
    return value if -MAX_SAFE_INT <= value <= MAX_SAFE_INT else digits(value)


def digits(value: int) -> str:
    """All digits of an integer: decimal ones, hexadecimal beyond `MAX_DECIMAL_BITS`."""
    return str(value) if value.bit_length() < MAX_DECIMAL_BITS else hex(value)


def number_text(value: Any) -> str:
    """A Decimal or Fraction as it is written, however many digits it has."""
    if not isinstance(value, fractions.Fraction):
        return text_json(str(value))
    below = "" if value.denominator == 1 else f"/{digits(value.denominator)}"
    return digits(value.numerator) + below


def float_json(value: float) -> Json:
    """The number; "NaN", "Infinity" or "-Infinity" where JSON has none."""
    value = float.__float__(value)
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def text_json(value: str) -> str:
    """The whole text as a plain `str` that UTF-8 can hold."""
    if type(value) is not str:
        value = str.__getitem__(value, slice(None))
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            value = value.encode("utf-8", "backslashreplace").decode()
    return value


def shortened(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """The text itself, or beyond `most` characters its beginning, up to a word's end, and how long
    it was.
    """
    if len(text) <= most:
        return text
    head = text[:most]
    cut = re.search(r"[^\s,;\"'&]*\Z", head[-_CUT_BACK_CHARS:])
    if cut is not None and 0 < len(cut.group()) < _CUT_BACK_CHARS:
        head = head[: -len(cut.group())]
    return f"{head}... <shortened: {len(text)} characters>"


def bytes_json(value: Any) -> str:
    """The UTF-8 text of bytes, else `base64:...`."""
    data = bytes(value)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data).decode()
