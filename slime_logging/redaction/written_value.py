"""Where a value in a text begins and ends, as shells, JSON, YAML and Python write it.

Policy: what is never closed ends at the limit; the time is linear in what is read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_READ = 512
"""Characters of a value that are read to find out whether it is a secret."""
LOOSE, TIGHT = "loose", "tight"

QUOTE = re.compile(r"(\\{0,16})(\"\"\"|'''|[\"'`])")
_CLOSING = {mark: re.compile(r"(?<!\\)(\\*)" + mark) for mark in ('"""', "'''", '"', "'", "`")}
_OPENS_QUOTE = re.compile(r"(?:\A[bBrRuUfF]{1,2}|[\w.]{0,60}[(\[{=])\Z")
BRACKETS = {"{": "}", "[": "]", "(": ")"}
_SPECIAL = re.compile(r"[\"'`\[\](){}]")
_RUN = re.compile(
    r"(?:<hidden: [^<>]{0,100}>|[^\s\"'`\\,;&|<]+|\\(?!\\{0,16}[\"'`])|<(?!/|hidden)|"
    r"[,;&|](?!\s|\\{0,16}[\"'`]?-{0,2}[\w.-]{1,64}\\{0,16}[\"'`]?[=:]|\Z))*"
)
LITERAL = re.compile(r"(?:<hidden: [^<>]{0,100}>|[^\s,}\]\"'\\])*")
_REST, UNQUOTED, CONTENT = map(re.compile, (r"[^\r\n]*", r"[^\r\n\"'`]*", r"[^<]*"))
NOTHING = re.compile(
    r"(?i:true|false|null|none|nil|yes|no|on|off|~|\.\.\.|str|string|bytes|optional\[str\])?\Z"
)


class WrittenValue(NamedTuple):
    """Where a value stands, its text without quotes, the quotes to put around what replaces it, and
    how it was assigned: `LOOSE` by nothing but a space, `TIGHT` by `=` without one.
    """

    start: int
    end: int
    text: str
    quote: str = ""
    how: str = ""


def read(
    pattern: re.Pattern[str], text: str, start: int, limit: int, quote: str = ""
) -> WrittenValue:
    """What matches there, maybe nothing; the quote goes around what replaces it."""
    found = pattern.match(text, start, limit)
    inner = found.group() if found else ""
    return WrittenValue(start, start + len(inner), inner, quote)


def rest_of_line(text: str, start: int, limit: int) -> WrittenValue:
    """A quoted value, else whatever stands up to the end of the line."""
    if QUOTE.match(text, start):
        return one_value(text, start, limit)
    return read(_REST, text, start, limit)


def one_value(text: str, start: int, limit: int, how: str = "") -> WrittenValue:
    """One value of shells, JSON or Python: quoted, in brackets, or a run without spaces."""
    if quote := QUOTE.match(text, start):
        return _quoted(text, start, quote, limit)._replace(how=how)
    if text[start : start + 1] in BRACKETS:
        end = _balanced(text, start, limit)
        return WrittenValue(start, end, text[start:end], "", how)
    run = read(_RUN, text, start, limit)
    if _OPENS_QUOTE.search(run.text[-64:]) and (inner := QUOTE.match(text, run.end)):
        quoted = _quoted(text, run.end, inner, limit)
        closes = text[quoted.end : quoted.end + 1] in (")", "]", "}")
        return WrittenValue(start, quoted.end + closes, quoted.text, "", how)
    found = run.text
    if not any(c in found for c in "([{"):
        found = found.rstrip(")]}") or found
    return WrittenValue(start, start + len(found), found, "", how)


def _quoted(text: str, start: int, quote: re.Match[str], limit: int) -> WrittenValue:
    """A quoted value, with what follows it without a space: 'it''s' of YAML, 'it'"'"'s' of shells.

    It ends at the same quote behind as many backslashes, as in JSON inside of JSON (more of them
    escape a quote); at the limit where it is never closed.
    """
    inner_end, end = _closed(text, quote, limit)
    while not quote.group(1) and end < limit and (text[end] in "\"'" or text[end].isalnum()):
        inner = QUOTE.match(text, end)
        end = _closed(text, inner, limit)[1] if inner else read(_RUN, text, end, limit).end
    return WrittenValue(start, end, text[quote.end() : inner_end], quote.group())


def _closed(text: str, quote: re.Match[str], limit: int) -> tuple[int, int]:
    depth, mark = len(quote.group(1)), quote.group(2)
    for close in _CLOSING[mark].finditer(text, quote.end(), limit):
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
    line below it, or items of a list at this depth.
    """
    first = rest_of_line(text, start, limit)
    if first.quote or text[start : start + 1] in tuple("[{"):
        return one_value(text, start, limit)
    plain = first.text.strip()
    if name_quote and plain.endswith((",", "}", "]")):
        return read(LITERAL, text, start, limit, '"')
    if plain and NOTHING.match(plain):
        return first
    deeper = re.compile(
        rf"(?:\r?\n(?:[ \t]{{{indent + 1},}}[^\r\n]*|[ \t]*(?=\r?\n)|"
        rf"[ \t]{{{indent}}}-[ \t][^\r\n]*))*"
    )
    below = read(deeper, text, first.end, limit)
    if below.text.strip():
        return WrittenValue(start, below.end, first.text + below.text)
    found = re.split(r"\s#", first.text, maxsplit=1)[0].rstrip()
    return WrittenValue(start, start + len(found), found)
