"""Role files as written: a tree of YAML nodes, each with its text and its place.

Policy: scalars stay text, because only the option they are for can say what `010`, `no` or `1e-5`
means. Reading takes any bytes and either gives a `Document` or the reasons why not, as `Problem`s;
it raises nothing else. Nothing in a file makes an object or runs code: tags are refused. Size,
depth and the number of nodes (aliases counted each time they are used) are bounded, so no file can
use up memory or the stack.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.nodes import Node
from slime_logging.roles.problems import Problem, shown_line
from slime_logging.roles.tree import TreeBuilder, Unreadable, problem_at

MAX_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is well-formed YAML: its path as given, its root, and what a role file must not
    have all the same.
    """

    path: str
    root: Node
    problems: tuple[Problem, ...] = ()


def read_document(path: str) -> Document:
    """Read a file once.

    Raises:
        Unreadable: The file cannot be read or is not one well-formed YAML document.
    """
    try:
        # A pipe is not waited for, and only what a role file can be is read at all.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - of a descriptor
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError("it is no regular file")
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (
            "it is a directory"
            if isinstance(error, IsADirectoryError)
            else (getattr(error, "strerror", None) or str(error))
        )
        raise Unreadable(
            Problem(
                line=0,
                column=0,
                text="",
                reason=f"the file cannot be read: {reason[:1].lower()}{reason[1:]}",
                fix="give --megatron-config-path the path of a readable role file",
            )
        ) from None
    return parse_document(content, path)


def parse_document(content: bytes, path: str = "") -> Document:
    """The one document in these bytes; an empty file is a null.

    Raises:
        Unreadable: The bytes are no well-formed YAML document within the bounds.
    """
    if len(content) > MAX_BYTES:
        raise Unreadable(
            problem_at(
                0, 0, f"the file is larger than {MAX_BYTES >> 10} KiB", "is this the right file?"
            )
        )
    text = _decode(content)
    builder = TreeBuilder()
    try:
        for event in _events(text):
            builder.take(event)
    except Unreadable:
        raise
    except (
        Exception
    ) as error:  # ruamel's scanner raises more than YAMLError on some malformed input
        raise Unreadable(_syntax_problem(error, text)) from None
    return Document(path, builder.root, tuple(builder.problems))


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise Unreadable(
            problem_at(
                line,
                column,
                f"byte 0x{content[error.start]:02x} is not UTF-8",
                "save the file as UTF-8",
            )
        ) from None


def _events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yield from yaml.parse(text)


def _syntax_problem(error: Exception, text: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        line, column = mark.line + 1, mark.column + 1
        reason = str(
            getattr(error, "problem", None) or getattr(error, "context", None) or "not valid YAML"
        )
    else:
        position = getattr(error, "position", None)  # ruamel's ReaderError counts characters
        position = position if isinstance(position, int) else 0
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        reason = str(getattr(error, "reason", None) or "the parser cannot read it")
    lines = text.splitlines()
    written = lines[line - 1] if 0 < line <= len(lines) else ""
    return problem_at(
        line, column, f"not valid YAML: {reason}", _syntax_fix(reason), shown_line(written)
    )


def _syntax_fix(reason: str) -> str:
    if "\\t" in reason or "tab" in reason:
        return "indent with spaces, not tabs"
    if "alias" in reason:
        return "define the anchor (&name) above the alias (*name), or write the value out"
    if "mapping values" in reason:
        return "put a value that holds ': ' in quotes, and check the indentation of the lines above"
    return "check quotes, brackets, colons and the indentation of this line and the one above"
