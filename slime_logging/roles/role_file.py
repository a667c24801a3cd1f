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

from slime_logging.roles.nodes import Entries, Items, Node, Scalar
from slime_logging.roles.problems import Problem, shown, shown_line

MAX_BYTES = 1 << 18
MAX_DEPTH = 32
MAX_NODES = 20_000
"""A role file has some hundred nodes; the bounds leave more than an order of magnitude."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is well-formed YAML: its path as given, its root, and what a role file must not
    have all the same.
    """

    path: str
    root: Node
    problems: tuple[Problem, ...] = ()


class Unreadable(Exception):
    """The file is not a YAML document that a role file can be; `problems` says where and why."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.reason for problem in problems))
        self.problems = problems


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
            _problem(
                0, 0, f"the file is larger than {MAX_BYTES >> 10} KiB", "is this the right file?"
            )
        )
    text = _decode(content)
    builder = _Builder()
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
            _problem(
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


def _problem(line: int, column: int, reason: str, fix: str, text: str = "") -> Problem:
    return Problem(line=line, column=column, text=text, reason=reason, fix=fix)


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
    return _problem(
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


class _Builder:
    """Makes the tree from the parser's events, without recursion; collects what is wrong with
    it.
    """

    def __init__(self) -> None:
        self.root: Node = Scalar("", True, 1, 1)
        self.problems: list[Problem] = []
        self._num_documents = 0
        self._num_nodes = 0
        self._open: list[tuple[str | None, bool, int, int, list[Node]]] = []
        self._anchors: dict[str, tuple[Node, int]] = {}

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            self._num_documents += 1
            if self._num_documents > 1:
                line, column = _place(event)
                raise Unreadable(
                    _problem(
                        line, column, "a second document starts here", "keep one document a file"
                    )
                )
        elif kind == "AliasEvent":
            self._take_alias(event)
        elif kind == "ScalarEvent":
            line, column = _place(event)
            self._refuse_tag(event)
            is_plain = event.style is None or event.style == ""
            self._add(Scalar(event.value, is_plain, line, column), event.anchor, 1)
        elif kind in ("SequenceStartEvent", "MappingStartEvent"):
            line, column = _place(event)
            self._refuse_tag(event)
            if len(self._open) >= MAX_DEPTH:
                raise Unreadable(
                    _problem(
                        line, column, f"nested deeper than {MAX_DEPTH} levels", "write it flatter"
                    )
                )
            self._open.append((event.anchor, kind == "MappingStartEvent", line, column, []))
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            anchor, is_mapping, line, column, children = self._open.pop()
            node = (
                self._entries(children, line, column)
                if is_mapping
                else Items(tuple(children), line, column)
            )
            self._add(node, anchor, 1)

    def _add(self, node: Node, anchor: str | None, size: int) -> None:
        self._num_nodes += size
        if self._num_nodes > MAX_NODES:
            raise Unreadable(
                _problem(
                    node.line,
                    node.column,
                    f"more than {MAX_NODES} values, aliases counted",
                    "is this the right file?",
                )
            )
        if anchor is not None:
            self._anchors[anchor] = (node, _size(node))
        if self._open:
            self._open[-1][4].append(node)
        else:
            self.root = node

    def _take_alias(self, event: Any) -> None:
        line, column = _place(event)
        found = self._anchors.get(event.anchor)
        if found is None:
            fix = "define the anchor (&name) above the alias (*name), or write the value out"
            raise Unreadable(
                _problem(line, column, f"alias *{event.anchor} has no anchor before it", fix)
            )
        node, size = found
        self._add(node, None, size)

    def _refuse_tag(self, event: Any) -> None:
        tag = getattr(event, "tag", None)
        if tag is None:
            return
        line, column = _place(event)
        fix = "take the tag out: the option decides the type, and quotes make a text"
        self.problems.append(
            _problem(
                line,
                column,
                f"the tag '{shown(str(tag))}' is not allowed in a role file",
                fix,
                shown(str(tag)),
            )
        )

    def _entries(self, children: list[Node], line: int, column: int) -> Entries:
        pairs: dict[str, tuple[Scalar, Node]] = {}
        merged: list[tuple[Scalar, Node]] = []
        for key, value in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, Scalar):
                self.problems.append(
                    _problem(key.line, key.column, "a key must be a name", "write `name: value`")
                )
            elif key.text == "<<" and key.is_plain:
                merged.extend(self._merged(value))
            elif key.text in pairs:
                first = pairs[key.text][0]
                reason = (
                    f"the key `{shown(key.text)}` stands twice; the first is on line {first.line}"
                )
                self.problems.append(
                    _problem(key.line, key.column, reason, "keep one of the two", shown(key.text))
                )
            else:
                pairs[key.text] = (key, value)
        for key, value in merged:
            pairs.setdefault(key.text, (key, value))
        return Entries(tuple(pairs.values()), line, column)

    def _merged(self, value: Node) -> Iterator[tuple[Scalar, Node]]:
        sources = value.nodes if isinstance(value, Items) else (value,)
        for source in sources:
            if isinstance(source, Entries):
                yield from source.pairs
            else:
                fix = "write `<<: *name`, with the anchor on a mapping"
                self.problems.append(
                    _problem(
                        source.line, source.column, "only a mapping can be merged by `<<`", fix
                    )
                )


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _size(node: Node) -> int:
    total, waiting = 0, [node]
    while waiting:
        current = waiting.pop()
        total += 1
        if total > MAX_NODES:
            break
        if isinstance(current, Items):
            waiting.extend(current.nodes)
        elif isinstance(current, Entries):
            waiting.extend(value for _, value in current.pairs)
    return total
