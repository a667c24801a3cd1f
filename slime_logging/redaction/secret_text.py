"""Secrets inside a text: `name=value`, `"name": value`, `--name value`, YAML lines, headers,
queries, XML elements.

Policy: the text is never parsed and written anew; a value's characters are replaced where they
stand, and everything else stays byte for byte. Where the end of a value is unclear, more is hidden
rather than less. The cost grows linearly with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from slime_logging.redaction.marks import MARK
from slime_logging.redaction.secret_forms import is_mixed, looks_random
from slime_logging.redaction.secret_names import Verdict

Judge = Callable[[str], Verdict]
Hide = Callable[[str, str], str]
"""(name, value) -> what stands for the value."""

_NAME = re.compile(
    # Not inside a word or path; `\n`, `\r`, `\t` of an escaped text are no part of the word behind
    # them.
    r"(?:(?<=\\[nrt])|(?<![\w./-])(?!(?<=\\)[nrt]))(?P<flag>--?(?=\w))?"
    r"(?P<name>(?:(?i:api|access|secret|private|auth)[ ])?\w[\w./-]*)"
)
_QUOTE = re.compile(r"(\\*)(\"\"\"|'''|[\"'`])")
_DELIMITERS = {mark: re.compile(r"(\\*)" + mark) for mark in ('"""', "'''", '"', "'", "`")}
_ASSIGN = re.compile(r"(?:\\*[\"'`])?\]?[ \t]*(?:=>|:=|\+=|\?=|==?|:(?!//))[ \t]*")
_ASSIGN_QUOTED = re.compile(r"\\*[\"'`]\]?\s*(?:=>|:=|==?|:)\s*")
_COMPLEX_KEY = re.compile(r"(?:^|\n)[ \t]*(?:-[ \t]+)*\?[ \t]+[\"']?\Z")
_COMPLEX_VALUE = re.compile(r"[\"']?[ \t]*\r?\n[ \t]*:[ \t]+(?=\S)")
"""YAML's `? key` on one line and `: value` on the next."""
_ENCODED = re.compile(r"(?:%2[27])?%3[AaDd](?:%20|\+)*(?:%2[27])?")
_ENCODED_VALUE = re.compile(r"(?:(?!%2[0267C]|%7D|%0[AD])[^\s&\"'`<>])+")
_NEXT_ITEM = re.compile(r"\\*[\"']\s*,\s*(?=\\*[\"'])")
_NEXT_WORD = re.compile(r"[ \t]+(?!-{1,2}[A-Za-z])(?=\S)")
_LOOSELY = re.compile(r"(?:\||->|is|to|was|,)?")
_LOOSE = re.compile(rf"[ \t]*[ \t,|](?:{_LOOSELY.pattern}[ \t]+)?(?=[^\s=:-])")
"""`API_KEY x`, `API_KEY -> x`, `the password is x`, `| api_key | x |`: only what is no plain word
counts as a value there.
"""
_VALUE_OF_NAME = re.compile(r"\\*[\"'],?\s*(?:\\*[\"'])?[vV]alue(?:\\*[\"'])?\s*[=:]\s*")
_ELEMENT = re.compile(r"[^<>]{0,80}>")
_RUN = re.compile(r"(?:<hidden: [^<>]*>|[^\s\"'`\\]|\\(?!\\*[\"'`]))+")
_JSON_LITERAL = re.compile(r"(?:<hidden: [^<>]*>|[^\s,}\]\"'\\])+")
_STOP = re.compile(r"[,;&|](?=\s|\\*[\"'`]?-{0,2}[\w.-]+\\*[\"'`]?(?:=|:)|\Z)|</")
_OPENS_QUOTE = re.compile(r"(?:\A[bBrRuUfF]{1,2}|[\w.]*[(\[{=])\Z")
_SCHEME = re.compile(
    r"(?i:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256|splunk)[ \t]+(?=[^\s\"'`])"
)
_LINE = re.compile(r"[^\r\n\"'`]+")
_HEADERS = re.compile(r"(?i:(?:proxy-?)?authorization|(?:set-?)?cookie)\Z")
_NOTHING = re.compile(
    r"(?i:true|false|null|none|nil|yes|no|on|off|~|\.\.\.|str|string|bytes|optional\[str\])?\Z"
)
_LINE_START = re.compile(r"(?:^|\n)(?P<indent>[ \t]*)(?:#+[ \t]*)?(?P<dash>(?:-[ \t]+)*)[\"']?\Z")
_YAML_REST = re.compile(r"[^\r\n]*")
_FLAG = re.compile(r"--?[A-Za-z]")
NAME_LIKE = re.compile(r"(?:[\w.-]+/)*[A-Za-z]+(?:_[A-Za-z]+)+")
"""A text that is itself an option's name: beside another name it is not that one's value, but one
more of a list.
"""
_BEFORE_BRACKET = re.compile(r"(?:\\*[\"'`])?\s*[=:]\s*[\[{(]")
_MAX_LOOKED_AT = 2_000
"""Longer values under a name that says too little are hidden unread, so that no text costs
quadratic time.
"""
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class _Value(NamedTuple):
    """Where a value stands, its text without quotes, and the quotes to put around what replaces
    it.
    """

    start: int
    end: int
    text: str
    quote: str = ""


def hide_assigned(text: str, judge: Judge, hide: Hide) -> str:
    """The text with the value of every assignment to a secret name replaced by `hide(name,
    value)`.
    """
    pieces: list[str] = []
    done = 0
    for match in _NAME.finditer(text):
        if match.start() < done:
            continue
        name = match["name"].rstrip("./-")
        if match.start() and text[match.start() - 1] == "%":
            name = name[2:]
        verdict = judge(name)
        if verdict is Verdict.SHOWN or (
            verdict is Verdict.IF_RANDOM and _BEFORE_BRACKET.match(text, match.end())
        ):
            continue
        shown_as = name.replace("-", "_") if match["flag"] else name
        for value in _values(text, match, name):
            plain = value.text.strip()
            if _NOTHING.match(plain) or MARK.fullmatch(plain) or value.start < done:
                continue
            if not _is_secret(text, match, value, verdict):
                continue
            pieces += [
                text[done : value.start],
                value.quote,
                hide(shown_as, value.text),
                value.quote,
            ]
            done = value.end
    return "".join(pieces) + text[done:] if pieces else text


def _is_secret(text: str, match: re.Match[str], value: _Value, verdict: Verdict) -> bool:
    """Whether the value is hidden, which takes less in data than in prose (`token: expected`)."""
    plain = value.text.strip()
    between = text[match.end() : value.start].strip()
    if len(plain) > _MAX_LOOKED_AT and verdict < Verdict.HIDDEN:
        return True
    if verdict <= Verdict.IF_RANDOM:
        return looks_random(plain)
    if not match["flag"] and _LOOSELY.fullmatch(between):
        return verdict >= Verdict.HIDDEN and is_mixed(plain)
    if (
        verdict is Verdict.IN_DATA
        and not match["flag"]
        and between == ":"
        and "\n" not in value.text
    ):
        return is_mixed(plain)
    return True


def _values(text: str, match: re.Match[str], name: str) -> list[_Value]:
    """The values assigned to the name that was matched, in order; empty if nothing is."""
    end = match.end()
    before = text[match.start() - 1] if match.start() else ""
    if before == "<" and (element := _ELEMENT.match(text, end)):
        close = text.find("<", element.end())
        close = len(text) if close < 0 else close
        return [_Value(element.end(), close, text[element.end() : close])]
    assign = _ASSIGN.match(text, end) or _ASSIGN_QUOTED.match(text, end)
    if assign:
        return _assigned(text, match, assign, name, before)
    complex_value = _COMPLEX_VALUE.match(text, end)
    if complex_value and _COMPLEX_KEY.search(text, max(0, match.start() - 200), match.start()):
        return [_to_line_end(text, complex_value.end())]
    if encoded := _ENCODED.match(text, end):
        run = _ENCODED_VALUE.match(text, encoded.end())
        return [_Value(run.start(), run.end(), run.group())] if run else []
    if beside := _VALUE_OF_NAME.match(text, end):
        return [_one(text, beside.end())]
    values = _following(text, end, name, is_flag=bool(match["flag"]))
    if not values and (loose := _LOOSE.match(text, end)):
        return [_one(text, loose.end())]
    return values


def _to_line_end(text: str, start: int) -> _Value:
    line = None if _QUOTE.match(text, start) else _YAML_REST.match(text, start)
    return _one(text, start) if line is None else _Value(*line.span(), line.group())


def _following(text: str, end: int, name: str, *, is_flag: bool) -> list[_Value]:
    """The words behind a flag, or the quoted items behind a quoted name; a name in the plural takes
    all up to the next flag.
    """
    values: list[_Value] = []
    patterns = (_NEXT_ITEM, _NEXT_WORD) if is_flag else (_NEXT_ITEM,)
    while found := next((m for pattern in patterns if (m := pattern.match(text, end))), None):
        value = _one(text, found.end())
        if is_flag and _FLAG.match(value.text) and found.re is _NEXT_ITEM:
            break
        if not is_flag and NAME_LIKE.fullmatch(value.text):
            break  # a list of names
        values.append(value)
        if not is_flag or not name.endswith("s"):
            break
        end = value.end - len(value.quote)
    return values


def _assigned(
    text: str, match: re.Match[str], assign: re.Match[str], name: str, before: str
) -> list[_Value]:
    start = assign.end()
    line = (
        _LINE_START.search(text, max(0, match.start() - 200), match.start())
        if ":" in assign.group()
        else None
    )
    is_quoted_name = assign.group()[0] in "\\\"'`"
    if (
        line
        and not match["flag"]
        and (start == len(text) or text[start - 1] in " \t\n" or text[start] in "\r\n")
    ):
        return [_yaml(text, start, line, is_quoted_name)]
    if start >= len(text):
        return []
    if is_quoted_name and text[start] in _CLOSING:
        end = _balanced(text, start)
        return [_Value(start, end, text[start:end], _quote_in(assign))]
    if _HEADERS.match(name.rpartition("/")[2]) and not _QUOTE.match(text, start):
        header = _LINE.match(text, start)
        return [_Value(start, header.end(), header.group())] if header else []
    if scheme := _SCHEME.match(text, start):
        value = _one(text, scheme.end())
        return [_Value(start, value.end, value.text, value.quote)]
    if is_quoted_name and not _QUOTE.match(text, start):
        literal = _JSON_LITERAL.match(text, start)
        return [_Value(start, literal.end(), literal.group(), _quote_in(assign))] if literal else []
    value = _one(text, start)
    if before in "?&" and before and not value.quote:
        ends = [i for i in (text.find(c, start, value.end) for c in "&#") if i >= 0]
        value = _Value(start, min([*ends, value.end]), text[start : min([*ends, value.end])])
    return [value]


def _quote_in(assign: re.Match[str]) -> str:
    """The quote that ends a quoted name, for the mark that replaces a value which had none."""
    quote = re.match(r"\\*[\"'`]", assign.group())
    return quote.group() if quote else ""


def _one(text: str, start: int) -> _Value:
    """One value as shells, JSON and Python write it: quoted, in brackets, or a run without
    spaces.
    """
    quote = _QUOTE.match(text, start)
    if quote:
        return _quoted(text, start, quote)
    if start < len(text) and text[start] in _CLOSING:
        end = _balanced(text, start)
        return _Value(start, end, text[start:end])
    run = _RUN.match(text, start)
    if run is None:
        return _Value(start, start, "")
    end, found = run.end(), run.group()
    if _OPENS_QUOTE.search(found) and (inner := _QUOTE.match(text, end)):
        quoted = _quoted(text, end, inner)
        closes = text[quoted.end : quoted.end + 1] in (")", "]", "}")
        return _Value(start, quoted.end + closes, quoted.text)
    stop = _STOP.search(found)
    if stop:
        found = found[: stop.start()]
    if not any(c in found for c in "([{"):
        found = found.rstrip(")]}") or found
    return _Value(start, start + len(found), found)


def _quoted(text: str, start: int, quote: re.Match[str]) -> _Value:
    """A quoted value, with what follows it without a space: 'it''s' of YAML, 'it'"'"'s' of
    shells.
    """
    inner_end, end = _closing(text, quote)
    while not quote.group(1) and end < len(text) and (text[end] in "\"'" or text[end].isalnum()):
        inner = _QUOTE.match(text, end)
        run = _RUN.match(text, end)
        end = _closing(text, inner)[1] if inner else run.end() if run else len(text)
    return _Value(start, end, text[quote.end() : inner_end], quote.group())


def _closing(text: str, quote: re.Match[str]) -> tuple[int, int]:
    """Where a quoted text ends, without and with its closing quote; at the text's end where it is
    never closed.

    It is closed by the same quote behind as many backslashes, as in JSON inside of JSON; more
    backslashes escape a quote.
    """
    depth, mark = len(quote.group(1)), quote.group(2)
    for close in _DELIMITERS[mark].finditer(text, quote.end()):
        if len(close.group(1)) % (2 * (depth + 1)) == depth:
            return close.end() - len(mark) - depth, close.end()
    return len(text), len(text)


def _balanced(text: str, start: int) -> int:
    """The end of a bracketed value; of the text where it never ends."""
    stack: list[str] = []
    at = start
    while at < len(text):
        char = text[at]
        if char in "\"'\\" and (quote := _QUOTE.match(text, at)):
            at = _quoted(text, at, quote).end
            continue
        if char in _CLOSING:
            stack.append(_CLOSING[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return at + 1
        at += 1
    return len(text)


def _yaml(text: str, start: int, line: re.Match[str], is_quoted_name: bool) -> _Value:
    """The value of a YAML line: quoted or bracketed, else the rest of the line and every deeper
    line below it.
    """
    quote = _QUOTE.match(text, start)
    if quote:
        return _quoted(text, start, quote)
    if start < len(text) and text[start] in "[{":
        return _Value(start, _balanced(text, start), text[start : _balanced(text, start)])
    rest = _YAML_REST.match(text, start)
    end = rest.end() if rest else start
    first = text[start:end]
    if is_quoted_name and first.rstrip().endswith((",", "}", "]")):
        literal = _JSON_LITERAL.match(text, start)
        return (
            _Value(start, literal.end(), literal.group(), '"')
            if literal
            else _Value(start, start, "")
        )
    indent = len(line["indent"]) + len(line["dash"])
    if _NOTHING.match(first.strip()) and first.strip():
        return _Value(start, end, first)
    below = re.compile(
        rf"(?:\r?\n(?:[ \t]{{{indent + 1},}}[^\r\n]*|[ \t]*(?=\r?\n)|[ \t]{{{indent}}}-[ \t][^\r\n]*))*"
    )
    deeper = below.match(text, end)
    if deeper and deeper.group().strip():
        return _Value(start, deeper.end(), first + deeper.group())
    comment = re.search(r"\s+#", first)
    if comment:
        first = first[: comment.start()]
    return _Value(start, start + len(first.rstrip()), first.rstrip())
