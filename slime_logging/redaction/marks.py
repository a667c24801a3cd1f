"""The text that stands for a hidden value: `<hidden: NAME>`, with no length and no hash.

Policy: a mark is one piece: no rule looks into it, ends in the middle of it or hides it again, so
redaction is idempotent.
"""

from __future__ import annotations

import re

MARK = re.compile(r"<hidden: [^<>]{0,100}>")

MAX_NAME_CHARS = 64
"""Of the name in a mark; the longest option of Megatron and slime has 57 characters."""

_OPEN = "<hidden: "
_NOT_IN_NAME = re.compile(r"[^\w.+ -]+")


def mark(name: str) -> str:
    """What stands for the value of this name; characters that could end the mark or be markup are
    left out.
    """
    return f"{_OPEN}{_NOT_IN_NAME.sub('', name).strip()[:MAX_NAME_CHARS].strip() or 'secret'}>"


def as_name(text: str) -> str:
    """The text with `hidden-NAME` for each mark: for what becomes part of an address or a path,
    such as a project.
    """
    return MARK.sub(lambda match: "hidden-" + re.sub(r"[^\w.]+", "-", name_in(match.group())), text)


def name_in(marked: str) -> str:
    """The name that a mark shows."""
    return marked[len(_OPEN) : -1]
