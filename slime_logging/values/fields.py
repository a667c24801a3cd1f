"""What stands inside an object that holds settings: a namespace, a mapping, a dataclass, a model,
a named tuple, a partial.

Policy: stored values only. No property, validator or default is run, nothing is imported: the kinds
are known by what their classes define. A thread that changes the object meanwhile cannot break the
reading.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slime_logging.values import describe
from slime_logging.values.models import declared_fields, stored_fields

_TRIES = 10
"""How often reading starts anew where another thread changes what is read."""


class Unreadable:
    """Stands for an item whose reading raised."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __repr__(self) -> str:
        return f"<unreadable: {type(self._error).__name__}>"


def read_items(items: Callable[[], Iterable[Any]], most: int) -> list[Any]:
    """At most `most` items; read anew where the collection was changed meanwhile.

    Raises what the items' own code raises.
    """
    for _ in range(_TRIES - 1):
        try:
            return list(itertools.islice(items(), most))
        except RuntimeError:  # CPython's word for a collection that changed while it was read
            continue
    return list(itertools.islice(items(), most))


def read_pairs(mapping: Any, most: int) -> list[tuple[Any, Any]]:
    """Keys and values of any mapping, an `Unreadable` where one cannot be read."""
    if issubclass(type(mapping), dict):
        return read_items(lambda: dict.items(mapping), most)
    return [(key, _item(mapping, key)) for key in read_items(lambda: iter(mapping), most)]


def fields(value: Any) -> dict[Any, Any] | None:
    """What an object with fields holds, by their names; None for any other object."""
    cls = type(value)
    if issubclass(cls, (argparse.Namespace, types.SimpleNamespace)):
        return _stored(value)
    if issubclass(cls, functools.partial):
        return describe.partial_parts(value)
    names = getattr(cls, "_fields", None)
    if issubclass(cls, tuple) and isinstance(names, tuple):
        return dict(zip(names, tuple.__iter__(value), strict=False))
    if dataclasses.is_dataclass(cls):
        return stored_fields(value, [field.name for field in dataclasses.fields(cls)])
    return declared_fields(value)


def snapshot(args: Any) -> dict[Any, Any]:
    """The arguments in a namespace, a mapping or an object with fields, flat; empty where nothing
    can be read.
    """
    try:
        if issubclass(type(args), Mapping):
            return dict(read_pairs(args, 2**31))
        found = fields(args)
        return _stored(args) if found is None else found
    except Exception:
        return {}


def _stored(value: Any) -> dict[Any, Any]:
    held = object.__getattribute__(value, "__dict__")
    return dict(read_items(lambda: dict.items(held), 2**31))


def _item(mapping: Any, key: Any) -> Any:
    try:
        return mapping[key]
    except (Exception, SystemExit, GeneratorExit) as error:
        # OmegaConf's word for a value that is still to be given.
        is_missing = type(error).__name__ == "MissingMandatoryValue"
        return "???" if is_missing else Unreadable(error)
