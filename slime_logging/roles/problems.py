"""What is wrong with a role file, told so that the reader can mend it.

Policy: every message has the place, the offending text, the reason and the fix. What stands under a
name that looks like a secret (`wandb_key`, `hf_token`) is never repeated, and no comment of the
file is. Text from the file is made harmless for a terminal: control characters are escaped and long
texts cut.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.redact import Redactor
from slime_logging.redaction.secret_names import Verdict, judge

HIDDEN = "<hidden>"
MAX_SHOWN = 80
"""Characters of an offending text that are shown."""

MAX_TOLD = 50
"""Mistakes that a message tells one by one: more than anyone mends at once."""

MAX_READ = 4000
"""Characters of it that are looked through for secrets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One mistake. Lines and columns count from 1; line 0 is the file as a whole. `text` is already
    safe to show.
    """

    line: int
    column: int
    text: str
    reason: str
    fix: str
    role: str | None = None


def looks_secret(name: str) -> bool:
    """Whether the value under this name must not be shown."""
    return judge(name) is not Verdict.SHOWN


def shown(text: str) -> str:
    """A text of the file, on one line, safe for a terminal, at most `MAX_SHOWN` characters."""
    return harmless(text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…")


def harmless(text: str) -> str:
    """A text with its control characters, line breaks included, written as escapes."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def shown_value(name: str, text: str) -> str:
    """The text under a name; `<hidden>` where the name looks like a secret, and parts hidden that
    look like one.
    """
    return HIDDEN if looks_secret(name) else shown(without_secrets(text))


def without_secrets(text: str) -> str:
    """A text without the parts that look like a secret."""
    return _redactor().text(text[:MAX_READ])


def shown_line(line: str) -> str:
    """A line of a file that is not YAML, without its comment; hidden where any name on it looks
    like a secret.
    """
    written = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
    if any(looks_secret(word) or looks_random(word) for word in re.findall(r"[\w-]+", written)):
        return HIDDEN
    return shown(without_secrets(written))


@functools.cache
def _redactor() -> Redactor:
    return Redactor()


def message(path: str, problems: Iterable[Problem]) -> str:
    """All problems of a file as the text of an exception, numbered, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: (problem.line, problem.column))
    count = f"{len(ordered)} mistakes" if len(ordered) > 1 else "1 mistake"
    where = harmless(path)
    return "\n".join(
        [
            f"{count} in the role file {where}:",
            *(_told(where, *item) for item in enumerate(ordered[:MAX_TOLD], 1)),
            *([f"  and {len(ordered) - MAX_TOLD} more"] if len(ordered) > MAX_TOLD else []),
        ]
    )


def _told(path: str, number: int, problem: Problem) -> str:
    place = (
        f"{path}:{problem.line}:{problem.column} (line {problem.line}, column {problem.column})"
        if problem.line
        else path
    )
    lines = [f"  {number}. {place}" + (f", role {problem.role}" if problem.role else "")]
    if problem.text:
        lines.append(f"       {harmless(problem.text)}")
    lines.append(f"     why: {harmless(problem.reason)}")
    lines.append(f"     fix: {harmless(problem.fix)}")
    return "\n".join(lines)
