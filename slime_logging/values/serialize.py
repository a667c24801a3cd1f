"""Any Python value becomes plain JSON.

Policy: `to_json` never raises, never calls the value, never changes it, imports nothing, and gives
the same answer in every process. Nested things stay nested, so that names inside them stay visible
to redaction. What has no JSON form becomes a readable text; what cannot be read becomes a marker in
angle brackets; what is huge is shortened, with its length in the marker.

Guarantees on the result: only None, bool, int, finite float, str, list and dict of exactly those
types; integers within 2**53; text that UTF-8 can hold; string keys; at most `MAX_DEPTH` levels.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import itertools
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import orjson

from slime_logging.values import describe
from slime_logging.values.fields import fields, read_items, read_pairs, snapshot
from slime_logging.values.json_scalars import (
    MAX_SAFE_INT,
    MAX_TEXT_CHARS,
    bytes_json,
    float_json,
    int_json,
    same,
    shortened,
    text_json,
)
from slime_logging.values.json_value import Json

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_TEXT_CHARS",
    "Walk",
    "arguments_to_json",
    "enum_text",
    "key_text",
    "to_json",
]

MAX_NODES = 2**21
"""Of one value in all: as many as 4 MiB of JSON can hold, so that nested lists cannot multiply."""
MAX_DEPTH = 32
"""Far deeper than real configurations, far from Python's and orjson's (254) limits of recursion."""


def to_json(value: Any) -> Json:
    """The value as plain JSON; see the module's policy for what is guaranteed.

    Dicts, Namespaces, dataclasses, attrs classes, pydantic models, named tuples and partials become
    mappings; lists, tuples, sets (sorted) and other sequences become lists; enums their name;
    dtypes, devices, paths, dates, decimals their usual text; functions and classes their qualified
    name; bytes their UTF-8 text, else `base64:...`; tensors and arrays a number (one element) or a
    description; other objects their repr without addresses, or the qualified name of their class.
    NaN and infinities become "NaN", "Infinity", "-Infinity".
    """
    return Walk().any(value, 0)


def arguments_to_json(args: Any) -> dict[str, Json]:
    """Every argument of a namespace, a mapping or an object with fields, by its name, in the
    object's order; neither copied deeply nor changed.
    """
    values = snapshot(args)
    names = set(values)
    out: dict[str, Json] = {}
    for name, value in values.items():
        if type(name) is str:
            out[name if name.isascii() else text_json(name)] = to_json(value)
        else:
            out[_unused(key_text(name), out.keys() | names)] = to_json(value)
    return out


_EXACT: dict[type, Callable[[Any], Json]] = {
    type(None): same,
    bool: same,
    int: int_json,
    float: float_json,
    str: text_json,
    bytes: bytes_json,
}


def key_text(key: Any) -> str:
    """A mapping's key as text: JSON's own words for None and bools, a number's digits, else the
    JSON text of the key.
    """
    if issubclass(type(key), str) and not issubclass(type(key), enum.Enum):
        return text_json(key)
    json = to_json(key)
    return json if isinstance(json, str) else orjson.dumps(json).decode()


def _unused(key: str, taken: Iterable[str] | Mapping[str, Any]) -> str:
    return key if key not in taken else _next_unused(key, 2, taken)[1]


def _next_unused(key: str, first: int, taken: Iterable[str] | Mapping[str, Any]) -> tuple[int, str]:
    return next((n, name) for n in itertools.count(first) if (name := f"{key} ({n})") not in taken)


class Walk:
    """One value's way to JSON: which containers it is inside of, and how many nodes it may still
    make.
    """

    largest = MAX_SAFE_INT

    def __init__(self) -> None:
        self._inside: set[int] = set()
        self._nodes_left = MAX_NODES

    def any(self, value: Any, depth: int) -> Json:
        """The JSON of any value, whatever it does when it is read."""
        self._nodes_left -= 1
        try:
            json = self.simple(value, depth)
            if json is None and value is not None:
                json = self._other(value, depth)
        except (Exception, SystemExit, GeneratorExit) as error:
            return self.lost(f"<unreadable {_class_name(value)}: {type(error).__name__}>")
        return self.fitting(json) if type(json) is str else json

    def simple(self, value: Any, depth: int) -> Json:  # noqa: ARG002 - a metric's depends on it
        """A value that is neither a container nor opaque; None leaves it to the rest."""
        exact = _EXACT.get(type(value))
        return None if exact is None else exact(value)

    def fitting(self, text: str) -> str:
        """A text no longer than is kept."""
        return shortened(text)

    def lost(self, marker: str) -> str:
        """The marker that stands for what is not kept."""
        return marker

    def array(self, value: Any) -> Any:
        """A tensor or array as plainer values, or its description."""
        return describe.array_value(value)

    def _other(self, value: Any, depth: int) -> Json:
        cls = type(value)
        if describe.is_named(value):
            return text_json(describe.qualified_name(value))
        if describe.is_proxy(value):
            return self.lost(text_json(describe.class_name(value)))
        if issubclass(cls, enum.Enum):
            return enum_text(value)
        for base, convert in _SCALARS:
            if issubclass(cls, base):
                return convert(value)
        if describe.is_array(value):
            plain = self.array(value)
            return text_json(plain) if type(plain) is str else self.any(plain, depth)
        if describe.is_a(value, "torch", "dtype") or describe.is_a(value, "torch", "device"):
            return str(value)
        container = self._container(value)
        if container is not None:
            return self._inner(value, container, depth)
        text = describe.object_text(value)
        return text_json(text) if text != describe.class_name(value) else self.lost(text)

    def _container(self, value: Any) -> Callable[[Any, int], Json] | None:
        cls = type(value)
        if issubclass(cls, Mapping):
            return self._mapping
        held = fields(value)
        if held is not None:
            return lambda _, depth: self._mapping(held, depth)
        if issubclass(cls, Set):
            return self._set
        if issubclass(cls, (Sequence, collections.deque, array.array)) and cls is not range:
            return self._sequence
        return None

    def _inner(self, value: Any, container: Callable[[Any, int], Json], depth: int) -> Json:
        if id(value) in self._inside:
            return self.lost(f"<cycle: {describe.class_name(value)}>")
        if depth >= MAX_DEPTH:
            name = describe.class_name(value)
            return self.lost(f"<nested deeper than {MAX_DEPTH} levels: {name}>")
        self._inside.add(id(value))
        try:
            return container(value, depth)
        finally:
            self._inside.discard(id(value))

    def _most(self) -> int:
        return max(0, self._nodes_left)

    def _rest(self, value: Any) -> str:
        return self.lost(f"<shortened: {_length(value)} items>")

    def _sequence(self, value: Any, depth: int) -> Json:
        is_list = issubclass(type(value), list)
        most = self._most()
        items = read_items(lambda: list.__iter__(value) if is_list else iter(value), most + 1)
        if len(items) <= most and self._are_plain(items):
            self._nodes_left -= len(items)
            return items
        out = [self.any(item, depth + 1) for item in items[:most]]
        return [*out, self._rest(value)] if len(items) > most else out

    def _are_plain(self, items: list[Any]) -> bool:
        """Whether all items are numbers that stay as they are: long lists nearly always are."""
        kinds = set(map(type, items))
        if kinds <= {int}:
            return not items or (-self.largest <= min(items) and max(items) <= self.largest)
        if kinds != {float}:
            return False
        total = sum(items)
        return bool(total - total == 0)

    def _set(self, value: Any, depth: int) -> Json:
        # All of a set is read before it is cut: which items come first depends on the process's
        # hash seed.
        most = self._most()
        items = read_items(lambda: iter(value), most + 1)
        out = sorted((self.any(item, depth + 1) for item in items), key=orjson.dumps)
        return [*out[:most], self._rest(value)] if len(items) > most else list(out)

    def _mapping(self, value: Any, depth: int) -> Json:
        out: dict[str, Json] = {}
        seen: dict[str, int] = {}
        most = self._most()
        pairs = read_pairs(value, most + 1)
        for key, item in pairs[:most]:
            name = key_text(key)
            if name in out:
                seen[name], name = _next_unused(name, seen.get(name, 2), out)
            out[name] = self.any(item, depth + 1)
        if len(pairs) > most:
            out[_unused("<shortened>", out)] = self._rest(value)
        return out


def enum_text(value: Any) -> str:
    """The name of an enum's member."""
    name = value._name_
    return text_json(name if issubclass(type(name), str) else repr(value))


def _class_name(value: Any) -> str:
    try:
        return describe.class_name(value)
    except Exception:  # a metaclass that raises
        return "object"


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
