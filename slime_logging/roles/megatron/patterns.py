"""Layer patterns such as `([1]*3+[0]*1)*3`, evaluated without running code.

Policy: gives what Python gives for lists, tuples and whole numbers joined by `+` and `*`, and
refuses everything else; the result has at most `MAX_LAYERS` items, checked before each product is
made.
"""

from __future__ import annotations

import ast
from typing import TypeAlias, Union

MAX_LAYERS = 16_384
"""No model comes near; it keeps `[1]*10000000000` from using up memory."""

MAX_CHARS = 4_096

Value: TypeAlias = Union[int, "list[Value]", "tuple[Value, ...]"]


def evaluate(text: str) -> Value:
    """The value of a pattern.

    Raises:
        ValueError: The text is no pattern, or its result is too long; the message says which part.
    """
    if len(text) > MAX_CHARS:
        raise ValueError(f"longer than {MAX_CHARS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _value(tree.body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("not a list expression") from None


def _value(node: ast.expr) -> Value:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value)
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _sum(_value(node.left), _value(node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _product(_value(node.left), _value(node.right))
    raise ValueError("only lists, whole numbers, + and * are allowed")


def _sum(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return _bounded(left + right)
    if isinstance(left, list) and isinstance(right, list):
        return _bounded(left + right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _bounded(left + right)
    raise ValueError("+ joins two lists or two numbers")


def _product(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return _bounded(left * right)
    if isinstance(left, int):
        left, right = right, left
    if isinstance(left, int) or not isinstance(right, int):
        raise ValueError("* repeats a list a whole number of times")
    if len(left) * right > MAX_LAYERS:
        raise ValueError(f"the pattern has more than {MAX_LAYERS} layers")
    return left * right


def _bounded(value: Value) -> Value:
    if isinstance(value, int):
        if abs(value) > 1 << 62:
            raise ValueError("a number is too large")
    elif len(value) > MAX_LAYERS:
        raise ValueError(f"the pattern has more than {MAX_LAYERS} layers")
    return value
