"""What is wrong with a role file, told so that the reader can mend it.

Policy: every message has the place, the offending text, the reason and the fix. What stands under a name that looks
like a secret (`wandb_key`, `hf_token`) is never repeated, and no comment of the file is. Text from the file is made
harmless for a terminal: control characters are escaped and long texts cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from slime_logging.config.options import OptionTable

HIDDEN = "<hidden>"
MAX_SHOWN = 80
"""Characters of an offending text that are shown."""

SECRET_WORDS = frozenset(
    word + plural
    for word in ("key", "apikey", "token", "secret", "password", "passwd", "passphrase", "credential")
    for plural in ("", "s")
)
SECRET_OPTIONS = frozenset({"wandb_key"})
"""Options of Megatron-LM and slime that hold a secret; their other `*_key` and `*_token` options name columns."""

MIN_OPAQUE_CHARS = 24

_NAMED = re.compile(r"([\w-]+)[\"']?\s*[:=]")
_URL_PASSWORD = re.compile(r"://[^/\s:@]+:[^/\s@]+@")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One mistake. Lines and columns count from 1; line 0 is the file as a whole. `text` is already safe to show."""

    line: int
    column: int
    text: str
    reason: str
    fix: str
    role: str | None = None


def looks_secret(name: str) -> bool:
    """Whether the value under this name must not be shown."""
    plain = name.replace("-", "_")
    if plain in SECRET_OPTIONS:
        return True
    if plain in OptionTable.shipped():
        return False
    return any(word.lower() in SECRET_WORDS for word in _WORD.findall(name))


def shown(text: str) -> str:
    """A text of the file, on one line, safe for a terminal, at most `MAX_SHOWN` characters."""
    short = text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in short)


def shown_value(name: str, text: str) -> str:
    """The text under a name, or `<hidden>` where it, or a name inside of the text, looks like a secret."""
    return HIDDEN if looks_secret(name) or holds_secret(text) else shown(text)


def holds_secret(text: str) -> bool:
    """Whether a text has `name: value` or `name=value` in it with a secret-looking name, or a password in a URL."""
    return bool(_URL_PASSWORD.search(text)) or any(looks_secret(name) for name in _NAMED.findall(text))


def hidden_line(line: str) -> str:
    """A line of a file that is not YAML, without its comment; hidden where any name on it looks like a secret."""
    written = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
    words = re.findall(r"[\w-]+", written)
    if holds_secret(written) or any(looks_secret(word) or _is_opaque(word) for word in words):
        return HIDDEN
    return shown(written)


def _is_opaque(word: str) -> bool:
    """As long and mixed as a key: no name of an option or a file is."""
    return len(word) >= MIN_OPAQUE_CHARS and any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def message(path: str, problems: Iterable[Problem]) -> str:
    """All problems of a file as the text of an exception, numbered, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: (problem.line, problem.column))
    count = f"{len(ordered)} mistakes" if len(ordered) > 1 else "1 mistake"
    return "\n".join([f"{count} in the role file {path}:", *(_told(path, *item) for item in enumerate(ordered, 1))])


def _told(path: str, number: int, problem: Problem) -> str:
    place = (
        f"{path}:{problem.line}:{problem.column} (line {problem.line}, column {problem.column})"
        if problem.line
        else path
    )
    lines = [f"  {number}. {place}" + (f", role {problem.role}" if problem.role else "")]
    if problem.text:
        lines.append(f"       {problem.text}")
    lines.append(f"     why: {problem.reason}")
    lines.append(f"     fix: {problem.fix}")
    return "\n".join(lines)
