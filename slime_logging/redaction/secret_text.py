"""Secrets inside a text: `name=value`, `"name": value`, `--name value`, YAML lines, headers,
queries, XML elements.

Policy: the text is never parsed and written anew; a value's characters are replaced where they
stand, and everything else stays byte for byte. In the texts of a configuration more is hidden
rather than less where the end of a value is unclear; in those of a row (`hide_random`) only what
looks random is hidden. The cost grows linearly with the text: a value is read to its end only if
it is hidden, and else `MAX_READ` characters at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from slime_logging.redaction.placeholder import PLACEHOLDER
from slime_logging.redaction.random_text import is_mixed, looks_random
from slime_logging.redaction.row_text import hide_random
from slime_logging.redaction.search import Budget, Found, decoded
from slime_logging.redaction.secret_names import Judge, Verdict
from slime_logging.redaction.written_value import (
    BRACKETS,
    LOOSE,
    MAX_READ,
    NOTHING,
    QUOTE,
    TIGHT,
    WrittenValue,
    literal,
    one_value,
    rest_of_line,
    yaml_value,
)

MAX_NAMED = 5_000
"""Secrets' names in one text of a configuration: behind them it is treated as the text of a row."""

NAME_LIKE = re.compile(r"(?:[\w.-]{1,64}/){0,8}[A-Za-z]{1,64}(?:_[A-Za-z]{1,64}){1,16}")
"""A text that is itself an option's name: beside another name it is not that one's value, but one
more of a list.
"""

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
_ENCODED_RUN = re.compile(r"(?:[^\s&\"'`<>%]+|%(?!2[0267C]|7D|0[AD]))+")
_FLAG_VALUE = re.compile(r"[ \t]{1,8}(?!-{1,2}[A-Za-z])(?=\S)")
_ITEM = re.compile(r"\\{0,16}[\"'],?\s{0,64}(?:\\{0,16}[\"'])?[vV]alue(?:\\{0,16}[\"'])?\s{0,8}[=:]"
                   r"\s{0,64}|\\{0,16}[\"']\s{0,64},\s{0,64}(?=\\{0,16}[\"'])")  # fmt: skip
_LOOSE = re.compile(r"[ \t]{0,8}[ \t,|](?:(?:\||->|is|to|was|,)?[ \t]{1,8})?(?=[^\s=:([{-])")
"""`API_KEY x`, `the password is x`, `| api_key | x |`: only what is no plain word is hidden."""
_COMPLEX = re.compile(r"[\"']?[ \t]{0,8}\r?\n[ \t]{0,64}:[ \t]{1,8}(?=\S)")
"""YAML's `? key` on one line and `: value` on the next."""
_SCHEME = re.compile(
    r"(?i:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256|splunk)[ \t]{1,8}"
    r"(?=[^\s\"'`])"
)
_LINE = re.compile(r"[^\r\n\"'`]+")
_ELEMENT = re.compile(r"[^<>]{0,80}>")
_HEADERS = re.compile(r"(?i:(?:proxy-?)?authorization(?:[_-]header)?|(?:set-?)?cookie)\Z")
_NO_VALUE = re.compile(
    r"(?i:or|and|is|are|was|to|in|for|with|the|a|an|of|if|as|by|not|from|at|it|must|needs?|has|may|"
    r"can|instead|on|off|unset|set|given|yet|value|option|flag)[.,;:!?)]*\Z"
)
"""Words behind a flag in a sentence: `set --wandb-key or WANDB_API_KEY`."""
_LINE_START = re.compile(
    r"(?P<indent>[ \t]*)(?:#+[ \t]*)?(?P<dash>(?:-[ \t]+)*)(?:\?[ \t]+)?[\"']?"
)


def hide_assigned(text: str, judge: Judge, hide: Found) -> str:
    """The text with the value of every assignment to a secret name replaced by `hide(name,
    value)`.
    """
    pieces: list[str] = []
    done = num_named = 0
    for match in _NAME.finditer(text):
        name = match["name"].rstrip("./-")
        if match.start() and text[match.start() - 1] == "%":
            name = name[2:]
        verdict = judge(name) if match.start() >= done else Verdict.SHOWN
        if verdict is Verdict.SHOWN:
            continue
        if (num_named := num_named + 1) > MAX_NAMED:
            tail = text[match.start() :].encode("utf-8", "surrogatepass")
            tail = hide_random(tail, judge, hide, Budget())
            pieces += [text[done : match.start()], decoded(tail)]
            return "".join(pieces)
        shown_as = name.replace("-", "_") if match["flag"] else name
        short = min(len(text), match.end() + MAX_READ)
        limit = len(text) if verdict >= Verdict.HIDDEN else short
        for value in _values(text, match, limit):
            if value.start < done or not _is_secret(match, value, verdict, judge):
                continue
            if value.end - value.start >= MAX_READ // 2 and value.end < len(text):
                value = max(
                    value, one_value(text, value.start, len(text)), key=lambda found: found.end
                )
            pieces += [text[done : value.start], value.quote, hide(shown_as, value.text)]
            pieces.append(value.quote)
            done = value.end
    return "".join(pieces) + text[done:] if pieces else text


def _is_secret(match: re.Match[str], value: WrittenValue, verdict: Verdict, judge: Judge) -> bool:
    """Whether the value is hidden, which takes less in data than in prose (`token: expected`)."""
    plain = value.text.strip()
    word = plain.rstrip(").,;:!?")
    if NOTHING.match(plain) or PLACEHOLDER.fullmatch(plain):
        return False
    if verdict is Verdict.IF_RANDOM:
        return looks_random(plain)
    is_name = NAME_LIKE.fullmatch(word) is not None and judge(word) is not Verdict.SHOWN
    if match["flag"]:
        is_word = value.how == LOOSE and not value.quote and (is_name or _NO_VALUE.match(plain))
        return not is_word
    if value.how == LOOSE:
        return verdict >= Verdict.HIDDEN and is_mixed(plain) and not is_name
    if verdict is Verdict.IN_DATA and not value.quote and "\n" not in value.text:
        is_data = value.how == TIGHT and not plain.isdigit()
        return is_data or is_mixed(plain) or looks_random(plain)
    return True


def _values(text: str, match: re.Match[str], limit: int) -> Iterator[WrittenValue]:
    """The values assigned to the name that was matched, in order; none is read beyond the limit."""
    end, before = match.end(), text[match.start() - 1 : match.start()]
    if before == "<" and (element := _ELEMENT.match(text, end)):
        close = text.find("<", element.end(), limit)
        close = limit if close < 0 else close
        yield WrittenValue(element.end(), close, text[element.end() : close])
    elif assign := _ASSIGN.match(text, end):
        yield _assigned(text, match, assign, limit)
    elif complex_value := _COMPLEX.match(text, end):
        if "?" in _line_before(text, match.start()):
            yield rest_of_line(text, complex_value.end(), limit)
    elif encoded := _ENCODED.match(text, end):
        if run := _ENCODED_RUN.match(text, encoded.end(), limit):
            yield WrittenValue(*run.span(), run.group())
    elif item := _ITEM.match(text, end):
        value = one_value(text, item.end(), limit)
        if match["flag"] or "alue" in item.group() or not NAME_LIKE.fullmatch(value.text):
            yield value
    elif match["flag"]:
        while word := _FLAG_VALUE.match(text, end):
            yield (value := one_value(text, word.end(), limit, LOOSE))
            end = value.end
            if not match["name"].endswith("s"):
                break
    elif loose := _LOOSE.match(text, end):
        yield one_value(text, loose.end(), min(limit, loose.end() + MAX_READ), LOOSE)


def _assigned(text: str, match: re.Match[str], assign: re.Match[str], limit: int) -> WrittenValue:
    start, written = assign.end(), assign.group()
    quote = QUOTE.match(written)
    before = text[match.start() - 1 : match.start()]
    name_quote = quote.group() if quote else ""
    is_line = ":" in written and (text[start - 1] in " \t\n" or text[start : start + 1] in "\r\n")
    line = _LINE_START.fullmatch(_line_before(text, match.start())) if is_line else None
    if line and not match["flag"]:
        return yaml_value(text, start, len(line["indent"] + line["dash"]), name_quote, limit)
    if _HEADERS.match(match["name"].rpartition("/")[2]) and not QUOTE.match(text, start):
        header = _LINE.match(text, start, limit)
        return (
            WrittenValue(*header.span(), header.group())
            if header
            else WrittenValue(start, start, "")
        )
    if scheme := _SCHEME.match(text, start):
        return one_value(text, scheme.end(), limit)._replace(start=start)
    if name_quote and text[start : start + 1] not in BRACKETS and not QUOTE.match(text, start):
        return literal(text, start, limit, name_quote)
    value = one_value(text, start, limit, TIGHT if written.endswith("=") else "")
    if name_quote and text[start : start + 1] in BRACKETS:
        return value._replace(quote=name_quote)
    if before and before in "?&" and not value.quote and (cut := re.search("[&#]", value.text)):
        return WrittenValue(start, start + cut.start(), value.text[: cut.start()], "", value.how)
    return value


def _line_before(text: str, at: int) -> str:
    return text[max(text.rfind("\n", max(0, at - MAX_READ), at) + 1, at - MAX_READ, 0) : at]
