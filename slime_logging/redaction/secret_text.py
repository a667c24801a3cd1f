"""Secrets inside a configuration's text: `name=value`, `"name": value`, `--name value`, YAML lines,
headers, queries, XML elements.

Policy: the text is never parsed and written anew; a value's characters are replaced where they
stand, all else stays byte for byte. Where the end of a value is unclear, more is hidden rather than
less. The time is linear: a value is read to its end only if it is hidden, and else `MAX_READ`
characters at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from slime_logging.redaction import written_value as written
from slime_logging.redaction.placeholder import PLACEHOLDER
from slime_logging.redaction.random_text import is_mixed, looks_random
from slime_logging.redaction.row_text import hide_random
from slime_logging.redaction.search import Budget, Found, decoded, encoded
from slime_logging.redaction.secret_names import Judge, Verdict
from slime_logging.redaction.written_value import MAX_READ, WrittenValue

MAX_NAMED = 5_000
"""Secrets' names in one text: behind them it is treated as the text of a row."""

NAME_LIKE = re.compile(r"(?:[\w.-]{1,64}/){0,8}[A-Za-z]{1,64}(?:_[A-Za-z]{1,64}){1,16}")
"""An option's name: beside another name it is no value, but one more name of a list."""

_NAME = re.compile(
    # Not inside a word or path; `\n`, `\r`, `\t` of an escaped text are no part of the word behind.
    r"(?:(?<=\\[nrt])|(?<![\w./-])(?!(?<=\\)[nrt]))(?P<flag>--?(?=\w))?"
    r"(?P<name>(?:(?i:api|access|secret|private|auth)[ ])?\w[\w./-]*)"
)
_S = r"[ \t]{0,8}"
_ASSIGN = re.compile(
    rf"(?:\\{{0,16}}[\"'`]|\*\*)?\]?{_S}(?:=>|:=|\+=|\?=|==?|:(?!//))(?:\*\*)?{_S}|"
    r"\\{0,16}[\"'`]\]?\s{0,64}(?:=>|:=|==?|:)\s{0,64}"
)
_ENCODED = re.compile(r"(?:%2[27])?%3[AaDd](?:%20|\+){0,4}(?:%2[27])?")
_ENCODED_RUN = re.compile(r"(?:[^\s&\"'`<>%]+|%(?!2[0267C]|7D|0[AD]))*")
_FLAG_VALUE = re.compile(r"[ \t]{1,8}(?!-{1,2}[A-Za-z])(?=\S)")
_ITEM = re.compile(r"\\{0,16}[\"'],?\s{0,64}(?:\\{0,16}[\"'])?[vV]alue(?:\\{0,16}[\"'])?\s{0,8}[=:]"
                   r"\s{0,64}|\\{0,16}[\"']\s{0,64},\s{0,64}(?=\\{0,16}[\"'])")  # fmt: skip
_LOOSE = re.compile(r"[ \t]{0,8}[ \t,|](?:(?:\||->|is|to|was|,)?[ \t]{1,8})?(?=[^\s=:([{-])")
"""`API_KEY x`, `the password is x`, `| api_key | x |`: only what is no plain word is hidden."""
_COMPLEX = re.compile(r"[\"']?[ \t]{0,8}\r?\n[ \t]{0,64}:[ \t]{1,8}(?=\S)")
"""YAML's `? key` on one line and `: value` on the next."""
_SCHEME = re.compile(r"(?i:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256|splunk)"
                     r"[ \t]{1,8}(?=[^\s\"'`])")  # fmt: skip
_HEADERS = re.compile(
    r"(?i:(?:.*/)?(?:(?:proxy-?)?authorization(?:[_-]header)?|(?:set-?)?cookie))\Z"
)
_ELEMENT = re.compile(r"[^<>]{0,80}>")
_LINE_START = re.compile(r"([ \t]*)(?:#+[ \t]*)?((?:-[ \t]+)*)(?:\?[ \t]+)?[\"']?")
_NO_VALUE = re.compile(
    r"(?i:or|and|is|are|was|to|in|for|with|the|a|an|of|if|as|by|not|from|at|it|must|needs?|has|may|"
    r"can|instead|on|off|unset|set|given|yet|value|option|flag)[.,;:!?)]*\Z"
)
"""Words behind a flag in a sentence: `set --wandb-key or WANDB_API_KEY`."""


def hide_assigned(text: str, judge: Judge, hide: Found) -> str:
    """The text with each value assigned to a secret name replaced by `hide(name, value)`."""
    pieces: list[str] = []
    done = num_named = 0
    for match in _NAME.finditer(text):
        name = match["name"].rstrip("./-")
        name = name[2:] if text[match.start() - 1 : match.start()] == "%" else name
        verdict = judge(name) if match.start() >= done else Verdict.SHOWN
        if verdict is Verdict.SHOWN:
            continue
        if (num_named := num_named + 1) > MAX_NAMED:
            tail = hide_random(encoded(text[match.start() :]), judge, hide, Budget())
            return "".join([*pieces, text[done : match.start()], decoded(tail)])
        shown_as = name.replace("-", "_") if match["flag"] else name
        short = min(len(text), match.end() + MAX_READ)
        for value in _values(text, match, len(text) if verdict >= Verdict.HIDDEN else short):
            if value.start < done or not _is_secret(match, value, verdict, judge):
                continue
            if MAX_READ // 2 <= value.end - value.start < len(text) - value.start:
                whole = written.one_value(text, value.start, len(text))
                value = max(value, whole, key=lambda found: found.end)
            hidden = hide(shown_as, value.text)
            pieces += [text[done : value.start], value.quote, hidden, value.quote]
            done = value.end
    return "".join(pieces) + text[done:] if pieces else text


def _is_secret(match: re.Match[str], value: WrittenValue, verdict: Verdict, judge: Judge) -> bool:
    """Whether the value is hidden, which takes less in data than in prose (`token: expected`)."""
    plain = value.text.strip()
    word = plain.rstrip(").,;:!?")
    if written.NOTHING.match(plain) or PLACEHOLDER.fullmatch(plain):
        return False
    if verdict is Verdict.IF_RANDOM:
        return looks_random(plain)
    is_name = NAME_LIKE.fullmatch(word) is not None and judge(word) is not Verdict.SHOWN
    if match["flag"]:
        return (
            value.how != written.LOOSE
            or bool(value.quote)
            or not (is_name or _NO_VALUE.match(plain))
        )
    if value.how == written.LOOSE:
        return verdict >= Verdict.HIDDEN and is_mixed(plain) and not is_name
    if verdict is Verdict.IN_DATA and not value.quote and "\n" not in value.text:
        is_data = value.how == written.TIGHT and not plain.isdigit()
        return is_data or is_mixed(plain) or looks_random(plain)
    return True


def _values(text: str, match: re.Match[str], limit: int) -> Iterator[WrittenValue]:
    """The values assigned to the name that was matched, in order; none is read beyond the limit."""
    end, before = match.end(), text[match.start() - 1 : match.start()]
    if before == "<" and (element := _ELEMENT.match(text, end)):
        yield written.read(written.CONTENT, text, element.end(), limit)
    elif assign := _ASSIGN.match(text, end):
        yield _assigned(text, match, assign, limit)
    elif below := _COMPLEX.match(text, end):
        if "?" in _line_before(text, match.start()):
            yield written.rest_of_line(text, below.end(), limit)
    elif encoded_sign := _ENCODED.match(text, end):
        yield written.read(_ENCODED_RUN, text, encoded_sign.end(), limit)
    elif item := _ITEM.match(text, end):
        value = written.one_value(text, item.end(), limit)
        if match["flag"] or "alue" in item.group() or not NAME_LIKE.fullmatch(value.text):
            yield value
    elif match["flag"]:
        while word := _FLAG_VALUE.match(text, end):
            yield (value := written.one_value(text, word.end(), limit, written.LOOSE))
            end = value.end
            if not match["name"].endswith("s"):
                break
    elif loose := _LOOSE.match(text, end):
        yield written.one_value(
            text, loose.end(), min(limit, loose.end() + MAX_READ), written.LOOSE
        )


def _assigned(text: str, match: re.Match[str], assign: re.Match[str], limit: int) -> WrittenValue:
    start, sign = assign.end(), assign.group()
    name_quote = quote.group() if (quote := written.QUOTE.match(sign)) else ""
    is_line = ":" in sign and (text[start - 1] in " \t\n" or text[start : start + 1] in "\r\n")
    line = _LINE_START.fullmatch(_line_before(text, match.start())) if is_line else None
    if line and not match["flag"]:
        return written.yaml_value(text, start, len("".join(line.groups())), name_quote, limit)
    is_open = text[start : start + 1] in written.BRACKETS
    if not written.QUOTE.match(text, start):
        if _HEADERS.match(match["name"]):
            return written.read(written.UNQUOTED, text, start, limit)
        if scheme := _SCHEME.match(text, start):
            return written.one_value(text, scheme.end(), limit)._replace(start=start)
        if name_quote and not is_open:
            return written.read(written.LITERAL, text, start, limit, name_quote)
    value = written.one_value(text, start, limit, written.TIGHT if sign.endswith("=") else "")
    if name_quote and is_open:
        return value._replace(quote=name_quote)
    before = text[match.start() - 1 : match.start()]
    if before and before in "?&" and not value.quote:
        inner = re.split("[&#]", value.text, maxsplit=1)[0]
        return value if inner == value.text else value._replace(end=start + len(inner), text=inner)
    return value


def _line_before(text: str, at: int) -> str:
    return text[max(text.rfind("\n", max(0, at - MAX_READ), at) + 1, at - MAX_READ, 0) : at]
