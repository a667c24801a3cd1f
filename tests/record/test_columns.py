"""Rows read at once are the rows read one by one: the same values, of the same types, in order."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_logging.record import journal_status as module
from slime_logging.record.columns import RowBatch, RowDecoder
from slime_logging.record.entries import Opening, encode, split_numbers
from slime_logging.record.journal_status import journal_status
from slime_logging.report.columns import columns_of

NAMES = st.sampled_from(["a", "train/loss", "b", "é/ü", 'quoted "name"', "back\\slash", ""])
VALUES = (
    st.floats()
    | st.integers(-(2**63), 2**64 - 1)
    | st.integers(min_value=2**64)
    | st.text(max_size=3)
    | st.booleans()
    | st.none()
    | st.just({"c": 1.5})
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a/step", "b/step"]),
        st.floats() | st.integers(-9, 9),
        st.dictionaries(NAMES, VALUES, max_size=4),
    ),
    min_size=1,
    max_size=30,
)


def line(seq: int, step_key: str, step: float, metrics: dict[str, Any]) -> bytes:
    metrics = dict(metrics)
    body = split_numbers(metrics) | {"metrics": metrics}
    number: Any = (
        step
        if math.isfinite(step)
        else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(step, "NaN")
    )
    return encode("row", {"time_s": 1.0 + seq, "step_key": step_key, "step": number} | body)(seq)


class Seen:
    """What an onlooker sees, as one list of (step key, name, step, value)."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.num_at_once = 0

    def see_records(self, opening: Opening, records: Any) -> None:
        self.add(columns_of(records, lambda *_: None))

    def see_rows(self, opening: Opening, batch: RowBatch) -> None:
        self.num_at_once += batch.num_rows
        self.add(batch.columns())

    def add(self, tables: Any) -> None:
        for rows in tables:
            for name, steps, values, total in rows.columns:
                are_numbers = {*map(type, values)} <= {int, float, bool}
                is_beyond = any(isinstance(v, int) and abs(v) > 1e308 for v in values)
                assert (total is not None) is (are_numbers and not is_beyond)
                self.values += [
                    (rows.step_key, name, repr(s), repr(v))
                    for s, v in zip(steps, values, strict=True)
                ]

    @property
    def by_metric(self) -> dict[Any, list[Any]]:
        found: dict[Any, list[Any]] = {}
        for *metric, step, value in self.values:
            found.setdefault(tuple(metric), []).append((step, value))
        return found


def journal(directory: Path, lines: list[bytes]) -> Path:
    opening = Opening(
        run_id="r", journal="j", role=None, is_primary=True, host="h", pid=1, start=1, time_s=0.5
    )
    path = directory / "j.jsonl"
    path.write_bytes(b"".join([encode("open", opening.to_body())(0), *lines]))
    return path


def read(path: Path, first: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Seen]:
    monkeypatch.setattr(module, "FIRST_BYTES", first)
    monkeypatch.setattr(module, "READ_BYTES", at_once)
    seen = Seen()
    return journal_status(path, seen), seen


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("columns")


@settings(max_examples=150, deadline=None)
@given(
    rows=ROWS,
    odd=st.sampled_from(
        [b"", b"{}\n", b"damaged\n", b"\n", b'{"kind":"row","seq":99}\n', b'{"kind":"row","to']
    ),
)
def test_both_ways_see_the_same(directory, rows, odd) -> None:
    """Whatever is in the rows, and whatever stands between them."""
    lines = [line(seq, *row) for seq, row in enumerate(rows, 1)]
    lines.insert(len(lines) if odd.endswith(b"o") else len(lines) // 2, odd)
    with pytest.MonkeyPatch.context() as patch:
        path = journal(directory, lines)
        expected, one_by_one = read(path, 1 << 20, 1 << 20, patch)
        found, at_once = read(path, 400, 900, patch)
    assert one_by_one.num_at_once == 0
    assert found == expected
    assert at_once.by_metric == one_by_one.by_metric


def test_plain_rows_are_read_at_once(tmp_path, monkeypatch) -> None:
    """All but the first piece, which teaches the names, and the one around a line of another kind."""
    lines = [line(n, "a/step", n, {"x": n / 7, "s": "t", "n": math.nan}) for n in range(1, 2_001)]
    lines.insert(1_500, encode("config", {"scope": "", "rank": 1, "values": {}})(2_001))
    status, seen = read(journal(tmp_path, lines), 2_000, 16_000, monkeypatch)
    assert status.num_rows == 2_000
    assert seen.num_at_once > 1_900
    assert len(seen.values) == 6_000


def test_a_line_of_its_own_size_does_not_stop_the_halving(tmp_path, monkeypatch) -> None:
    long = line(1, "a/step", 1, {"x": "t" * 5_000})
    lines = [line(n, "a/step", n, {"x": n}) for n in range(2, 40)]
    status, _ = read(journal(tmp_path, [*lines, long, *lines, long]), 300, 9_000, monkeypatch)
    assert status.num_rows == 78


@pytest.mark.parametrize(
    "row",
    [
        b'{"kind":"row","seq":1,"time_s":1.0,"step_key":"k","step":1,"metrics":{"x":"\xff"}}\n',
        b'{"kind":"row","seq":1,"time_s":1.0,"step_key":"k","step":1,"metrics":{"x":1},"num_lost":1}\n',
        b'{"kind":"row","seq":1,"time_s":1.0,"step_key":"k","step":1,"metrics":{"x":1},"nonfinite":{"y":"NaN"}}\n',
        b'{"kind":"row","seq":1,"time_s":1.0,"step_key":"k","step":1,"metrics":{"x":'
        + b"[" * 5_000
        + b"]" * 5_000
        + b"}}\n",
        b'{"kind":"row","seq":1,"time_s":1.0,"step_key":"k","step":"NaN","metrics":{"x":1}}\n',
    ],
)
def test_what_is_no_plain_row_is_left_to_the_other_way(row: bytes) -> None:
    decoder = RowDecoder()
    plain = line(0, "k", 0, {"x": 1})
    decoder.learn([orjson.loads(plain)])
    assert decoder.decode(plain) is not None
    assert decoder.decode(plain + row) is None


def test_names_beyond_the_bound_are_left_to_the_other_way(monkeypatch) -> None:
    from slime_logging.record import columns

    monkeypatch.setattr(columns, "MAX_NAMES", 2)
    decoder = RowDecoder()
    decoder.learn([json.loads(line(0, "k", 0, {"a": 1, "b": 2, "c": 3}))])
    assert decoder.decode(line(1, "k", 1, {"b": 2})) is not None
    assert decoder.decode(line(1, "k", 1, {"c": 2})) is None
