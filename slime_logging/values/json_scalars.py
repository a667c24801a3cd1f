"""The JSON of single values: numbers, text and bytes of Python's own types and of their subclasses.

Policy: nothing of a subclass is called, so a `str` with a `__str__` of its own is read as the text
it holds.
"""

from __future__ import annotations

import base64
import math
import re
from typing import Any

from slime_logging.values.json_value import Json

MAX_SAFE_INT = 2**53
"""Beyond it, readers that hold numbers as doubles (JavaScript, so every tracker's page) show a
different integer.
"""
MAX_TEXT_CHARS = 16_384
"""Room for a chat template or a whole role file, the longest texts that options hold; longer ones
are data.
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
    if -MAX_SAFE_INT <= value <= MAX_SAFE_INT:
        return value
    bits = value.bit_length()
    # str() of more than 4,300 digits raises (CPython's limit against quadratic time); hexadecimal
    # has no limit.
    return str(value) if bits < 10_000 else shortened(hex(value))


def float_json(value: float) -> Json:
    """The number; "NaN", "Infinity" or "-Infinity" where JSON has none."""
    value = float.__float__(value)
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def text_json(value: str) -> str:
    """The text as a plain `str` that UTF-8 can hold, shortened if it is huge."""
    if type(value) is not str:
        value = str.__getitem__(value, slice(None))
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            value = value.encode("utf-8", "backslashreplace").decode()
    return value if len(value) <= MAX_TEXT_CHARS else shortened(value)


def shortened(text: str) -> str:
    """The beginning of a text, up to a word's end, and how long it was."""
    head = text[:MAX_TEXT_CHARS]
    cut = re.search(r"[^\s,;\"'&]*\Z", head[-_CUT_BACK_CHARS:])
    if cut is not None and 0 < len(cut.group()) < _CUT_BACK_CHARS:
        head = head[: -len(cut.group())]
    return f"{head}... <shortened: {len(text)} characters>"


def bytes_json(value: Any) -> Json:
    """The UTF-8 text of bytes, else `base64:...`, shortened if they are huge."""
    size = value.nbytes if type(value) is memoryview else len(value)
    head = bytes(value[:MAX_TEXT_CHARS]) if size > MAX_TEXT_CHARS else bytes(value)
    try:
        text = head.decode()
    except UnicodeDecodeError:
        text = "base64:" + base64.b64encode(head).decode()
    return (
        text_json(text)
        if size <= MAX_TEXT_CHARS
        else f"{text_json(text)}... <shortened: {size} bytes>"
    )
