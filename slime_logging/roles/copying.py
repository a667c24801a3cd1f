"""A namespace of one's own: the copy that a role's arguments are written into.

Policy: containers are copied, at any depth; what cannot be copied (locks, open files, live handles)
is taken over by reference and never an error. The copy keeps the namespace's class, and objects
that the base held twice it holds twice.
"""

from __future__ import annotations

import copy
import enum
from argparse import Namespace
from typing import Any

ATOMS = (bool, int, float, str, bytes, type(None), enum.Enum)


def copy_namespace(base: Namespace) -> Namespace:
    """A copy that shares no mutable value with `base`, as far as its values can be copied."""
    result = copy.copy(base)
    memo: dict[int, Any] = {}
    for name, value in vars(base).items():
        setattr(result, name, copy_value(value, memo))
    return result


def copy_value(value: Any, memo: dict[int, Any]) -> Any:
    """A copy of a value, or the value itself where it cannot be copied. `memo` is as in
    `copy.deepcopy`.
    """
    if isinstance(value, ATOMS):
        return value
    if id(value) in memo:
        return memo[id(value)]
    kind = type(value)
    if kind is list:
        items: list[Any] = []
        memo[id(value)] = items
        items.extend(copy_value(item, memo) for item in value)
        return items
    if kind is dict:
        entries: dict[Any, Any] = {}
        memo[id(value)] = entries
        entries.update(
            (copy_value(key, memo), copy_value(item, memo)) for key, item in value.items()
        )
        return entries
    if kind in (tuple, set):
        return kind(copy_value(item, memo) for item in value)
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # a foreign __deepcopy__ or __reduce__ may raise anything
        # a container that holds a handle still gets a shell of its own
        memo[id(value)] = copy.copy(value) if isinstance(value, list | dict | set) else value
        return memo[id(value)]
