"""Any Python value becomes plain JSON.

Policy: `to_json` never raises, never calls the value, never changes it, imports nothing, and gives
the same answer in every process. Nested things stay nested, so that names inside them stay visible
to redaction. What has no JSON form becomes a readable text; what cannot be read becomes a marker in
angle brackets; what is huge is shortened, with its length in the marker.

Guarantees on the result: only None, bool, int, finite float, str, list and dict of exactly those
types; integers within 2**53; text that UTF-8 can hold; string keys; at most `MAX_DEPTH` levels.
"""

from __future__ import annotations

import argparse
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import os
import re
import types
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import orjson

from slime_logging.values import describe
from slime_logging.values.json_scalars import (
    MAX_TEXT_CHARS,
    bytes_json,
    float_json,
    int_json,
    same,
    text_json,
)
from slime_logging.values.json_value import Json
from slime_logging.values.models import declared_fields, stored_fields

__all__ = [
    "MAX_DEPTH",
    "MAX_ITEMS",
    "MAX_TEXT_CHARS",
    "arguments_to_json",
    "metric_to_json",
    "to_json",
]

MAX_ITEMS = 1_000
"""Of one list or mapping. A configuration's lists are a few dozen long; longer ones are data (token
ids, datasets).
"""
MAX_NODES = 20_000
"""Of one option's value in all, so that nested lists cannot multiply `MAX_ITEMS`."""
MAX_DEPTH = 32
"""Far deeper than real configurations, far from Python's and orjson's (254) limits of recursion."""


def to_json(value: Any) -> Json:
    """The value as plain JSON; see the module's policy for what is guaranteed.

    Dicts, Namespaces, dataclasses, pydantic and attrs models, named tuples and partials become
    mappings; lists, tuples, sets (sorted) and other sequences become lists; enums their name;
    dtypes, devices, paths, dates, decimals their usual text; functions and classes their qualified
    name; bytes their UTF-8 text, else `base64:...`; tensors and arrays a number (one element) or a
    description; other objects their repr without addresses, or the qualified name of their class.
    NaN and infinities become "NaN", "Infinity", "-Infinity".
    """
    exact = _EXACT.get(type(value))
    return exact(value) if exact is not None else _Walk().any(value, 0)


def arguments_to_json(args: argparse.Namespace | Mapping[str, Any]) -> dict[str, Json]:
    """Every argument of a namespace or mapping, by its name, in the namespace's order; neither
    copied deeply nor changed.
    """
    values = _snapshot(args)
    names = set(values)
    out: dict[str, Json] = {}
    for name, value in values.items():
        exact = _EXACT.get(type(value))
        json = exact(value) if exact is not None else _Walk().any(value, 0)
        if type(name) is str:
            out[name if name.isascii() else text_json(name)] = json
        else:
            out[_unused(_key_text(name), out.keys() | names)] = json
    return out


def metric_to_json(value: Any) -> Json:
    """The value of a metric: as `to_json`, except that numbers stay numbers (NaN and infinities
    too, large integers too).
    """
    cls = type(value)
    if cls is float or cls is bool or value is None:
        return value  # type: ignore[no-any-return]
    if cls is int and -(2**63) <= value < 2**63:
        return value  # type: ignore[no-any-return]
    return _Walk(is_metric=True).any(value, 0)


def _snapshot(args: Any) -> dict[Any, Any]:
    """A flat copy, so that a thread that sets an argument meanwhile cannot break the iteration."""
    for _ in range(3):
        try:
            if issubclass(type(args), Mapping):
                return dict(args) if not issubclass(type(args), dict) else dict(dict.items(args))
            return dict(object.__getattribute__(args, "__dict__"))
        except RuntimeError:
            continue
        except Exception:
            break
    return {}


_EXACT: dict[type, Callable[[Any], Json]] = {
    type(None): same,
    bool: same,
    int: int_json,
    float: float_json,
    str: text_json,
    bytes: bytes_json,
}


def _key_text(key: Any) -> str:
    """A mapping's key as text: JSON's own words for None and bools, a number's digits, else the
    JSON text of the key.
    """
    if issubclass(type(key), str) and not issubclass(type(key), enum.Enum):
        return text_json(key)
    json = to_json(key)
    return json if isinstance(json, str) else orjson.dumps(json).decode()


def _unused(key: str, taken: Iterable[str] | Mapping[str, Any]) -> str:
    if key not in taken:
        return key
    return next(name for n in itertools.count(2) if (name := f"{key} ({n})") not in taken)


class _Walk:
    """One value's way to JSON: which containers it is inside of, and how many nodes it may still
    make.
    """

    __slots__ = ("_inside", "_is_metric", "_nodes_left")

    def __init__(self, is_metric: bool = False) -> None:
        self._inside: set[int] = set()
        self._nodes_left = MAX_NODES
        self._is_metric = is_metric

    def any(self, value: Any, depth: int) -> Json:
        """The JSON of any value, whatever it does when it is read."""
        self._nodes_left -= 1
        if self._is_metric and issubclass(
            type(value), (int, float, decimal.Decimal, fractions.Fraction)
        ):
            return self._number(value)
        exact = _EXACT.get(type(value))
        if exact is not None:
            return exact(value)
        try:
            return self._other(value, depth)
        except (Exception, SystemExit, GeneratorExit) as error:
            return f"<unreadable {describe.class_name(value)}: {type(error).__name__}>"

    def _number(self, value: Any) -> Json:
        cls = type(value)
        if cls is bool:
            return bool(value)
        try:
            if issubclass(cls, enum.Enum):
                return text_json(value._name_)
            if issubclass(cls, int):
                number = int.__int__(value)
                return number if -(2**63) <= number < 2**63 else float(number)
            return float.__float__(value) if issubclass(cls, float) else float(value)
        except (Exception, SystemExit, GeneratorExit):
            return text_json(describe.object_text(value))

    def _other(self, value: Any, depth: int) -> Json:
        cls = type(value)
        if describe.is_named(value):
            return text_json(describe.qualified_name(value))
        if describe.is_proxy(value):
            return text_json(describe.class_name(value))
        if issubclass(cls, enum.Enum):
            name = value._name_
            return text_json(name) if issubclass(type(name), str) else text_json(repr(value))
        for base, convert in _SCALARS:
            if issubclass(cls, base):
                return convert(value)
        if describe.is_array(value):
            plain = describe.array_value(value)
            return text_json(plain) if type(plain) is str else self.any(plain, depth)
        if describe.is_a(value, "torch", "dtype") or describe.is_a(value, "torch", "device"):
            return str(value)
        container = self._container(value)
        if container is not None:
            return self._inner(value, container, depth)
        return text_json(describe.object_text(value))

    def _container(self, value: Any) -> Callable[[Any, int], Json] | None:
        cls = type(value)
        if issubclass(cls, Mapping):
            return self._mapping
        if issubclass(cls, (argparse.Namespace, types.SimpleNamespace)):
            return lambda v, depth: self._mapping(_snapshot(v), depth)
        if dataclasses.is_dataclass(cls):
            own = stored_fields(value, [field.name for field in dataclasses.fields(cls)])
            return lambda _, depth: self._mapping(own, depth)
        fields = declared_fields(value)
        if fields is not None:
            return lambda _, depth: self._mapping(fields, depth)
        if issubclass(cls, functools.partial):
            return lambda v, depth: self._mapping(describe.partial_parts(v), depth)
        names = getattr(cls, "_fields", None)
        if issubclass(cls, tuple) and isinstance(names, tuple):
            return lambda v, depth: self._mapping(
                dict(zip(names, tuple.__iter__(v), strict=False)), depth
            )
        if issubclass(cls, Set):
            return self._set
        if issubclass(cls, (Sequence, collections.deque, array.array)) and cls is not range:
            return self._sequence
        return None

    def _inner(self, value: Any, container: Callable[[Any, int], Json], depth: int) -> Json:
        if id(value) in self._inside:
            return f"<cycle: {describe.class_name(value)}>"
        if depth >= MAX_DEPTH:
            return f"<nested deeper than {MAX_DEPTH} levels: {describe.class_name(value)}>"
        self._inside.add(id(value))
        try:
            return container(value, depth)
        finally:
            self._inside.discard(id(value))

    def _take(self, items: Iterable[Any]) -> tuple[list[Any], bool]:
        limit = max(0, min(MAX_ITEMS, self._nodes_left))
        taken = list(itertools.islice(items, limit + 1))
        return taken[:limit], len(taken) > limit

    def _sequence(self, value: Any, depth: int) -> Json:
        items, is_cut = self._take(
            list.__iter__(value) if issubclass(type(value), list) else iter(value)
        )
        out: list[Json] = [self.any(item, depth + 1) for item in items]
        if is_cut:
            out.append(f"<shortened: {_length(value)} items>")
        return out

    def _set(self, value: Any, depth: int) -> Json:
        # All of a set is read before it is cut: which items come first depends on the process's
        # hash seed.
        items = list(itertools.islice(value, self._nodes_left + 1))
        out = sorted((self.any(item, depth + 1) for item in items), key=orjson.dumps)
        return (
            [*out[:MAX_ITEMS], f"<shortened: {_length(value)} items>"]
            if len(out) > MAX_ITEMS
            else list(out)
        )

    def _mapping(self, value: Any, depth: int) -> Json:
        out: dict[str, Json] = {}
        is_cut = False
        if issubclass(type(value), dict):
            pairs, is_cut = self._take(dict.items(value))
        else:
            keys, is_cut = self._take(iter(value))
            pairs = [(key, _item(value, key)) for key in keys]
        for key, item in pairs:
            out[_unused(_key_text(key), out)] = self.any(item, depth + 1)
        if is_cut:
            out[_unused("<shortened>", out)] = f"<shortened: {_length(value)} items>"
        return out


class _Unreadable:
    """Stands for an item whose reading raised."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __repr__(self) -> str:
        return f"<unreadable: {type(self._error).__name__}>"


def _item(mapping: Any, key: Any) -> Any:
    try:
        return mapping[key]
    except (Exception, SystemExit, GeneratorExit) as error:
        return _Unreadable(error)


def _length(value: Any) -> int | str:
    try:
        return len(value)
    except Exception:
        return "many"


_SCALARS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Json]], ...] = (
    (str, text_json),
    (int, int_json),
    (float, float_json),
    ((bytes, bytearray, memoryview), bytes_json),
    (os.PathLike, lambda value: to_json(os.fspath(value))),
    (
        (decimal.Decimal, fractions.Fraction, uuid.UUID, datetime.timedelta),
        lambda value: text_json(str(value)),
    ),
    ((datetime.date, datetime.time), lambda value: text_json(value.isoformat())),
    (re.Pattern, lambda value: to_json(value.pattern)),
)
