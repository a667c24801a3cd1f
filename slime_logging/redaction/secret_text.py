"""Secrets inside a text: `name=value`, `"name": value`, `--name value`, YAML lines, headers,
queries, XML elements.

Policy: the text is never parsed and written anew; a value's characters are replaced where they
stand, and everything else stays byte for byte. In the texts of a configuration more is hidden
rather than less where the end of a value is unclear; in those of a row (`hide_random`) only what
looks random is hidden. The cost grows linearly with the text: a value is read to its end only if
it is hidden, and else `MAX_READ` characters at most.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from slime_logging.redaction.marks import MARK
from slime_logging.redaction.search import Budget, Replacement, decoded, engine, replaced
from slime_logging.redaction.secret_forms import Found, is_mixed, looks_random
from slime_logging.redaction.secret_names import Verdict

Judge = Callable[[str], Verdict]

MAX_READ = 512
"""Characters of a value that are read to find out whether it is a secret."""
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
_QUOTE = re.compile(r"(\\{0,16})(\"\"\"|'''|[\"'`])")
_ASSIGN = re.compile(
    rf"(?:\\{{0,16}}[\"'`])?\]?{_S}(?:=>|:=|\+=|\?=|==?|:(?!//)){_S}|"
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
_RUN = re.compile(
    r"(?:<hidden: [^<>]{0,100}>|[^\s\"'`\\,;&|<]+|\\(?!\\{0,16}[\"'`])|<(?!/|hidden)|"
    r"[,;&|](?!\s|\\{0,16}[\"'`]?-{0,2}[\w.-]{1,64}\\{0,16}[\"'`]?[=:]|\Z))+"
)
_LITERAL = re.compile(r"(?:<hidden: [^<>]{0,100}>|[^\s,}\]\"'\\])+")
_SCHEME = re.compile(
    r"(?i:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256|splunk)[ \t]{1,8}"
    r"(?=[^\s\"'`])"
)
_LINE = re.compile(r"[^\r\n\"'`]+")
_REST = re.compile(r"[^\r\n]*")
_ELEMENT = re.compile(r"[^<>]{0,80}>")
_OPENS_QUOTE = re.compile(r"(?:\A[bBrRuUfF]{1,2}|[\w.]{0,60}[(\[{=])\Z")
_DELIMITERS = {mark: re.compile(r"(?<!\\)(\\*)" + mark) for mark in ('"""', "'''", '"', "'", "`")}
LOOSE, TIGHT = "loose", "tight"
_HEADERS = re.compile(r"(?i:(?:proxy-?)?authorization(?:[_-]header)?|(?:set-?)?cookie)\Z")
_NOTHING = re.compile(
    r"(?i:true|false|null|none|nil|yes|no|on|off|~|\.\.\.|str|string|bytes|optional\[str\])?\Z"
)
_NO_VALUE = re.compile(
    r"(?i:or|and|is|are|was|to|in|for|with|the|a|an|of|if|as|by|not|from|at|it|must|needs?|has|may|"
    r"can|instead|on|off|unset|set|given|yet|value|option|flag)[.,;:!?)]*\Z"
)
"""Words behind a flag in a sentence: `set --wandb-key or WANDB_API_KEY`."""
_LINE_START = re.compile(
    r"(?P<indent>[ \t]*)(?:#+[ \t]*)?(?P<dash>(?:-[ \t]+)*)(?:\?[ \t]+)?[\"']?"
)
_SPECIAL = re.compile(r"[\"'`\[\](){}]")
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class _Value(NamedTuple):
    """Where a value stands, its text without quotes, the quotes to put around what replaces it, and
    how it was assigned: `LOOSE` by nothing but a space, `TIGHT` by `=` without one.
    """

    start: int
    end: int
    text: str
    quote: str = ""
    how: str = ""


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
                value = max(value, _one(text, value.start, len(text)), key=lambda found: found.end)
            pieces += [text[done : value.start], value.quote, hide(shown_as, value.text)]
            pieces.append(value.quote)
            done = value.end
    return "".join(pieces) + text[done:] if pieces else text


def _is_secret(match: re.Match[str], value: _Value, verdict: Verdict, judge: Judge) -> bool:
    """Whether the value is hidden, which takes less in data than in prose (`token: expected`)."""
    plain = value.text.strip()
    word = plain.rstrip(").,;:!?")
    if _NOTHING.match(plain) or MARK.fullmatch(plain):
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


def _values(text: str, match: re.Match[str], limit: int) -> Iterator[_Value]:
    """The values assigned to the name that was matched, in order; none is read beyond the limit."""
    end, before = match.end(), text[match.start() - 1 : match.start()]
    if before == "<" and (element := _ELEMENT.match(text, end)):
        close = text.find("<", element.end(), limit)
        close = limit if close < 0 else close
        yield _Value(element.end(), close, text[element.end() : close])
    elif assign := _ASSIGN.match(text, end):
        yield _assigned(text, match, assign, limit)
    elif complex_value := _COMPLEX.match(text, end):
        if "?" in _line_before(text, match.start()):
            yield _line(text, complex_value.end(), limit)
    elif encoded := _ENCODED.match(text, end):
        if run := _ENCODED_RUN.match(text, encoded.end(), limit):
            yield _Value(*run.span(), run.group())
    elif item := _ITEM.match(text, end):
        value = _one(text, item.end(), limit)
        if match["flag"] or "alue" in item.group() or not NAME_LIKE.fullmatch(value.text):
            yield value
    elif match["flag"]:
        while word := _FLAG_VALUE.match(text, end):
            yield (value := _one(text, word.end(), limit, LOOSE))
            end = value.end
            if not match["name"].endswith("s"):
                break
    elif loose := _LOOSE.match(text, end):
        yield _one(text, loose.end(), min(limit, loose.end() + MAX_READ), LOOSE)


def _assigned(text: str, match: re.Match[str], assign: re.Match[str], limit: int) -> _Value:
    start, written = assign.end(), assign.group()
    quote = _QUOTE.match(written)
    before = text[match.start() - 1 : match.start()]
    name_quote = quote.group() if quote else ""
    is_line = ":" in written and (text[start - 1] in " \t\n" or text[start : start + 1] in "\r\n")
    line = _LINE_START.fullmatch(_line_before(text, match.start())) if is_line else None
    if line and not match["flag"]:
        return _yaml(text, start, len(line["indent"] + line["dash"]), name_quote, limit)
    if _HEADERS.match(match["name"].rpartition("/")[2]) and not _QUOTE.match(text, start):
        header = _LINE.match(text, start, limit)
        return _Value(*header.span(), header.group()) if header else _Value(start, start, "")
    if scheme := _SCHEME.match(text, start):
        return _one(text, scheme.end(), limit)._replace(start=start)
    if name_quote and text[start : start + 1] not in _CLOSING and not _QUOTE.match(text, start):
        return _literal(text, start, limit, name_quote)
    value = _one(text, start, limit, TIGHT if written.endswith("=") else "")
    if name_quote and text[start : start + 1] in _CLOSING:
        return value._replace(quote=name_quote)
    if before and before in "?&" and not value.quote and (cut := re.search("[&#]", value.text)):
        return _Value(start, start + cut.start(), value.text[: cut.start()], "", value.how)
    return value


def _literal(text: str, start: int, limit: int, quote: str) -> _Value:
    """A number or word of JSON; the quote of its name goes around what replaces it."""
    found = _LITERAL.match(text, start, limit)
    return _Value(*found.span(), found.group(), quote) if found else _Value(start, start, "")


def _line_before(text: str, at: int) -> str:
    return text[max(text.rfind("\n", max(0, at - MAX_READ), at) + 1, at - MAX_READ, 0) : at]


def _line(text: str, start: int, limit: int) -> _Value:
    if _QUOTE.match(text, start):
        return _one(text, start, limit)
    end = _REST.match(text, start, limit).end()  # type: ignore[union-attr]
    return _Value(start, end, text[start:end])


def _one(text: str, start: int, limit: int, how: str = "") -> _Value:
    """One value as shells, JSON and Python write it: quoted, in brackets, or a run without
    spaces.
    """
    if quote := _QUOTE.match(text, start):
        return _quoted(text, start, quote, limit)._replace(how=how)
    if text[start : start + 1] in _CLOSING and start < len(text):
        end = _balanced(text, start, limit)
        return _Value(start, end, text[start:end], "", how)
    run = _RUN.match(text, start, limit)
    if run is None:
        return _Value(start, start, "", "", how)
    end, found = run.end(), run.group()
    if _OPENS_QUOTE.search(found[-64:]) and (inner := _QUOTE.match(text, end)):
        quoted = _quoted(text, end, inner, limit)
        closes = text[quoted.end : quoted.end + 1] in (")", "]", "}")
        return _Value(start, quoted.end + closes, quoted.text, "", how)
    if not any(c in found for c in "([{"):
        found = found.rstrip(")]}") or found
    return _Value(start, start + len(found), found, "", how)


def _quoted(text: str, start: int, quote: re.Match[str], limit: int) -> _Value:
    """A quoted value, with what follows it without a space: 'it''s' of YAML, 'it'"'"'s' of
    shells.
    """
    inner_end, end = _closing(text, quote, limit)
    while not quote.group(1) and end < limit and (text[end] in "\"'" or text[end].isalnum()):
        inner = _QUOTE.match(text, end)
        run = _RUN.match(text, end, limit)
        end = _closing(text, inner, limit)[1] if inner else run.end() if run else limit
    return _Value(start, end, text[quote.end() : inner_end], quote.group())


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
        if char in _CLOSING:
            stack.append(_CLOSING[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return at
        elif quote := _QUOTE.match(text, found.start()):
            at = max(at, _quoted(text, found.start(), quote, limit).end)
    return limit


def _yaml(text: str, start: int, indent: int, name_quote: str, limit: int) -> _Value:
    """The value of a YAML line: quoted or bracketed, else the rest of the line and every deeper
    line below it.
    """
    if _QUOTE.match(text, start) or text[start : start + 1] in tuple("[{"):
        return _one(text, start, limit)
    first = _line(text, start, limit)
    plain = first.text.strip()
    if name_quote and plain.endswith((",", "}", "]")):
        return _literal(text, start, limit, '"')
    if plain and _NOTHING.match(plain):
        return first
    deeper = _below(indent).match(text, first.end, limit)
    if deeper and deeper.group().strip():
        return _Value(start, deeper.end(), first.text + deeper.group())
    found = re.split(r"\s#", first.text, maxsplit=1)[0].rstrip()
    return _Value(start, start + len(found), found)


@functools.lru_cache(maxsize=64)
def _below(indent: int) -> re.Pattern[str]:
    """The lines that are deeper than this, or items of a list at this depth."""
    return re.compile(
        rf"(?:\r?\n(?:[ \t]{{{indent + 1},}}[^\r\n]*|[ \t]*(?=\r?\n)|"
        rf"[ \t]{{{indent}}}-[ \t][^\r\n]*))*"
    )


_WORDS = (
    "key|token|secret|passw|passphrase|passcode|_pass|sshpass|pwd|bindpw|_pw|cred|auth|sig|cookie|"
    "jwt|bearer|dsn|webhook|_pat|sess|密|口令|令牌|凭证"
)
_HEAD = (
    rf"(?i:{_WORDS})(?:[\w.\x80-\xfe-]{{0,48}}(?:\\{{0,8}}[\"'`])?\]?[ \t]{{0,4}}(?:=>|:=|==?|:)"
    r"[ \t]{0,4}|[\w.-]{0,48}(?:%2[27])?(?:%3[Dd]|%3[Aa](?:%20|\+)?)(?:%2[27])?)"
    r"(?:\\{0,8}[\"'`]|[bBrRuUfF]{1,2}[\"'])?"
)
_FLAG_HEAD = rf"--[\w-]{{0,48}}(?i:{_WORDS})[\w-]{{0,48}}[ \t]{{1,4}}[\"']?"
_RANDOM = r"[^\s\"'`<>(){}\[\],;&|\\=:\x00\x7f-\xff]{16,}={0,2}"
_HEADS = re.compile(f"{_FLAG_HEAD}|{_HEAD}".encode())
_NAME_BYTES = re.compile(rb"[\w.\-/%\x80-\xfe]*")


ASSIGNMENT = f"(?:{_FLAG_HEAD}|{_HEAD})(?:{_RANDOM})"
"""What `hide_random` looks at."""


@functools.cache
def _assignments() -> Any:
    return engine(ASSIGNMENT)


def hide_random(data: bytes, judge: Judge, hide: Found, budget: Budget) -> bytes:
    """The UTF-8 of a row's text with every value that looks random and is assigned to a secret name
    replaced by `hide(name, value)`.
    """

    def decide(start: int, end: int) -> Replacement | None:
        head = _HEADS.match(data, start, end)
        if head is None:
            return None
        before = _NAME_BYTES.match(data[max(0, start - 64) : start][::-1])
        written = (before.group()[::-1] if before else b"") + data[start : head.end()]
        name = re.match(r"[\w./-]*", written.decode(errors="replace").rpartition("%3F")[2])
        value = data[head.end() : end].decode(errors="replace")
        found = name.group().strip("-") if name else ""
        if not found or judge(found) is Verdict.SHOWN or not looks_random(value):
            return None
        return head.end(), end, hide(found, value)

    return replaced(data, _assignments(), decide, budget)
