"""The text that stands for a hidden value: `<hidden: NAME>`, with no length and no hash.

Policy: it is one piece: no rule looks into it, ends in the middle of it or hides it again, so
redaction is idempotent.
"""

from __future__ import annotations

import re

PLACEHOLDER = re.compile(r"<hidden: [^<>]{0,100}>")

MAX_NAME_CHARS = 64
"""Of the name in it; the longest option of Megatron and slime has 57 characters."""

_OPEN = "<hidden: "
_NOT_IN_NAME = re.compile(r"[^\w.+ -]+")


def placeholder(name: str) -> str:
    """What stands for the value of this name; characters that could end it or be markup are
    left out.
    """
    return f"{_OPEN}{_NOT_IN_NAME.sub('', name).strip()[:MAX_NAME_CHARS].strip() or 'secret'}>"


def as_name(text: str) -> str:
    """The text with `hidden-NAME` for each placeholder: for what becomes part of an address or a
    path, such as a project.
    """
    return PLACEHOLDER.sub(
        lambda match: "hidden-" + re.sub(r"[^\w.]+", "-", name_in(match.group())), text
    )


def name_in(written: str) -> str:
    """The name that a placeholder shows."""
    return written[len(_OPEN) : -1]
