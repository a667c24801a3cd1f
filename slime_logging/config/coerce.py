"""From the text of a YAML value to the value that the flag would have given.

Policy: what argparse makes of the same text is what comes out, with four differences on purpose: whole numbers may be
written `1e3` and `10.0`, NaN is refused, switches take true and false, and a mapping may stand where the flag takes
JSON. A value that does not fit raises `Mistake`, with the reason and the fix; nothing is guessed and nothing is cut off.
Where the current value is a `torch.dtype` or an enum member, so is the new one.
"""

from __future__ import annotations

import difflib
import enum
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from slime_logging.config import patterns
from slime_logging.config.dtypes import dtype_named, is_dtype, same_dtype
from slime_logging.config.options import Option
from slime_logging.config.problems import shown_value
from slime_logging.config.role_file import Entries, Items, Node, Scalar, core_value

SWITCH_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
MAX_DIGITS = 400
"""Digits of a whole number; a float holds 309 of them, and `1e999999999` must not be written out."""


class Mistake(Exception):  # noqa: N818 - becomes a Problem, never leaves the configuration's room
    """A value that does not fit its option."""

    def __init__(self, node: Node, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason
        self.fix = fix


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a value is for: the argument's name, its option where one is known, its current value."""

    name: str
    option: Option | None
    base: Any

    @property
    def kind(self) -> str:
        """The kind of value: the current value's where it is a dtype or enum, else the option's, else the current value's."""
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
        return f"`{self.name}: {EXAMPLES.get(self.kind, 'text') if not self.is_list else '[' + EXAMPLES.get(self.kind, 'text') + ']'}`"


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


def coerce(target: Target, node: Node) -> Any:
    """The value of `node` for `target`.

    Raises:
        Mistake: The value does not fit.
    """
    if isinstance(node, Scalar) and node.is_null:
        if target.is_nullable:
            return None
        fix = f"leave the entry out to keep what it is, or give a value: {target.example}"
        raise Mistake(node, f"`{target.name}` cannot be unset (null)", fix)
    if target.kind == "pattern":
        return _pattern(target, node)
    if target.kind == "int_tuple":
        return _int_tuple(target, node)
    if target.is_list:
        return _list(target, node)
    return _one(target, node)


def _one(target: Target, node: Node) -> Any:
    """A single value, checked against the choices."""
    value = CONVERTERS[target.kind](target, node)
    choices = None if target.option is None else target.option.choices
    if choices and target.kind in ("int", "float", "str", "other", "const") and value not in choices:
        alias = _dtype_alias(target, choices, value)
        if alias is None:
            raise _not_a_choice(target, node, [as_yaml(choice) for choice in choices])
        return alias
    return value


def _not_a_choice(target: Target, node: Node, names: list[str]) -> Mistake:
    text = node.text if isinstance(node, Scalar) else ""
    ranked = sorted(names, key=lambda name: -difflib.SequenceMatcher(None, text.lower(), name.lower()).ratio())
    fix = f"write one of: {', '.join(ranked[:40])}"
    return Mistake(node, f"{_said(target, node)} is not among the values of `{target.name}`", fix)


def _dtype_alias(target: Target, choices: tuple[Any, ...], value: Any) -> Any:
    if not target.name.endswith("_dtype") or not isinstance(value, str):
        return None
    return next((choice for choice in choices if isinstance(choice, str) and same_dtype(choice, value)), None)


def _said(target: Target, node: Node) -> str:
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Entries):
        return "a mapping"
    if node.is_null:
        return "null"
    return f"'{shown_value(target.name, node.text)}'"


def _text(target: Target, node: Node, wanted: str) -> str:
    """The scalar's text; `wanted` says what the option takes, for the reason."""
    if isinstance(node, Scalar) and not node.is_null:
        return node.text
    raise _unfit(target, node, wanted)


def _unfit(target: Target, node: Node, wanted: str, more: str = "") -> Mistake:
    return Mistake(
        node, f"`{target.name}` takes {wanted}, not {_said(target, node)}{more}", f"write for example {target.example}"
    )


def _bool(target: Target, node: Node) -> bool:
    value = SWITCH_WORDS.get(_text(target, node, "true or false").strip().lower())
    if value is None:
        raise Mistake(
            node,
            f"`{target.name}` takes true or false, not {_said(target, node)}",
            f"write `{target.name}: true` or `{target.name}: false`",
        )
    return value


def _int(target: Target, node: Node) -> int:
    text = _text(target, node, "a whole number").strip()
    try:
        return int(text)
    except ValueError:
        pass
    try:
        if text[:2].lower() in ("0x", "0o"):
            return int(text, 0)
        number = Decimal(text)
        if number.is_finite() and number.adjusted() < MAX_DIGITS and number == number.to_integral_value():
            return int(number)
    except (ValueError, InvalidOperation):
        pass
    raise _unfit(target, node, "a whole number")


def _float(target: Target, node: Node) -> float:
    text = _text(target, node, "a number").strip()
    plain = text.lower().replace(".inf", "inf").replace(".nan", "nan")
    try:
        number = float(int(plain, 0) if plain[:2] in ("0x", "0o") else plain)
    except (ValueError, OverflowError):
        raise _unfit(target, node, "a number") from None
    if math.isnan(number):
        raise _unfit(target, node, "a number", ": training with it gives nothing but NaN")
    if math.isinf(number) and "inf" not in plain:
        raise _unfit(target, node, "a number", ", which is larger than any float (write .inf if that is meant)")
    return number


def _str(target: Target, node: Node) -> str:
    return _text(target, node, "a text")


def _json(target: Target, node: Node) -> Any:
    if isinstance(node, Entries):
        return core_value(node)
    text = _text(target, node, "a mapping, or the JSON text of one")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise _unfit(target, node, "a mapping, or the JSON text of one", where) from None
    if not isinstance(value, dict):
        raise _unfit(target, node, "a mapping, or the JSON text of one")
    return value


def _dtype(target: Target, node: Node) -> Any:
    text = _text(target, node, "a dtype").strip()
    choices = None if target.option is None else target.option.choices
    found = dtype_named(text)
    allowed = [str(choice) for choice in choices] if choices else ["bf16", "fp16", "fp32"]
    if found is None or not any(same_dtype(text, name) for name in allowed):
        raise _not_a_choice(target, node, allowed)
    return found


def _enum(target: Target, node: Node) -> Any:
    text = _text(target, node, "a name").strip()
    choices = None if target.option is None else target.option.choices
    first = target.base if isinstance(target.base, enum.Enum) else (choices[0] if choices else None)
    if not isinstance(first, enum.Enum):  # only the table knows it: the names are all there is
        if choices and text not in choices:
            raise _not_a_choice(target, node, [str(choice) for choice in choices])
        return text
    members = type(first).__members__
    name = text.removeprefix(f"{type(first).__name__}.")
    if name not in members:
        raise _not_a_choice(target, node, list(members))
    return members[name]


def _cuda_graph_scope(target: Target, node: Node) -> Any:
    """A member of megatron.core's CudaGraphScope where that can be imported, else the name; `full` stays a text."""
    text = _text(target, node, "a scope's name").strip()
    if text == "full":
        return text
    try:
        from megatron.core.transformer.enums import CudaGraphScope
    except ImportError:
        return text
    if text not in CudaGraphScope.__members__:
        raise _not_a_choice(target, node, [*CudaGraphScope.__members__, "full"])
    return CudaGraphScope[text]


def _other(target: Target, node: Node) -> Any:
    """Whatever the parser's own converter makes of the text."""
    text = _text(target, node, "a text")
    convert = None if target.option is None else target.option.convert
    if convert is None:
        return core_value(node)
    try:
        return convert(text)
    except Exception as error:  # a converter may raise anything; argparse reports each of them as a bad value
        name = getattr(convert, "__name__", "the option's converter")
        more = "" if shown_value(target.name, text) != text else f": {error}"
        raise _unfit(target, node, f"what `{name}` accepts", more) from None


def _const(target: Target, node: Node) -> Any:
    value = core_value(node)
    choices = (target.option.choices if target.option else None) or ()
    if isinstance(value, bool) and choices:  # a switch with a value of its own: true and false mean set and not set
        return choices[0 if value else -1]
    return value


def _any(target: Target, node: Node) -> Any:
    return core_value(node)


def _object(target: Target, node: Node) -> Any:
    raise Mistake(
        node,
        f"`{target.name}` holds a {type(target.base).__name__}, which YAML cannot write",
        "leave the entry out; it keeps what it is",
    )


def _mapping(target: Target, node: Node) -> Any:
    return _json(target, node)


CONVERTERS: Mapping[str, Callable[[Target, Node], Any]] = {
    "bool": _bool,
    "int": _int,
    "float": _float,
    "str": _str,
    "json": _json,
    "dtype": _dtype,
    "enum": _enum,
    "cuda_graph_scope": _cuda_graph_scope,
    "other": _other,
    "const": _const,
    "any": _any,
    "object": _object,
}

BASE_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "str"),
    (dict, "json"),
    ((list, tuple, set, frozenset, type(None)), "any"),
)


def _list(target: Target, node: Node) -> Any:
    nodes = node.nodes if isinstance(node, Items) else (node,)
    nargs = None if target.option is None else target.option.nargs
    if isinstance(nargs, int) and len(nodes) != nargs:
        raise Mistake(
            node, f"`{target.name}` takes exactly {nargs} values, not {len(nodes)}", f"write a list of {nargs}"
        )
    default = None if target.option is None else target.option.default
    if nargs == "+" and not nodes and default != []:
        raise Mistake(node, f"`{target.name}` takes at least one value", "give one, or null to unset it")
    item_target = _item_target(target)
    values = [_item(item_target, item, number, isinstance(node, Items)) for number, item in enumerate(nodes, 1)]
    if isinstance(target.base, tuple | set | frozenset):
        return type(target.base)(values)
    is_unwrapped = target.base is not None and not isinstance(target.base, list)
    # Megatron's validation makes a list of one into its item (moe_aux_loss_coeff), and such is the base then
    return values[0] if is_unwrapped and len(values) == 1 else values


def _item_target(target: Target) -> Target:
    if target.option is not None:
        return target
    kinds = {type(item) for item in target.base}
    base = next(iter(target.base)) if len(kinds) == 1 else None
    return Target(name=target.name, option=None, base=base)


def _item(target: Target, node: Node, number: int, in_list: bool) -> Any:
    try:
        return _one(target, node)
    except Mistake as mistake:
        raise Mistake(
            mistake.node, f"item {number}: {mistake.reason}" if in_list else mistake.reason, mistake.fix
        ) from None


def _pattern(target: Target, node: Node) -> Any:
    """A whole number, a layer pattern, or the list that a pattern stands for."""
    wanted = "a whole number or a pattern such as ([0]+[1]*23)"
    if isinstance(node, Items):
        number = Target(name=target.name, option=None, base=0)
        return [_item(number, item, place, True) for place, item in enumerate(node.nodes, 1)]
    text = _text(target, node, wanted)
    if "[" not in text:
        return _int(target, node)
    try:
        return patterns.evaluate(text)
    except ValueError as error:
        raise _unfit(target, node, wanted, f": {error}") from None


def _int_tuple(target: Target, node: Node) -> tuple[int, ...]:
    """Whole numbers, as a list or as the text `1,2` or `(1,2)`."""
    number = Target(name=target.name, option=None, base=0)
    if isinstance(node, Items):
        return tuple(_item(number, item, place, True) for place, item in enumerate(node.nodes, 1))
    text = _text(target, node, "whole numbers such as [128, 0]")
    parts = [Scalar(part, False, node.line, node.column) for part in text.strip("()").split(",")]
    return tuple(_item(number, part, place, True) for place, part in enumerate(parts, 1))
