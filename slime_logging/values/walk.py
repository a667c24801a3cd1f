"""One value's way to plain JSON: which containers it is inside of, and how much it may still make.

Policy: see `serialize`, whose guarantees are kept here.
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
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import orjson

from slime_logging.values import describe
from slime_logging.values.fields import fields, read_items, read_pairs
from slime_logging.values.json_scalars import (
    MAX_SAFE_INT,
    bytes_json,
    float_json,
    int_json,
    number_text,
    same,
    shortened,
    text_json,
)
from slime_logging.values.json_value import Json

MAX_NODES = 2**21
"""Of one value in all: as many as 4 MiB of JSON can hold, so that nested lists cannot multiply."""
MAX_DEPTH = 32
"""Far deeper than real configurations, far from Python's and orjson's (254) limits of recursion."""

_EXACT: dict[type, Callable[[Any], Json]] = {
    type(None): same,
    bool: same,
    int: int_json,
    float: float_json,
    str: text_json,
    bytes: bytes_json,
}


class Walk:
    """The walk of one value; made anew for each."""

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
        held = None if issubclass(cls, Mapping) else fields(value)
        if held is not None or issubclass(cls, _CONTAINERS):
            return self._container(value, held, depth)
        text = describe.object_text(value)
        is_said = text != describe.class_name(value) and not issubclass(cls, Iterator)
        return text_json(text) if is_said else self.lost(text)

    def _container(self, value: Any, held: dict[Any, Any] | None, depth: int) -> Json:
        if id(value) in self._inside:
            return self.lost(f"<cycle: {describe.class_name(value)}>")
        if depth >= MAX_DEPTH:
            name = describe.class_name(value)
            return self.lost(f"<nested deeper than {MAX_DEPTH} levels: {name}>")
        self._inside.add(id(value))
        try:
            if held is not None or issubclass(type(value), Mapping):
                return self._mapping(value if held is None else held, depth)
            if issubclass(type(value), Set):
                return self._set(value, depth)
            return self._sequence(value, depth)
        finally:
            self._inside.discard(id(value))

    def _rest(self, value: Any) -> str:
        return self.lost(f"<shortened: {_length(value)} items>")

    def _sequence(self, value: Any, depth: int) -> Json:
        is_list = issubclass(type(value), list)
        most = max(0, self._nodes_left)
        items = read_items(lambda: list.__iter__(value) if is_list else iter(value), most + 1)
        if len(items) <= most and _are_plain(items, self.largest):
            self._nodes_left -= len(items)
            return items
        out = [self.any(item, depth + 1) for item in items[:most]]
        return [*out, self._rest(value)] if len(items) > most else out

    def _set(self, value: Any, depth: int) -> Json:
        # All of a set is read before it is cut: which items come first depends on the process's
        # hash seed.
        most = max(0, self._nodes_left)
        items = read_items(lambda: iter(value), most + 1)
        out = sorted((self.any(item, depth + 1) for item in items), key=orjson.dumps)
        return [*out[:most], self._rest(value)] if len(items) > most else list(out)

    def _mapping(self, value: Any, depth: int) -> Json:
        out: dict[str, Json] = {}
        seen: dict[str, int] = {}
        most = max(0, self._nodes_left)
        pairs = read_pairs(value, most + 1)
        for key, item in pairs[:most]:
            name = key_text(key)
            if name in out:
                seen[name], name = _next_unused(name, seen.get(name, 2), out)
            out[name] = self.any(item, depth + 1)
        if len(pairs) > most:
            out[unused("<shortened>", out)] = self._rest(value)
        return out


def key_text(key: Any) -> str:
    """A mapping's key as text: JSON's own words for None and bools, a number's digits, else the
    JSON text of the key.
    """
    if issubclass(type(key), str) and not issubclass(type(key), enum.Enum):
        return text_json(key)
    json = Walk().any(key, 0)
    return json if isinstance(json, str) else orjson.dumps(json).decode()


def enum_text(value: Any) -> str:
    """The name of an enum's member."""
    name = value._name_
    return text_json(name if issubclass(type(name), str) else repr(value))


def unused(key: str, taken: Mapping[str, Any] | Set[str]) -> str:
    """The key itself, or the first `<key> (<number>)` that is not taken."""
    return key if key not in taken else _next_unused(key, 2, taken)[1]


def _next_unused(key: str, first: int, taken: Mapping[str, Any] | Set[str]) -> tuple[int, str]:
    return next((n, name) for n in itertools.count(first) if (name := f"{key} ({n})") not in taken)


def _are_plain(items: list[Any], largest: int) -> bool:
    """Whether all items are numbers that stay as they are: long lists nearly always are."""
    kinds = set(map(type, items))
    if kinds <= {int}:
        return not items or (-largest <= min(items) and max(items) <= largest)
    if kinds != {float}:
        return False
    total = sum(items)
    return bool(total - total == 0)


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


def _memory_json(value: memoryview) -> Json:
    """The text of bytes; of numbers their list."""
    is_bytes = value.format in ("B", "b", "c")
    return bytes_json(value) if is_bytes else Walk().any(value.tolist(), 0)


_CONTAINERS = (Mapping, Set, list, tuple, collections.deque, array.array, Sequence)
_SCALARS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Json]], ...] = (
    (str, text_json),
    (int, int_json),
    (float, float_json),
    ((bytes, bytearray), bytes_json),
    (memoryview, _memory_json),
    (os.PathLike, lambda value: Walk().any(os.fspath(value), 0)),
    ((decimal.Decimal, fractions.Fraction), number_text),
    ((uuid.UUID, datetime.timedelta, range), lambda value: text_json(str(value))),
    ((datetime.date, datetime.time), lambda value: text_json(value.isoformat())),
    (re.Pattern, lambda value: Walk().any(value.pattern, 0)),
)
