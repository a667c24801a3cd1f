"""Foreign texts made safe to print: exceptions of vendors' clients, hostile names and values.

Policy: never raises; redaction comes first, so that what is shortened or escaped afterwards was
whole when it was looked through.
"""

from __future__ import annotations

import re
from typing import Protocol

MAX_EXCEPTION_CHARS = 500
"""Of an exception's line: enough for an HTTP error with its address, and short enough for a log."""

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""C0 and C1 controls but tab and newline, and the invisible characters that turn or join what is
around them.
"""


class RedactsText(Protocol):
    """What hides secrets in a text: `config.redact.Redactor`."""

    def text(self, s: str) -> str:
        """The text without secrets."""


def escape_terminal(text: str) -> str:
    """The text with control characters and terminal escapes made visible (`\\x1b`); newlines and
    tabs stay. Markup is not its matter.
    """
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def as_label(text: str, most_chars: int) -> str:
    """What people call something: without control characters and outer space, and not longer."""
    return _CONTROL.sub(" ", text).strip()[:most_chars].strip()


def safe_exception_text(redactor: RedactsText, exc: BaseException) -> str:
    """`TypeName: message` of a foreign exception on one line: redacted, without terminal escapes,
    shortened; never raises.
    """
    try:
        message = str(exc)
    except Exception:
        message = "<unreadable>"
    line = " ".join(redactor.text(message).split())
    line = escape_terminal(f"{type(exc).__name__}: {line}" if line else type(exc).__name__)
    return line if len(line) <= MAX_EXCEPTION_CHARS else line[:MAX_EXCEPTION_CHARS].rstrip() + "..."
