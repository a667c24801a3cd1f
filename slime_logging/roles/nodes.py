"""The tree of a role file: scalars with their text, lists and mappings, each with its place.

Policy: a scalar stays text, because only the option it is for can say what `010`, `no` or `1e-5`
means; `core_value` is for values that no option speaks for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""YAML 1.2, core schema."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar's text; `is_plain` where it was written without quotes. Lines and columns count from
    1.
    """

    text: str
    is_plain: bool
    line: int
    column: int

    @property
    def is_null(self) -> bool:
        """YAML's null; a quoted "null" is a text."""
        return self.is_plain and self.text in NULLS


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    nodes: tuple[Node, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping, in the order of the file, duplicate keys already refused."""

    pairs: tuple[tuple[Scalar, Node], ...]
    line: int
    column: int

    def get(self, key: str) -> Node | None:
        """The value under a key."""
        return next((value for name, value in self.pairs if name.text == key), None)


Node: TypeAlias = Scalar | Items | Entries


def core_value(node: Node) -> Any:
    """The value of a node by YAML 1.2's core schema (`no` and `12:30` are texts, `010` is ten,
    `1e-5` a number).
    """
    if isinstance(node, Items):
        return [core_value(item) for item in node.nodes]
    if isinstance(node, Entries):
        return {key.text: core_value(value) for key, value in node.pairs}
    if not node.is_plain:
        return node.text
    return _core_scalar(node.text)


_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+")

_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(NULLS),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{
        f"{sign}{word}": float(f"{sign}inf")
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    },
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def _core_scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    for convert in (int, _based_int, float):
        try:
            value = convert(text)
        except ValueError:
            continue
        return (
            text if value == math.inf else value
        )  # a number that no float holds stays what was written
    return text


def _based_int(text: str) -> int:
    if text[:2] not in ("0x", "0o"):
        raise ValueError(text)
    return int(text[2:], {"0x": 16, "0o": 8}[text[:2]])
