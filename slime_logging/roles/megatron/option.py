"""One option of a parser: its flags, type, `nargs`, choices and default."""

from __future__ import annotations

import argparse
import enum
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ACTIONS: Mapping[str, str] = {
    "_StoreAction": "store",
    "_StoreTrueAction": "store_true",
    "_StoreFalseAction": "store_false",
    "_StoreConstAction": "store_const",
    "BooleanOptionalAction": "boolean_optional",
    "_AppendAction": "append",
    "_AppendConstAction": "append_const",
    "_ExtendAction": "extend",
    "_CountAction": "count",
}
"""Names of argparse's action classes -> names in the table; any other class stores (`store`)."""

KINDS: Mapping[str, str] = {
    "int": "int",
    "float": "float",
    "str": "str",
    "bool": "bool",
    "loads": "json",
    "enum_type_handler": "enum",
    "enum": "enum",
    "moe_freq_type": "pattern",
    "la_freq_type": "pattern",
    "no_rope_freq_type": "pattern",
    "tuple_type": "int_tuple",
}
"""Names of converters (`type=`) -> kinds of value; `enum` is what this module writes for any
enum.
"""

MAX_CHOICES = 100_000
"""More are not kept (`choices=range(2**31)`)."""

SPECIAL_KINDS: Mapping[str, str] = {"cuda_graph_scope": "cuda_graph_scope"}
"""Options whose converter is a lambda in Megatron-LM's parser, so has no name to go by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One option, by its argparse dest.

    `type` is the converter's name; `convert` is the converter itself where a live parser gave the
    option. `default` is what the parser leaves when the flag is absent, before any validation.
    `constants` are known of a live parser: what each flag without a value stores.
    """

    name: str
    flags: tuple[str, ...] = ()
    action: str = "store"
    type: str | None = None
    nargs: int | str | None = None
    choices: tuple[Any, ...] | None = None
    default: Any = None
    convert: Callable[[str], Any] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)

    @property
    def says(self) -> Mapping[str, Any]:
        """Flags that take no value -> the value that each means."""
        if self.constants:
            return self.constants
        if self.action == "boolean_optional":
            return {flag: not flag.startswith("--no-") for flag in self.flags}
        is_set = {"store_true": True, "store_false": False}.get(self.action)
        return {} if is_set is None else dict.fromkeys(self.flags, is_set)

    @property
    def kind(self) -> str:
        """bool, int, float, str, json, enum, pattern, int_tuple, cuda_graph_scope, or other (ask
        `convert`).
        """
        if self.action in ("store_true", "store_false", "boolean_optional"):
            return "bool"
        if self.action == "count":
            return "int"
        if self.action in ("store_const", "append_const"):
            return "const"
        if self.name in SPECIAL_KINDS and self.type == "<lambda>":
            return SPECIAL_KINDS[self.name]
        if self.choices and isinstance(self.choices[0], enum.Enum):
            return "enum"
        return "str" if self.type is None else KINDS.get(self.type, "other")

    @property
    def is_list(self) -> bool:
        """The option takes several words or may be repeated."""
        if self.action in ("append", "append_const", "extend"):
            return True
        return self.nargs in ("*", "+", "...", "A...") or (
            isinstance(self.nargs, int) and self.kind != "bool"
        )

    @property
    def is_nullable(self) -> bool:
        """The option may be unset, because unset is what it is by default."""
        return self.default is None


def option_of(action: argparse.Action) -> Option:
    """What a live parser says of one option."""
    convert = action.type if callable(action.type) else None
    is_switch = action.nargs == 0
    return Option(
        name=action.dest,
        flags=tuple(action.option_strings),
        action=ACTIONS.get(type(action).__name__, "store"),
        type=None
        if action.type is None or is_switch
        else getattr(action.type, "__name__", type(action.type).__name__),
        nargs=None if is_switch else action.nargs,
        choices=_choices_of(action),
        default=None if action.default is argparse.SUPPRESS else action.default,
        convert=convert,
        constants=_constants_of(action),
    )


def _constants_of(action: argparse.Action) -> dict[str, Any]:
    if action.nargs != 0 or isinstance(action, argparse._CountAction | argparse._AppendConstAction):
        return {}
    if isinstance(action, argparse.BooleanOptionalAction):
        return {flag: not flag.startswith("--no-") for flag in action.option_strings}
    return dict.fromkeys(action.option_strings, action.const)


def _choices_of(action: argparse.Action) -> tuple[Any, ...] | None:
    if action.choices is not None:
        try:
            choices = tuple(itertools.islice(action.choices, MAX_CHOICES + 1))
        except TypeError:  # argparse asks of choices only that `in` works
            return None
        return choices if len(choices) <= MAX_CHOICES else None
    if isinstance(action.type, type) and issubclass(action.type, enum.Enum):
        return tuple(action.type)
    if (
        isinstance(action, argparse._StoreConstAction)
        and action.nargs == 0
        and not isinstance(action.const, bool)
    ):
        return (action.const, action.default)
    return (action.const,) if isinstance(action, argparse._AppendConstAction) else None
