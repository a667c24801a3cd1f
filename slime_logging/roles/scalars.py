"""One scalar of a role file -> the value that argparse's converter would have given.

Policy: each converter takes the texts that mean a value of its kind, and raises `Mistake` for all
others.
"""

from __future__ import annotations

import enum
import json
import math
import signal
from collections.abc import Callable, Mapping
from typing import Any

from slime_logging.roles.dtypes import dtype_named, same_dtype
from slime_logging.roles.nodes import Entries, Node, core_value
from slime_logging.roles.problems import shown_value
from slime_logging.roles.said import (
    _said,
    float_text,
    not_a_choice,
    text_of,
    unfit,
    whole_number_of,
)
from slime_logging.roles.targets import Mistake, Target, as_yaml

SWITCH_WORDS: Mapping[str, bool] = {
    "true": True,
    "yes": True,
    "on": True,
    "false": False,
    "no": False,
    "off": False,
}
ENUMS: Mapping[str, type[enum.Enum]] = {"exit_signal": signal.Signals}
"""Options whose values are members of an enum of the standard library, whatever the base holds."""


def convert_one(target: Target, node: Node) -> Any:
    """A single value, checked against the choices.

    Raises:
        Mistake: The value does not fit.
    """
    value = CONVERTERS[target.kind](target, node)
    choices = None if target.option is None else target.option.choices
    if (
        choices
        and target.kind in ("int", "float", "str", "other", "const")
        and value not in choices
    ):
        alias = _dtype_alias(target, choices, value)
        if alias is None:
            raise not_a_choice(target, node, [as_yaml(choice) for choice in choices])
        return alias
    return value


def _dtype_alias(target: Target, choices: tuple[Any, ...], value: Any) -> Any:
    if not target.name.endswith("_dtype") or not isinstance(value, str):
        return None
    return next(
        (choice for choice in choices if isinstance(choice, str) and same_dtype(choice, value)),
        None,
    )


def _bool(target: Target, node: Node) -> bool:
    value = SWITCH_WORDS.get(text_of(target, node, "true or false").strip().lower())
    if value is None:
        raise Mistake(
            node,
            f"`{target.name}` takes true or false, not {_said(target, node)}",
            f"write `{target.name}: true` or `{target.name}: false`",
        )
    return value


def whole_number(target: Target, node: Node) -> int:
    """A whole number, as `whole_number_of` reads it."""
    number = whole_number_of(text_of(target, node, "a whole number").strip())
    if number is None:
        raise unfit(target, node, "a whole number")
    return number


def _float(target: Target, node: Node) -> float:
    plain = float_text(text_of(target, node, "a number"))
    try:
        number = float(plain)
    except (ValueError, OverflowError):
        raise unfit(target, node, "a number") from None
    if math.isnan(number):
        raise unfit(target, node, "a number", ": training with it gives nothing but NaN")
    if math.isinf(number) and "inf" not in plain:
        raise unfit(
            target,
            node,
            "a number",
            ", which is larger than any float (write .inf if that is meant)",
        )
    return number


def _str(target: Target, node: Node) -> str:
    return text_of(target, node, "a text")


def _json(target: Target, node: Node) -> Any:
    if isinstance(node, Entries):
        return core_value(node)
    text = text_of(target, node, "a mapping, or the JSON text of one")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise unfit(target, node, "a mapping, or the JSON text of one", where) from None
    if not isinstance(value, dict):
        raise unfit(target, node, "a mapping, or the JSON text of one")
    return value


def _dtype(target: Target, node: Node) -> Any:
    text = text_of(target, node, "a dtype").strip()
    choices = None if target.option is None else target.option.choices
    found = dtype_named(text)
    allowed = [str(choice) for choice in choices] if choices else ["bf16", "fp16", "fp32"]
    if found is None or not any(same_dtype(text, name) for name in allowed):
        raise not_a_choice(target, node, allowed)
    return found


def _enum(target: Target, node: Node) -> Any:
    text = text_of(target, node, "a name").strip()
    choices = None if target.option is None else target.option.choices
    known = next(iter(ENUMS[target.name])) if target.name in ENUMS else None
    first = next(
        (found for found in (target.base, *(choices or ()), known) if isinstance(found, enum.Enum)),
        None,
    )
    if first is None:  # only the table knows it: the names are all there is
        if choices and text not in choices:
            raise not_a_choice(target, node, [str(choice) for choice in choices])
        return text
    members = type(first).__members__
    name = text.removeprefix(f"{type(first).__name__}.")
    if name not in members:
        raise not_a_choice(target, node, list(members))
    return members[name]


def _cuda_graph_scope(target: Target, node: Node) -> Any:
    """A member of megatron.core's CudaGraphScope where that can be imported, else the name; `full`
    stays a text.
    """
    text = text_of(target, node, "a scope's name").strip()
    if text == "full":
        return text
    try:
        from megatron.core.transformer.enums import CudaGraphScope
    except ImportError:
        return text
    if text not in CudaGraphScope.__members__:
        raise not_a_choice(target, node, [*CudaGraphScope.__members__, "full"])
    return CudaGraphScope[text]


def _other(target: Target, node: Node) -> Any:
    """Whatever the parser's own converter makes of the text."""
    text = text_of(target, node, "a text")
    convert = None if target.option is None else target.option.convert
    if convert is None:
        return core_value(node)
    try:
        return convert(text)
    except (
        Exception
    ) as error:  # a converter may raise anything; argparse reports each of them as a bad value
        name = getattr(convert, "__name__", "the option's converter")
        more = "" if shown_value(target.name, text) != text else f": {error}"
        raise unfit(target, node, f"what `{name}` accepts", more) from None


def _const(target: Target, node: Node) -> Any:
    value = core_value(node)
    choices = (target.option.choices if target.option else None) or ()
    if (
        isinstance(value, bool) and choices
    ):  # a switch with a value of its own: true and false mean set and not set
        return choices[0 if value else -1]
    return value


def _object(target: Target, node: Node) -> Any:
    raise Mistake(
        node,
        f"`{target.name}` holds a {type(target.base).__name__}, which YAML cannot write",
        "leave the entry out; it keeps what it is",
    )


CONVERTERS: Mapping[str, Callable[[Target, Node], Any]] = {
    "bool": _bool,
    "int": whole_number,
    "float": _float,
    "str": _str,
    "json": _json,
    "dtype": _dtype,
    "enum": _enum,
    "cuda_graph_scope": _cuda_graph_scope,
    "other": _other,
    "const": _const,
    "any": _other,
    "object": _object,
}
