"""From the text of a YAML value to the value that the flag would have given.

Policy: what argparse makes of the same text is what comes out, with four differences on purpose:
whole numbers may be written `1e3` and `10.0`, NaN is refused, switches take true and false, and a
mapping may stand where the flag takes JSON. A value that does not fit raises `Mistake`, with the
reason and the fix; nothing is guessed and nothing cut off. Where the current value is a
`torch.dtype` or an enum member, so is the new one.
"""

from __future__ import annotations

from typing import Any

from slime_logging.roles.megatron import patterns
from slime_logging.roles.nodes import Items, Node, Scalar
from slime_logging.roles.said import text_of, unfit
from slime_logging.roles.scalars import convert_one, whole_number
from slime_logging.roles.targets import Mistake, Target


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
    return convert_one(target, node)


def _list(target: Target, node: Node) -> Any:
    nodes = node.nodes if isinstance(node, Items) else (node,)
    nargs = None if target.option is None else target.option.nargs
    if isinstance(nargs, int) and len(nodes) != nargs:
        raise Mistake(
            node,
            f"`{target.name}` takes exactly {nargs} values, not {len(nodes)}",
            f"write a list of {nargs}",
        )
    default = None if target.option is None else target.option.default
    if nargs == "+" and not nodes and default != []:
        raise Mistake(
            node, f"`{target.name}` takes at least one value", "give one, or null to unset it"
        )
    item_target = _item_target(target)
    values = [
        _item(item_target, item, number, isinstance(node, Items))
        for number, item in enumerate(nodes, 1)
    ]
    if isinstance(target.base, tuple | set | frozenset):
        return type(target.base)(values)
    # Megatron's validation makes a list of one into its item where the default is no list
    # (moe_aux_loss_coeff)
    is_unwrapped = target.base is not None and (
        isinstance(target.base, str | int | float) or isinstance(default, str | int | float)
    )
    if target.option is not None and target.option.action == "append" and nargs is not None:
        return [[value] for value in values]
    return values[0] if is_unwrapped and len(values) == 1 else values


def _item_target(target: Target) -> Target:
    if target.option is not None:
        return target
    kinds = {type(item) for item in target.base}
    base = next(iter(target.base)) if len(kinds) == 1 else None
    return Target(name=target.name, option=None, base=base)


def _item(target: Target, node: Node, number: int, in_list: bool) -> Any:
    try:
        return convert_one(target, node)
    except Mistake as mistake:
        raise Mistake(
            mistake.node,
            f"item {number}: {mistake.reason}" if in_list else mistake.reason,
            mistake.fix,
        ) from None


def _pattern(target: Target, node: Node) -> Any:
    """A whole number, a layer pattern, or the list that a pattern stands for."""
    wanted = "a whole number or a pattern such as ([0]+[1]*23)"
    if isinstance(node, Items):
        number = Target(name=target.name, option=None, base=0)
        return [_item(number, item, place, True) for place, item in enumerate(node.nodes, 1)]
    text = text_of(target, node, wanted)
    if "[" not in text:
        return whole_number(target, node)
    try:
        return patterns.evaluate(text)
    except ValueError as error:
        raise unfit(target, node, wanted, f": {error}") from None


def _int_tuple(target: Target, node: Node) -> tuple[int, ...]:
    """Whole numbers, as a list or as the text `1,2` or `(1,2)`."""
    number = Target(name=target.name, option=None, base=0)
    if isinstance(node, Items):
        return tuple(_item(number, item, place, True) for place, item in enumerate(node.nodes, 1))
    text = text_of(target, node, "whole numbers such as [128, 0]")
    parts = [Scalar(part, False, node.line, node.column) for part in text.strip("()").split(",")]
    return tuple(_item(number, part, place, True) for place, part in enumerate(parts, 1))
