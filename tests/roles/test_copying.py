"""Copies of namespaces."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections import OrderedDict, defaultdict

from slime_logging.roles.copying import copy_namespace


class Stubborn:
    def __deepcopy__(self, memo: object) -> object:
        raise RuntimeError("no copies")


def test_containers_are_copied_at_any_depth() -> None:
    """No list, mapping or set of the copy is one of the original."""
    base = Namespace(a=[1, {"b": (2, [3], {4})}])
    result = copy_namespace(base)
    assert result == base
    result.a[1]["b"][1].append(5)
    result.a[1]["b"][2].add(6)
    assert base.a == [1, {"b": (2, [3], {4})}]


def test_what_refuses_to_be_copied_is_the_same_object() -> None:
    """Locks, handles, objects whose copying raises anything at all."""
    base = Namespace(lock=threading.Lock(), stubborn=Stubborn(), many=[threading.Lock()])
    result = copy_namespace(base)
    assert (result.lock, result.stubborn, result.many[0]) == (
        base.lock,
        base.stubborn,
        base.many[0],
    )
    assert result.many is not base.many


def test_a_special_mapping_with_a_lock_gets_a_shell_of_its_own() -> None:
    """An OrderedDict or defaultdict that cannot be copied deeply is still not shared."""
    base = Namespace(
        ordered=OrderedDict(lock=threading.Lock()), default=defaultdict(threading.Lock)
    )
    base.default["x"]
    result = copy_namespace(base)
    result.ordered["more"] = 1
    result.default["more"] = 1  # type: ignore[assignment]
    assert list(base.ordered) == ["lock"]
    assert list(base.default) == ["x"]


def test_a_value_that_stands_twice_stands_twice_in_the_copy() -> None:
    """Identity between arguments is kept, cycles included."""
    loop: list[object] = []
    loop.append(loop)
    base = Namespace(a=loop, b=loop)
    result = copy_namespace(base)
    assert result.a is result.b
    assert result.a[0] is result.a
    assert result.a is not loop
