"""`log` is total: whatever is logged, the row is in the journal with every name, whole, and what could not be kept is
counted.
"""

from __future__ import annotations

import collections
import decimal
import fractions
import math
import sys
import threading
import types

import matplotlib as mpl
import numpy as np
import orjson
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from slime_logging.record.entries import Opening, decode_row, encode
from slime_logging.record.journal import journal_name
from slime_logging.record.recorder import Recorder
from slime_logging.record.rows import RowWriter
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.redact import Redactor

STEP = "train/step"


def body_of(tmp_path, row, writer=None):
    writer = writer or RowWriter(tmp_path, "j", Redactor.of(None, {}))
    body = orjson.loads(writer.line(row, STEP)(0))
    assert (body.pop("kind"), body.pop("seq")) == ("row", 0)
    return body


def metrics_of(tmp_path, row):
    return body_of(tmp_path, {STEP: 1, **row})["metrics"]


def raising(*names):
    def fail(*_, **__):
        raise RuntimeError("no")

    return type("Raising", (), dict.fromkeys(names, fail))


class Recursing(collections.UserList):
    def __iter__(self):
        return iter([self.__class__()])


class Deep:
    def __repr__(self):
        return repr([self])


class OddMapping(collections.UserDict):
    def __iter__(self):
        raise RuntimeError("changed")


class OddName(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no")


ODD = [
    raising("__str__", "__repr__")(),
    raising("__float__", "__int__", "__index__")(),
    raising("__iter__", "__len__", "__getitem__")(),
    raising("__getattribute__")(),
    raising("__bool__", "__eq__", "__class__")(),
    type("List", (list,), {"__iter__": raising("f").f, "__len__": raising("f").f})([1]),
    type("Text", (str,), {"__str__": raising("f").f, "encode": raising("f").f})("text"),
    type("Number", (float,), {"__float__": raising("f").f})(0.5),
    Recursing(),
    Deep(),
    OddMapping(a=1),
    decimal.Decimal("sNaN"),
    10**5000,
    -(10**400),
    "\ud800",
    {"\ud800": math.nan, 1: 2, None: [math.inf]},
    torch.zeros(3, device="meta"),
    np.array([1, "x", None], dtype=object),
]


class Odd(int):
    """Stands for one of the odd values, which hypothesis itself could not look at."""


def real(value):
    if isinstance(value, Odd):
        return ODD[value]
    if isinstance(value, list):
        return [real(item) for item in value]
    if isinstance(value, dict):
        return {key: real(item) for key, item in value.items()}
    return (
        types.SimpleNamespace(a=real(value.a))
        if isinstance(value, types.SimpleNamespace)
        else value
    )


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=9)
    | st.builds(Odd, st.integers(0, len(ODD) - 1)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(), max_size=3) | st.integers(), inner, max_size=3)
        | st.builds(types.SimpleNamespace, a=inner)
    ),
    max_leaves=8,
)
names = (
    st.text(st.characters(), max_size=6) | st.integers() | st.builds(OddName, st.text(max_size=3))
)


@settings(max_examples=300, deadline=None)
@given(row=st.dictionaries(names.filter(lambda n: n != STEP), values, max_size=6), step=values)
def test_any_row_is_recorded_with_every_name_and_exact_values(tmp_path_factory, row, step):
    logged = {STEP: real(step), **real(row)}
    body = body_of(tmp_path_factory.getbasetemp(), logged)
    opening = Opening(
        run_id="r", journal="j", role=None, is_primary=True, host="h", pid=1, start=1, time_s=0.0
    )
    held = decode_row({**body, "seq": 1}, opening)
    assert len(held.metrics) == len(row)
    for name, value in row.items():
        if type(name) is str and name.isascii() and type(value) in (int, float, bool, type(None)):
            if type(value) is int and value.bit_length() >= 10_000:
                value = hex(value)
            kept = held.metrics[name]
            assert kept == value or (kept != kept and value != value), name
            assert type(kept) is type(value)


def test_a_row_that_cannot_be_read_at_all_is_counted(tmp_path):
    body = body_of(tmp_path, OddMapping({STEP: 3, "train/x": 1}))
    assert (body["step"], body["num_lost"]) == (3, 1)
    body = body_of(tmp_path, raising("keys", "__iter__", "__getitem__")())
    assert (body["step"], body["num_lost"]) == (0, 1)


def test_the_secrets_that_one_row_may_hold_are_counted_over_the_whole_row(tmp_path):
    tokens = "hf_aB3dE5fG7hJ9kL1mN3pQ " * 1_000
    found = metrics_of(tmp_path, {"a": tokens, "b": tokens, "c": tokens})
    assert found["a"] == found["b"] == "<hidden: hugging face token> " * 1_000
    assert found["c"] == "<hidden: rest of a row with too many secrets>"


@pytest.mark.parametrize(
    "value", [*ODD[:1], *ODD[8:10], (n for n in [1, 2])], ids=lambda value: type(value).__name__
)
def test_what_could_not_be_kept_is_counted(tmp_path, value):
    assert body_of(tmp_path, {STEP: 1, "x": value, "y": 1})["num_lost"] >= 1
    assert "num_lost" not in body_of(tmp_path, {STEP: 1, "x": "text", "y": [1, {"a": None}]})


def test_a_mapping_that_another_thread_changes_costs_nothing(tmp_path):
    shared = collections.OrderedDict({STEP: 1, **{f"x{n}": float(n) for n in range(300)}})
    stop = threading.Event()

    def change():
        while not stop.is_set():
            shared["extra"] = 1
            del shared["extra"]

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # more often than usual, in the middle of a row
    thread = threading.Thread(target=change)
    thread.start()
    writer = RowWriter(tmp_path, "j", Redactor.of(None, {}))
    try:
        for _ in range(200):
            body = body_of(tmp_path, shared, writer)
            assert len(body["metrics"]) in (300, 301)
            assert "num_lost" not in body
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval_s)


def test_names_that_become_alike_stay_apart(tmp_path):
    row = {"a\ud800": 1, "a\\ud800": 2, 7: 3, "7": 4, OddName("b"): 5}
    assert sorted(metrics_of(tmp_path, row).values()) == [1, 2, 3, 4, 5]
    assert metrics_of(tmp_path, row)["7"] == 4


def test_long_texts_and_structures_are_whole_in_the_line(tmp_path):
    row = {
        "trace": "token " * 170_000,
        "ids": list(range(1500)),
        "nested": {"rows": [["x" * 36_000, n] for n in range(10)]},
    }
    assert metrics_of(tmp_path, row) == row


@pytest.mark.parametrize(
    ("value", "kind", "ending"),
    [("long " * 300_000, "text", ".txt"), (["x" * 1000] * 5000, "json", ".json")],
)
def test_what_is_longer_is_whole_in_a_file_of_the_run(tmp_path, value, kind, ending):
    held = metrics_of(tmp_path, {"x": value})["x"]
    assert held["media"] == kind
    assert held["file"].endswith(ending)
    data = (tmp_path / held["file"]).read_bytes()
    assert (data.decode() if kind == "text" else orjson.loads(data)) == value


def test_a_table_of_fifty_thousand_rows_is_a_table(tmp_path):
    table = pandas.DataFrame({name: [1 / 3] * 50_001 for name in "abcde"})
    held = metrics_of(tmp_path, {"t": table})["t"]
    assert (held["media"], held["columns"], held["num_rows"]) == (
        "table",
        list("abcde"),
        50_001,
    )
    assert len(orjson.loads((tmp_path / held["file"]).read_bytes())["rows"]) == 50_001


@pytest.mark.parametrize(
    "make",
    [np.arange, torch.arange, lambda n: torch.arange(n, dtype=torch.bfloat16, requires_grad=False)],
)
@pytest.mark.parametrize("num", [3, 256])
def test_an_array_is_its_distribution_and_whole(tmp_path, make, num):
    held = metrics_of(tmp_path, {"x": make(num)})["x"]
    assert (held["media"], held["min"], held["max"]) == ("histogram", 0, num - 1)
    assert sum(held["counts"]) == num
    assert len(held["edges"]) == len(held["counts"]) + 1
    whole = held["values"] if num == 3 else np.load(tmp_path / held["file"])
    assert list(whole) == list(range(num))


@pytest.mark.parametrize(
    ("array", "mean"),
    [
        (np.array([np.nan, 1.0, np.inf]), 1.0),
        (np.array([1.7e308, 1.7e308]), 1.7e308),
        (np.array([True, False]), 0.5),
        (np.array([1.0, np.nextafter(1.0, 2)]), 1.0),
        (np.array([[3j, 4.0]]), 3.5),
        (np.array([-1.7e308, 1.7e308]), 0.0),
        (np.ma.array([1.0, 1e9, 3.0], mask=[0, 1, 0]), 2.0),
        (torch.tensor([[0.0, 2.0], [4.0, 0.0]]).to_sparse_csr(), 1.5),
        (torch.tensor([[0.0, 2.0], [4.0, 0.0]]).to_sparse(), 1.5),
        (torch.nested.nested_tensor([torch.ones(2), torch.zeros(2)]), 0.5),
        (torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.1, 0, torch.quint8), 1.5),
        (torch.ones(2).to(torch.float8_e4m3fn), 1.0),
        (torch.nn.Parameter(torch.ones(3)), 1.0),
    ],
    ids=str,
)
def test_odd_arrays_have_a_distribution_too(tmp_path, array, mean):
    held = metrics_of(tmp_path, {"x": array})["x"]
    assert held["mean"] == pytest.approx(mean)
    num = array.numel() if isinstance(array, torch.Tensor) else array.size
    assert sum(held["counts"]) + held["num_nonfinite"] == num


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (pandas.Series(["a", None], dtype=object), ["a", None]),
        (pandas.Categorical(["a", "b"]), ["a", "b"]),
        (np.array(["a"]), ["a"]),
        (np.array(["2024-01-02", "NaT"], dtype="M8[D]"), ["2024-01-02", None]),
        (np.array([(1, 0.5)], dtype=[("a", "i4"), ("b", "f8")]), [{"a": 1, "b": 0.5}]),
        (np.longdouble(0.5), 0.5),
        (np.ma.masked, None),
        (np.ma.array([7.0], mask=[1]), None),
        (torch.zeros(0), []),
        (torch.tensor(0.5, dtype=torch.bfloat16), 0.5),
        (decimal.Decimal("1e-400"), 0.0),
        (fractions.Fraction(10**5000, 3), f"{hex(10**5000)}/3"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_distribution_is_its_values(tmp_path, value, kept):
    body = body_of(tmp_path, {STEP: 1, "x": value})
    assert body["metrics"] == {"x": kept}
    assert "num_lost" not in body


def test_images_in_lists_figures_and_html_are_files(tmp_path):
    import wandb

    mpl.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([1, 2])
    picture = Image.new("L", (2, 2))
    held = metrics_of(
        tmp_path,
        {
            "two": [picture, wandb.Image(picture)],
            "figure": figure,
            "html": wandb.Html("<b>password=hunter2x9Qz</b>"),
            "by": {"a": picture},
        },
    )
    forms = [*held["two"], held["figure"], held["html"], held["by"]["a"]]
    assert [form["media"] for form in forms] == ["image", "image", "image", "html", "image"]
    assert all((tmp_path / form["file"]).stat().st_size for form in forms)


def test_audio_and_video_are_their_files(tmp_path):
    import wandb

    (tmp_path / "a.wav").write_bytes(b"RIFF....WAVE")
    (tmp_path / "v.gif").write_bytes(b"GIF89a")
    held = metrics_of(
        tmp_path,
        {
            "a": wandb.Audio(str(tmp_path / "a.wav"), caption="c"),
            "v": wandb.Video(str(tmp_path / "v.gif")),
        },
    )
    assert (held["a"]["media"], held["a"]["caption"]) == ("audio", "c")
    assert (tmp_path / held["a"]["file"]).read_bytes() == b"RIFF....WAVE"
    assert (held["v"]["media"], held["v"]["file"][-4:]) == ("video", ".gif")


@pytest.mark.parametrize("attempt", [None, 2])
@pytest.mark.parametrize("step_key", [STEP, 'odd "axis" é\n'])
@pytest.mark.parametrize("metrics", [
    {}, {"a": 1.5, "b": -0.0, "c": 1e-300, "d": 1e22}, {"n": 2**64 - 1, "m": -(2**63), "t": True}, {"big": 1e308, "x": 1},
    {"a:null": 1.0, "y": math.nan}, {"x": None}, {"x": 2**64, "y": math.inf},
    {"train/attempt": 7.0, "attempt": 8.0},
])  # fmt: skip
def test_a_row_of_plain_numbers_is_the_line_that_any_row_is(
    tmp_path, monkeypatch, metrics, step_key, attempt
):
    """Byte for byte, though it is written a shorter way; from its second row on."""
    monkeypatch.setattr("time.time", lambda: 1764771234.125)
    writer = RowWriter(tmp_path, "j", Redactor.of(None, {}), attempt)
    row = {"first": 0.5, step_key: 12, **metrics}
    lines = [writer.line(row, step_key)(number) for number in range(2)]
    assert lines == [encode("row", writer.body(row, step_key))(number) for number in range(2)]


@pytest.mark.parametrize(
    "step", [None, math.nan, math.inf, "soon", 10**400, object()], ids=lambda s: repr(s)[:9]
)
def test_a_step_that_is_no_number_stands_at_the_last_one(tmp_path, caplog, step):
    writer = RowWriter(tmp_path, "j", Redactor.of(None, {}))
    body_of(tmp_path, {STEP: 7}, writer)
    for _ in range(2):
        body = body_of(tmp_path, {STEP: step, "x": 1}, writer)
        assert body["step"] == 7
        assert "step_given" in body
    told = [r for r in caplog.records if "stand at the last step" in r.getMessage()]
    assert len(told) == 1


def test_the_status_of_a_run_counts_what_was_not_kept(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    opening = Opening(
        run_id="run", journal=journal_name(None), role=None, is_primary=True, host="h", pid=1, start=1, time_s=0.0
    )  # fmt: skip
    recorder = Recorder(directory, opening, Redactor.of(None, {}))
    recorder.row({STEP: 1, "x": object()}, STEP)
    recorder.finish(0)
    from slime_logging.record.journal_status import journal_status

    status = journal_status(next(iter(directory.journal_paths())))
    assert (status.num_rows, status.num_lost) == (1, 1)
