"""`slime_logging.values.serialize`: any value becomes JSON, unchanged and uncalled."""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import math
import signal
import subprocess
import sys
import threading
import types
import unittest.mock
import uuid
from argparse import Namespace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

import attrs
import msgspec
import numpy as np
import orjson
import pydantic
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.values.json_scalars import MAX_TEXT_CHARS
from slime_logging.values.metric import metric_to_json
from slime_logging.values.serialize import arguments_to_json, to_json
from slime_logging.values.walk import MAX_DEPTH, MAX_NODES


class Colour(enum.Enum):
    RED = "r"


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Text(str):
    def __str__(self) -> str:
        return "changed"


class Pair(NamedTuple):
    x: int
    y: str


@dataclasses.dataclass
class Plain:
    a: int = 1
    b: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: int = 1


class Bare:
    pass


class Shown:
    def __repr__(self) -> str:
        return f"<Shown at {hex(id(self))}>"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class BrokenMapping(collections.UserDict[str, int]):
    def __getitem__(self, key: str) -> int:
        raise KeyError(key)


class BrokenKey:
    def __repr__(self) -> str:
        raise SystemExit(3)


class Loud:
    """Remembers whether anyone called it or read its property."""

    touched: ClassVar[list[str]] = []

    def __call__(self) -> None:
        self.touched.append("called")

    @property
    def value(self) -> int:
        self.touched.append("read")
        return 1


def function() -> None:
    """A function with a name."""


HERE = __name__
CASES: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "bool": (True, True),
    "int": (7, 7),
    "float": (1e-5, 1e-5),
    "nan": (math.nan, "NaN"),
    "infinity": (math.inf, "Infinity"),
    "minus infinity": (-math.inf, "-Infinity"),
    "2**53": (2**53, 2**53),
    "beyond 2**53": (-(2**53) - 1, "-9007199254740993"),
    "str subclass": (Text("as it is"), "as it is"),
    "surrogate": ("a\ud800b", "a\\ud800b"),
    "suppress": (argparse.SUPPRESS, "==SUPPRESS=="),
    "bytes": (b"text", "text"),
    "bytes that are no text": (b"\xff\x00", "base64:/wA="),
    "bytearray": (bytearray(b"text"), "text"),
    "memoryview": (memoryview(b"text"), "text"),
    "memoryview of numbers": (memoryview(np.array([[1, 2]])), [[1, 2]]),
    "path": (PurePosixPath("/a/b"), "/a/b"),
    "enum": (Colour.RED, "RED"),
    "flags": (Bits.A, "A"),
    "signal": (signal.SIGTERM, "SIGTERM"),
    "decimal": (decimal.Decimal("1.10"), "1.10"),
    "fraction": (fractions.Fraction(1, 3), "1/3"),
    "huge fraction": (fractions.Fraction(10**5000, 3), f"{hex(10**5000)}/3"),
    "date": (datetime.date(2024, 1, 2), "2024-01-02"),
    "time": (datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone.utc), "2024-01-02T03:00:00+00:00"),
    "duration": (datetime.timedelta(hours=1), "1:00:00"),
    "uuid": (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    "complex": (1j, "1j"),
    "range": (range(3), "range(0, 3)"),
    "ellipsis": (..., "Ellipsis"),
    "tuple": ((1, (2,)), [1, [2]]),
    "named tuple": (Pair(1, "z"), {"x": 1, "y": "z"}),
    "set": ({"b", "a", 3, 1}, ["a", "b", 1, 3]),
    "deque": (collections.deque([1, 2]), [1, 2]),
    "dict keys": (
        {1: "a", "1": "b", None: "c", 2.5: "d", (1, "x"): "e"},
        {"1": "a", "1 (2)": "b", "null": "c", "2.5": "d", '[1,"x"]': "e"},
    ),
    "ordered dict": (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    "mapping proxy": (types.MappingProxyType({"a": 1}), {"a": 1}),
    "namespace": (Namespace(a=Namespace(b=[1])), {"a": {"b": [1]}}),
    "simple namespace": (types.SimpleNamespace(a=1), {"a": 1}),
    "dataclass": (Plain(b=Plain()), {"a": 1, "b": {"a": 1, "b": None}}),
    "dataclass with slots": (Slotted(), {"a": 1}),
    "dataclass class": (Plain, f"{HERE}.Plain"),
    "function": (function, f"{HERE}.function"),
    "builtin": (len, "len"),
    "class": (Bare, f"{HERE}.Bare"),
    "method": (Loud().__call__, f"{HERE}.Loud.__call__"),
    "partial": (
        functools.partial(function, 1, api_key="x"),
        {"partial": f"{HERE}.function", "args": [1], "kwargs": {"api_key": "x"}},
    ),
    "module": (math, "math"),
    "object": (Bare(), f"{HERE}.Bare"),
    "repr with an address": (Shown(), "<Shown>"),
    "lock": (threading.Lock(), "<unlocked _thread.lock object>"),
    "mock": (unittest.mock.MagicMock(), "unittest.mock.MagicMock"),
    "broken repr": (Broken(), f"<unreadable {HERE}.Broken: RuntimeError>"),
    "broken mapping": (BrokenMapping(a=1), {"a": "<unreadable: KeyError>"}),
    "broken key": ({BrokenKey(): 1}, {f"<unreadable {HERE}.BrokenKey: SystemExit>": 1}),
    "dtype": (torch.bfloat16, "torch.bfloat16"),
    "device": (torch.device("cuda:1"), "cuda:1"),
    "size": (torch.Size([2, 3]), [2, 3]),
    "tensor": (torch.zeros(2, 3), "<Tensor 2x3 float32 on cpu>"),
    "tensor of one": (torch.tensor([[1.5]], requires_grad=True), 1.5),
    "parameter of one": (torch.nn.Parameter(torch.tensor(2.0)), 2.0),
    "meta tensor": (torch.zeros(1, device="meta"), "<Tensor 1 float32 on meta>"),
    "numpy number": (np.float32(1.5), 1.5),
    "numpy int": (np.int64(3), 3),
    "numpy bool": (np.bool_(True), True),
    "numpy nan": (np.float64("nan"), "NaN"),
    "small array": (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "large array": (np.zeros((100, 3)), "<ndarray 100x3 float64 on cpu>"),
    "long double": (np.longdouble(0.5), 0.5),
    "long complex": (np.clongdouble(1 + 2j), "(1+2j)"),
    "empty tensor": (torch.zeros(0, 3), []),
    "sparse tensor of one": (torch.tensor([1.5]).to_sparse(), 1.5),
    "numpy time": (np.datetime64("2024-01-02"), "2024-01-02"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_value_has_its_json(case: str) -> None:
    """The table above is the specification."""
    value, expected = CASES[case]
    found = to_json(value)
    assert found == expected
    assert type(found) is type(expected)
    assert orjson.dumps(found)


def test_reading_calls_nothing_and_changes_nothing() -> None:
    """No call, no property, no attribute of a mock, no default of a defaultdict."""
    loud, mock, defaults = Loud(), unittest.mock.MagicMock(), collections.defaultdict(list, a=[1])
    to_json({"loud": loud, "mock": mock, "defaults": defaults})
    assert Loud.touched == []
    assert mock.mock_calls == []
    assert list(defaults) == ["a"]


def test_a_lazy_object_is_not_woken() -> None:
    """What replaces `__class__` is named by its own class."""

    class Lazy:
        @property
        def __class__(self) -> type:
            raise AssertionError("woken")

        def __repr__(self) -> str:
            raise AssertionError("woken")

    assert to_json(Lazy()).endswith("Lazy")


def test_cycles_end_in_a_marker() -> None:
    """Of mappings, lists and namespaces; a value that merely occurs twice is shown twice."""
    args, shared = Namespace(), [1]
    args.itself, args.twice = [args], [shared, shared]
    assert to_json(args) == {"itself": ["<cycle: argparse.Namespace>"], "twice": [[1], [1]]}


def test_deep_nesting_ends_in_a_marker() -> None:
    """100,000 levels neither raise nor cost their depth."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    found = to_json(value)
    assert f"<nested deeper than {MAX_DEPTH} levels: list>" in orjson.dumps(found).decode()


def test_huge_values_are_shortened_with_their_length() -> None:
    """Text, bytes, lists and mappings; what is no longer than a reasoning trace stays whole."""
    for whole in ("ab " * 100_000, list(range(100_000)), [[0] * 900] * 900, ["x" * 900] * 900):
        assert to_json(whole) == whole
    assert to_json(dict.fromkeys(map(str, range(5_000)))) == dict.fromkeys(map(str, range(5_000)))
    assert to_json("ab " * 1_000_000).endswith("... <shortened: 3000000 characters>")
    assert len(to_json("ab " * 1_000_000)) < MAX_TEXT_CHARS + 50
    assert to_json(b"ab " * 1_000_000).endswith("... <shortened: 3000000 characters>")
    assert to_json([0] * (MAX_NODES + 5))[-1] == f"<shortened: {MAX_NODES + 5} items>"
    assert int(to_json(10**100_000), 16) == 10**100_000
    assert len(orjson.dumps(to_json([[[0] * 900] * 900] * 900))) < 8_000_000


def test_keys_that_have_one_text_take_linear_time() -> None:
    """20,000 objects are called alike; each value keeps a name."""
    assert len(to_json({Bare(): n for n in range(20_000)})) == 20_000


def test_a_huge_set_is_the_same_in_every_process() -> None:
    """Its first items are its smallest, not those that the hash seed puts first."""
    code = (
        "from slime_logging.values.serialize import to_json; import orjson, sys;"
        "sys.stdout.buffer.write(orjson.dumps(to_json({f'n{i}' for i in range(1500)})))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_shortening_does_not_cut_a_word() -> None:
    """Half a key would not be recognised as one."""
    text = "a" * (MAX_TEXT_CHARS - 10) + " sk-" + "x1" * 40
    assert "sk-" not in to_json(text)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    lr: float = 1e-6
    betas: tuple[float, float] = (0.9, 0.98)
    inner: Any = None


@attrs.define
class Attrs:
    lr: float = 1e-6
    inner: Any = None


class Struct(msgspec.Struct):
    lr: float = 1e-6


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Model(inner=Model(), more=1), {"lr": 1e-6, "betas": [0.9, 0.98], "more": 1}),
        (Attrs(inner=Attrs()), {"lr": 1e-6}),
        (attrs.make_class("Dict", {"lr": attrs.field(default=1e-6)}, slots=False)(), {"lr": 1e-6}),
        (Struct(), {"lr": 1e-6}),
        (pydantic.RootModel[list[int]]([1]), {"root": [1]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_with_fields_become_structures(value: Any, expected: dict[str, Any]) -> None:
    """So that keys can be compared, and names inside of them are seen by redaction."""
    found = to_json({"option": value})["option"]
    if "inner" in found:
        assert found.pop("inner")["lr"] == expected["lr"]
    assert found == expected
    assert next(iter(arguments_to_json(value))) in ("lr", "root")


def test_an_omegaconf_configuration_becomes_a_structure() -> None:
    """Interpolations are resolved; what is still to be given is shown so."""
    omegaconf = pytest.importorskip("omegaconf")
    config = omegaconf.OmegaConf.create({"a": {"b": [1, 2]}, "c": "${a.b}", "d": "???"})
    assert to_json(config) == {"a": {"b": [1, 2]}, "c": [1, 2], "d": "???"}


@pytest.mark.parametrize(
    "value",
    [
        np.array([(1, "x")], dtype=[("step", int), ("api_key", "U8")]),
        np.array([(1, "x")], dtype=[("step", int), ("api_key", "U8")])[0],
    ],
)
def test_numpy_records_keep_the_names_of_their_fields(value: Any) -> None:
    """A secret's name must be seen by redaction."""
    found = to_json(value)
    assert (found[0] if isinstance(found, list) else found) == {"step": 1, "api_key": "x"}


def test_a_mapping_that_changes_meanwhile_does_not_raise() -> None:
    """Another thread may set arguments at any time."""

    class Growing(dict[str, int]):
        def __iter__(self) -> Any:
            raise RuntimeError("dictionary changed size during iteration")

    args = Growing(a=1)
    assert arguments_to_json(args) == {"a": 1}


def test_arguments_keep_their_names_and_order() -> None:
    """A flat mapping by name; nothing of the namespace is changed."""
    args = ppo_namespace()
    before = copy.deepcopy(args)
    values = arguments_to_json(args)
    assert list(values) == list(vars(args))
    assert args == before
    assert orjson.loads(orjson.dumps(values)) == values


def test_a_namespace_with_what_cannot_be_copied_is_read() -> None:
    """A lock, which deepcopy refuses, is no obstacle."""
    assert arguments_to_json(Namespace(lock=threading.Lock(), lr=1.0)) == {
        "lock": "<unlocked _thread.lock object>",
        "lr": 1.0,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (2.5, 2.5),
        (True, True),
        ("text", "text"),
        (2**60, 2**60),
        (2**70, 2**70),
        (math.inf, math.inf),
        (torch.tensor(1.5), 1.5),
        (torch.tensor([3]), 3),
        (np.float32(0.5), 0.5),
        (np.int32(4), 4),
        (np.bool_(False), False),
        (decimal.Decimal("0.5"), 0.5),
        ([np.float64(1.0), math.inf, 2**70], [1.0, "Infinity", str(2**70)]),
        ({"text": "x" * 2**21}, {"text": "x" * 2**21}),
        ({"n": 10**5000}, {"n": hex(10**5000)}),
        ({"a": torch.tensor(2)}, {"a": 2}),
        (Colour.RED, "RED"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_metrics_stay_numbers(value: Any, expected: Any) -> None:
    """Of Python's own types, also beyond 2**53 and infinite."""
    found = metric_to_json(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("value", [math.nan, np.float64("nan"), torch.tensor(math.nan)])
def test_a_metric_may_be_nan(value: Any) -> None:
    """A diverged loss is a NaN, not a text."""
    found = metric_to_json(value)
    assert type(found) is float
    assert math.isnan(found)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=20)
    | st.decimals()
    | st.dates()
    | st.sampled_from(
        [
            torch.float16,
            torch.zeros(2),
            Colour.RED,
            len,
            Bare(),
            BrokenMapping(a=1),
            np.float32(1),
            Path("a"),
            math,
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text(max_size=5) | st.integers() | st.none() | st.floats(), inner, max_size=4
        )
        | st.builds(Namespace, a=inner, b=inner)
        | st.builds(Plain, b=inner)
        | st.builds(functools.partial, st.just(len), inner)
        | st.frozensets(st.integers() | st.text(max_size=4), max_size=4)
    ),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(value=anything)
def test_anything_becomes_the_same_json_every_time(value: Any) -> None:
    """No exception, orjson takes it, twice the same, only plain types."""
    found = to_json(value)
    assert orjson.loads(orjson.dumps(found)) == found
    assert to_json(value) == found


def test_serialising_imports_nothing() -> None:
    """Neither torch nor numpy, which a driver may not have."""
    code = (
        "import sys; from slime_logging.values.serialize import to_json; to_json({'a': [object(), 1.0]});"
        "sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'wandb', 'ray')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
