"""What a value in a role file is for: the argument, its option and its current value.

Policy: the option decides, because 232 of a job's 873 arguments are None and a whole number may be
a float that happens to be 1; the current value decides where it is of a kind that options cannot
name (`torch.dtype`, enums), and where nobody knows the option.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.dtypes import is_dtype
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.nodes import Node
from slime_logging.roles.problems import shown_value

BASE_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "str"),
    (dict, "json"),
    ((list, tuple, set, frozenset, type(None)), "any"),
)


class Mistake(Exception):
    """A value that does not fit its option."""

    def __init__(self, node: Node, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason
        self.fix = fix


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a value is for: the argument's name, its option where one is known, its current
    value.
    """

    name: str
    option: Option | None
    base: Any

    @property
    def kind(self) -> str:
        """The kind of value: a dtype or enum where the current value is one, else by the option,
        else by that value.
        """
        if is_dtype(self.base):
            return "dtype"
        if isinstance(self.base, enum.Enum):
            return "enum"
        if self.option is not None:
            return self.option.kind
        return next((kind for kinds, kind in BASE_KINDS if isinstance(self.base, kinds)), "object")

    @property
    def is_list(self) -> bool:
        """The value is a list."""
        if self.option is not None:
            return self.option.is_list
        return isinstance(self.base, list | tuple | set | frozenset)

    @property
    def is_nullable(self) -> bool:
        """The argument may be unset."""
        return self.base is None or (self.option is not None and self.option.is_nullable)

    @property
    def example(self) -> str:
        """An entry that would be right, as YAML."""
        for value in (self.base, None if self.option is None else self.option.default):
            if value is not None and value != [] and not isinstance(value, dict):
                return f"`{self.name}: {shown_value(self.name, as_yaml(value))}`"
        item = EXAMPLES.get(self.kind, "text")
        return f"`{self.name}: {f'[{item}]' if self.is_list else item}`"


EXAMPLES: Mapping[str, str] = {
    "bool": "true",
    "int": "8",
    "float": "1e-5",
    "json": "{name: value}",
    "pattern": '"([0]+[1]*23)"',
    "int_tuple": "[128, 0]",
    "dtype": "bf16",
    "cuda_graph_scope": "attn",
}


def as_yaml(value: Any) -> str:
    """A value as an entry of a role file would write it, near enough to show."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, enum.Enum):
        return value.name
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{', '.join(as_yaml(item) for item in value)}]"
    return str(value)
