"""A tree of nodes out of the events of a YAML parser, bounded in depth and number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slime_logging.roles.nodes import Entries, Items, Node, Scalar
from slime_logging.roles.problems import Problem, shown

MAX_DEPTH = 32

MAX_NODES = 20_000
"""A role file has some hundred nodes; the bounds leave more than an order of magnitude."""


class Unreadable(Exception):
    """The file is not a YAML document that a role file can be; `problems` says where and why."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.reason for problem in problems))
        self.problems = problems


def problem_at(line: int, column: int, reason: str, fix: str, text: str = "") -> Problem:
    """A problem at a place of the file."""
    return Problem(line=line, column=column, text=text, reason=reason, fix=fix)


class TreeBuilder:
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
        """Take in the parser's next event; raises `Unreadable` where a bound is passed."""
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            self._num_documents += 1
            if self._num_documents > 1:
                line, column = _place(event)
                raise Unreadable(
                    problem_at(
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
                    problem_at(
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
                problem_at(
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
                problem_at(line, column, f"alias *{event.anchor} has no anchor before it", fix)
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
            problem_at(
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
                    problem_at(key.line, key.column, "a key must be a name", "write `name: value`")
                )
            elif key.text == "<<" and key.is_plain:
                merged.extend(self._merged(value))
            elif key.text in pairs:
                first = pairs[key.text][0]
                reason = (
                    f"the key `{shown(key.text)}` stands twice; the first is on line {first.line}"
                )
                self.problems.append(
                    problem_at(key.line, key.column, reason, "keep one of the two", shown(key.text))
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
                    problem_at(
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
