"""When two values are the same.

Policy: nothing here raises, whatever a foreign `__eq__` does.
"""

from __future__ import annotations

from typing import Any


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, True and 1 not counted as equal; what cannot be compared is
    not.
    """
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    try:
        return bool(left == right)
    except Exception:  # a foreign __eq__ (arrays) may raise anything
        return left is right


def identical(left: Any, right: Any) -> bool:
    """Whether two values are equal and of the same types, at any depth: 1 and 1.0 are not."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(identical, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(identical(left[k], right[k]) for k in left)
    return same(left, right) or (left != left and right != right)


def alike(left: Any, right: Any) -> bool:
    """Whether two values are the same, objects that cannot be compared by their attributes."""
    if same(left, right):
        return True
    if isinstance(left, list | tuple) and type(left) is type(right):
        return len(left) == len(right) and all(map(alike, left, right))
    return type(left) is type(right) and (left != left or _by_attributes(left, right))


def _by_attributes(left: Any, right: Any) -> bool:
    is_plain = getattr(type(left), "__eq__", None) is getattr(object, "__eq__", None)
    if not is_plain or not hasattr(left, "__dict__"):
        return False
    return vars(left).keys() == vars(right).keys() and all(
        alike(value, vars(right)[name]) for name, value in vars(left).items()
    )
