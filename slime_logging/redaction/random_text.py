"""Which texts look generated: keys, tokens, passwords that no person made up."""

from __future__ import annotations

import re

_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_NO_WORD = re.compile(r"(?i)[^aeiouy]{5}|^[^aeiouy]{4}|[^aeiouy]{4}\Z|^[^aeiouy]*\Z")
_PATH = re.compile(
    r"\.{1,2}/|/[A-Za-z_.-]{2,}\d*/|~/|[a-z_]\w*(?:\.[a-z_]+\d{0,2})+\Z|[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+){2,}\Z|"
    r"[\d._e+-]*\Z|[^=]*=[^=]|.*[\s,;:(){}\[\]<>|\"'`]"
)
"""Paths, names of modules and parameters (`layer1.conv1.weight`), numbers, and what has
punctuation of sentences, code and addresses.
"""

MIN_RANDOM_CHARS = 16
MAX_PIECE_CHARS = 3.6
MAX_WORDS = 0.75
"""Tried on 3,000 random texts of each alphabet and on 10,970 names of the standard library and of
torch: of random texts of 20 characters with letters of both cases and digits 0.4% are missed, of
hexadecimal ones 0.1%, of lower case and digits 2%; of the names 2% are taken for random.
"""


def is_mixed(text: str) -> bool:
    """Whether a text is no plain word or number: one piece of 8 characters or more with letters and
    digits, and no path.
    """
    text = text[:512]
    is_path = text.startswith(("/", "./", "~/"))
    return len(text) >= 8 and not is_path and not _SPACE.search(text) and _has_both(text)


def looks_random(text: str) -> bool:
    """Whether a text could be a generated key.

    It has 16 characters or more, letters with digits or letters of both cases, no space or
    punctuation, and is no path or dotted name. It is hexadecimal; or its letters and digits fall
    apart into short pieces (a word with its capital, capitals, digits): of at most 3.6 characters
    on average, two of them numbers (one from 32 characters on); or less than 75% of its letters are
    in words of three letters or more that can be spoken.
    """
    text = text[:512]
    if len(text) < MIN_RANDOM_CHARS or _PATH.match(text):
        return False
    if text.count("/") > max(2, len(text) // 12):
        return False
    is_two_cased = text != text.upper() and text != text.lower()
    if not (is_two_cased or _has_both(text)):
        return False
    pieces = _RUN.findall(text)
    numbers = sum(piece[0].isdigit() for piece in pieces)
    is_short = sum(map(len, pieces)) < MAX_PIECE_CHARS * len(pieces)
    if is_short and (numbers > 1 or (numbers and len(text) >= 2 * MIN_RANDOM_CHARS)):
        return True
    letters = [piece for piece in pieces if not piece[0].isdigit()]
    words = [piece for piece in letters if len(piece) > 2 and not _NO_WORD.search(piece)]
    is_wordy = sum(map(len, words)) >= MAX_WORDS * sum(map(len, letters))
    return not is_wordy or (_HEX.fullmatch(text) is not None and _has_both(text))


_SPACE, _LETTER, _DIGIT = re.compile(r"\s"), re.compile(r"[^\W\d_]"), re.compile(r"\d")
_HEX = re.compile("[0-9a-f]+|[0-9A-F]+")


def _has_both(text: str) -> bool:
    return _LETTER.search(text) is not None and _DIGIT.search(text) is not None
