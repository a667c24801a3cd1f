"""Rows and configuration in W&B's form: deterministic, nothing dropped, readable back from JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.backends.wandb.form import (
    EMPTY_KEY,
    MAX_LINE_BYTES,
    config_form,
    history_point,
    history_rows,
)
from slime_logging.values.row import Row

TEXTS = st.text(st.characters(codec=None), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


def row(metrics: dict[str, Any], step: float = 3) -> Row:
    return Row(
        journal="j",
        seq=7,
        time_s=12.5,
        role="actor",
        step_key="train/step",
        step=step,
        metrics=metrics,
    )


def as_read(part: dict[str, Any]) -> dict[str, Any]:
    return {**json.loads(json.dumps(part), parse_constant=str), "_step": 5, "_runtime": 1.25}


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_a_row_read_back_from_json_has_the_point_of_the_row_written(
    metrics: dict[str, Any],
) -> None:
    """Whatever JSON does to numbers, NaN and texts, what was written and what is read are the same point."""
    for part in history_rows(row(metrics)):
        assert history_point(as_read(part)) == history_point(part)


def test_a_row_keeps_its_own_time_and_id() -> None:
    """`_timestamp` is the row's time and `_row` its id in the run."""
    (part,) = history_rows(row({"train/loss": 0.5}))
    assert part == {"train/loss": 0.5, "train/step": 3, "_timestamp": 12.5, "_row": "j:7"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1.0}, {"a": 2.0}),
        ({"a": 1}, {"b": 1}),
        ({"a": math.nan}, {"a": math.inf}),
        ({"a": [1]}, {"a": [1, 1]}),
    ],
)
def test_different_rows_are_different_points(one: dict[str, Any], other: dict[str, Any]) -> None:
    """A changed value, key or length shows."""
    assert [history_point(part) for part in history_rows(row(one))] != [
        history_point(part) for part in history_rows(row(other))
    ]


def test_the_step_is_part_of_the_point() -> None:
    """A row at another step is another point."""
    assert history_point(history_rows(row({"a": 1}, step=3))[0]) != history_point(
        history_rows(row({"a": 1}, step=4))[0]
    )


@pytest.mark.parametrize(
    ("key", "value", "held_key", "held_value"),
    [
        ("", 7, EMPTY_KEY, 7),
        ("_step", 7, "user_step", 7),
        ("_timestamp", 7, "user_timestamp", 7),
        ("d", {"x": {"y": 1}}, "d.x.y", 1),
        ("d", {}, "d", "{}"),
        ("big", 2**70, "big", float(2**70)),
        ("huge", 10**400, "huge", math.inf),
        ("s", "a\ud800b", "s", "a\\ud800b"),
    ],
)
def test_what_the_client_would_drop_is_kept_in_the_nearest_form(
    key: str, value: Any, held_key: str, held_value: Any
) -> None:
    """Empty and reserved keys, mappings, huge integers and lone surrogates survive in some form."""
    (part,) = history_rows(row({key: value}))
    assert part[held_key] == held_value


def test_a_row_longer_than_a_line_becomes_several_of_the_same_step() -> None:
    """100,000 distinct keys in one row: every key is there, in lines that the client does not skip."""
    metrics = {f"train/some/quite/long/name/{number}": number * 0.1 for number in range(100_000)}
    parts = history_rows(row(metrics))
    assert len(parts) > 1
    assert all(len(json.dumps(part)) < 2 * MAX_LINE_BYTES for part in parts)
    assert len({part["_row"] for part in parts}) == len(parts)
    assert {
        key: value for part in parts for key, value in part.items() if key in metrics
    } == metrics


def test_a_text_of_ten_megabytes_is_shortened_with_a_mark_of_its_length() -> None:
    """The row is kept, and says what is missing."""
    (part,) = history_rows(row({"text": "x" * 10_000_000}))
    assert part["text"].endswith("<10000000 bytes: too long for W&B>")
    assert len(part["text"]) <= (1 << 20) + 100


@pytest.mark.parametrize(
    ("values", "held"),
    [
        ({"a": {}}, {"a": "{}"}),
        ({"a": {"b": {}, "--c": [{}]}}, {"a": {"b": "{}", "--c": ["{}"]}}),
        ({"--lr": 1, "lr": 2}, {"__lr": 1, "lr": 2}),
        ({"-": 1, "": 2}, {"_": 1, EMPTY_KEY: 2}),
        ({"_wandb": 1, "wandb_version": 2}, {"user_wandb": 1, "userwandb_version": 2}),
        (
            {"n": 2**70, "m": -(2**53), "x": math.inf},
            {"n": str(2**70), "m": -(2**53), "x": "Infinity"},
        ),
    ],
)
def test_config_keys_and_values_that_the_client_mangles(
    values: dict[str, Any], held: dict[str, Any]
) -> None:
    """No key is stripped into another, no value dropped."""
    assert config_form(values) == held


@given(st.dictionaries(st.text("-_ab", max_size=4), st.integers(0, 9), max_size=8))
def test_no_two_config_keys_become_one(values: dict[str, Any]) -> None:
    """As many keys as before, none of which the client would strip."""
    held = config_form(values)
    assert len(held) == len(values)
    assert all(key == key.strip("-") and key for key in held)
