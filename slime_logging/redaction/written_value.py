"""Where a value in a text begins and ends, as shells, JSON, YAML and Python write it.

Policy: what is never closed ends at the limit; the time is linear in what is read.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

MAX_READ = 512
"""Characters of a value that are read to find out whether it is a secret."""
QUOTE = re.compile(r"(\\{0,16})(\"\"\"|'''|[\"'`])")
_RUN = re.compile(
    r"(?:<hidden: [^<>]{0,100}>|[^\s\"'`\\,;&|<]+|\\(?!\\{0,16}[\"'`])|<(?!/|hidden)|"
    r"[,;&|](?!\s|\\{0,16}[\"'`]?-{0,2}[\w.-]{1,64}\\{0,16}[\"'`]?[=:]|\Z))+"
)
_LITERAL = re.compile(r"(?:<hidden: [^<>]{0,100}>|[^\s,}\]\"'\\])+")
_REST = re.compile(r"[^\r\n]*")
_OPENS_QUOTE = re.compile(r"(?:\A[bBrRuUfF]{1,2}|[\w.]{0,60}[(\[{=])\Z")
_DELIMITERS = {mark: re.compile(r"(?<!\\)(\\*)" + mark) for mark in ('"""', "'''", '"', "'", "`")}
LOOSE, TIGHT = "loose", "tight"
NOTHING = re.compile(
    r"(?i:true|false|null|none|nil|yes|no|on|off|~|\.\.\.|str|string|bytes|optional\[str\])?\Z"
)
_SPECIAL = re.compile(r"[\"'`\[\](){}]")
BRACKETS = {"{": "}", "[": "]", "(": ")"}


class WrittenValue(NamedTuple):
    """Where a value stands, its text without quotes, the quotes to put around what replaces it, and
    how it was assigned: `LOOSE` by nothing but a space, `TIGHT` by `=` without one.
    """

    start: int
    end: int
    text: str
    quote: str = ""
    how: str = ""


def literal(text: str, start: int, limit: int, quote: str) -> WrittenValue:
    """A number or word of JSON; the quote of its name goes around what replaces it."""
    found = _LITERAL.match(text, start, limit)
    return (
        WrittenValue(*found.span(), found.group(), quote)
        if found
        else WrittenValue(start, start, "")
    )


def rest_of_line(text: str, start: int, limit: int) -> WrittenValue:
    """A quoted value, else whatever stands up to the end of the line."""
    if QUOTE.match(text, start):
        return one_value(text, start, limit)
    end = _REST.match(text, start, limit).end()  # type: ignore[union-attr]
    return WrittenValue(start, end, text[start:end])


def one_value(text: str, start: int, limit: int, how: str = "") -> WrittenValue:
    """One value as shells, JSON and Python write it: quoted, in brackets, or a run without
    spaces.
    """
    if quote := QUOTE.match(text, start):
        return _quoted(text, start, quote, limit)._replace(how=how)
    if text[start : start + 1] in BRACKETS and start < len(text):
        end = _balanced(text, start, limit)
        return WrittenValue(start, end, text[start:end], "", how)
    run = _RUN.match(text, start, limit)
    if run is None:
        return WrittenValue(start, start, "", "", how)
    end, found = run.end(), run.group()
    if _OPENS_QUOTE.search(found[-64:]) and (inner := QUOTE.match(text, end)):
        quoted = _quoted(text, end, inner, limit)
        closes = text[quoted.end : quoted.end + 1] in (")", "]", "}")
        return WrittenValue(start, quoted.end + closes, quoted.text, "", how)
    if not any(c in found for c in "([{"):
        found = found.rstrip(")]}") or found
    return WrittenValue(start, start + len(found), found, "", how)


def _quoted(text: str, start: int, quote: re.Match[str], limit: int) -> WrittenValue:
    """A quoted value, with what follows it without a space: 'it''s' of YAML, 'it'"'"'s' of
    shells.
    """
    inner_end, end = _closing(text, quote, limit)
    while not quote.group(1) and end < limit and (text[end] in "\"'" or text[end].isalnum()):
        inner = QUOTE.match(text, end)
        run = _RUN.match(text, end, limit)
        end = _closing(text, inner, limit)[1] if inner else run.end() if run else limit
    return WrittenValue(start, end, text[quote.end() : inner_end], quote.group())


def _closing(text: str, quote: re.Match[str], limit: int) -> tuple[int, int]:
    """Where a quoted text ends, without and with its closing quote; at the limit where it is never
    closed.

    It is closed by the same quote behind as many backslashes, as in JSON inside of JSON; more
    backslashes escape a quote.
    """
    depth, mark = len(quote.group(1)), quote.group(2)
    for close in _DELIMITERS[mark].finditer(text, quote.end(), limit):
        if len(close.group(1)) % (2 * (depth + 1)) == depth:
            return close.end() - len(mark) - depth, close.end()
    return limit, limit


def _balanced(text: str, start: int, limit: int) -> int:
    """The end of a bracketed value; the limit where it never ends."""
    stack: list[str] = []
    at = start
    while found := _SPECIAL.search(text, at, limit):
        char, at = found.group(), found.end()
        if char in BRACKETS:
            stack.append(BRACKETS[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return at
        elif quote := QUOTE.match(text, found.start()):
            at = max(at, _quoted(text, found.start(), quote, limit).end)
    return limit


def yaml_value(text: str, start: int, indent: int, name_quote: str, limit: int) -> WrittenValue:
    """The value of a YAML line: quoted or bracketed, else the rest of the line and every deeper
    line below it.
    """
    if QUOTE.match(text, start) or text[start : start + 1] in tuple("[{"):
        return one_value(text, start, limit)
    first = rest_of_line(text, start, limit)
    plain = first.text.strip()
    if name_quote and plain.endswith((",", "}", "]")):
        return literal(text, start, limit, '"')
    if plain and NOTHING.match(plain):
        return first
    deeper = _below(indent).match(text, first.end, limit)
    if deeper and deeper.group().strip():
        return WrittenValue(start, deeper.end(), first.text + deeper.group())
    found = re.split(r"\s#", first.text, maxsplit=1)[0].rstrip()
    return WrittenValue(start, start + len(found), found)


@functools.lru_cache(maxsize=64)
def _below(indent: int) -> re.Pattern[str]:
    """The lines that are deeper than this, or items of a list at this depth."""
    return re.compile(
        rf"(?:\r?\n(?:[ \t]{{{indent + 1},}}[^\r\n]*|[ \t]*(?=\r?\n)|"
        rf"[ \t]{{{indent}}}-[ \t][^\r\n]*))*"
    )
