"""Nearest forms: pure, and nothing disappears in them."""

from __future__ import annotations

import json
import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_logging.backends.storable import (
    JOB,
    Notices,
    as_double,
    by_role,
    canonical,
    flatten,
    markdown_diff,
    role_diff,
    storable,
)
from slime_logging.values.json_value import Json
from slime_logging.values.run import RunConfig

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
METRICS = st.dictionaries(st.text(st.characters(), max_size=5), JSON, max_size=6)


@given(JSON)
def test_storable_is_strict_json(value: Json) -> None:
    """Any value becomes something that a strict JSON store takes, numbers within 64 bits and text encodable."""
    json.dumps(storable(value), allow_nan=False, ensure_ascii=False).encode()


@given(JSON)
def test_storable_twice_is_storable_once(value: Json) -> None:
    """The nearest form of a nearest form is itself."""
    assert storable(storable(value)) == storable(value)


@given(METRICS)
def test_flatten_loses_no_leaf(metrics: dict[str, Json]) -> None:
    """Every leaf has a name of its own afterwards, even where two would get the same."""
    assert len(flatten(metrics)) == _num_leaves(metrics)


def _num_leaves(value: Json) -> int:
    return (
        sum(_num_leaves(item) if isinstance(item, dict) and item else 1 for item in value.values())
        if isinstance(value, dict)
        else 1
    )


def test_flatten_names() -> None:
    """Nested names are joined by a slash; lists and empty mappings are values."""
    assert flatten({"a": {"b": 1, "c": {}}, "a/b": 2, "l": [1]}) == {
        "a/b": 1,
        "a/c": {},
        "a/b~2": 2,
        "l": [1],
    }


def test_canonical_tells_types_apart() -> None:
    """1, 1.0, true and "1" are four values; the order of keys is none, and NaN is itself."""
    assert len({canonical(value) for value in (1, 1.0, True, "1")}) == 4
    assert canonical({"a": 1, "b": math.nan}) == canonical({"b": math.nan, "a": 1})


def test_integer_beyond_doubles_is_infinite() -> None:
    """There is no nearest finite double."""
    assert (as_double(10**400), as_double(-(10**400)), as_double(3)) == (math.inf, -math.inf, 3.0)


CONFIG = RunConfig(
    values={
        "lr": 1e-6,
        "seed": 1,
        "critic/lr": 5e-6,
        "critic/seed": 1,
        "overrides/critic/lr": {"base": 1e-6},
        "critic/process/host": "h",
    },
    roles={"actor": {"lr": 1e-6, "seed": 1}, "critic": {"lr": 5e-6, "seed": 1, "extra": "a|b\nc"}},
)


def test_by_role_has_every_value_once() -> None:
    """What a role owns is under the role, and the rest under the job."""
    assert by_role(CONFIG) == {
        "actor": {"lr": 1e-6, "seed": 1},
        "critic": {"lr": 5e-6, "seed": 1, "extra": "a|b\nc"},
        JOB: {"overrides/critic/lr": {"base": 1e-6}, "critic/process/host": "h"},
    }


def test_by_role_keeps_a_value_that_contradicts_the_role() -> None:
    """A flat value that is not the role's own is shown under the job rather than hidden."""
    config = RunConfig(values={"lr": 2.0}, roles={"actor": {"lr": 1.0}})
    assert by_role(config) == {"actor": {"lr": 1.0}, JOB: {"lr": 2.0}}


def test_role_diff_has_what_differs() -> None:
    """A key is in the diff when its values differ, or when a role lacks it."""
    assert role_diff(CONFIG) == {
        "lr": {"actor": 1e-6, "critic": 5e-6},
        "extra": {"critic": "a|b\nc"},
    }


def test_markdown_table_is_not_broken_by_values() -> None:
    """Bars and line ends in a value stay inside their cell."""
    lines = markdown_diff(CONFIG).split("\n")
    assert lines == [
        "| key | actor | critic |",
        "| --- | --- | --- |",
        "| extra |  | a\\|b c |",
        "| lr | 1e-06 | 5e-06 |",
    ]


def test_notice_waits_for_the_begin(caplog: pytest.LogCaptureFixture) -> None:
    """Comparing forms stores nothing, and so warns about nothing."""
    with caplog.at_level(logging.WARNING, logger="slime_logging"):
        Notices("tracker").once("topic", "cut")
    assert caplog.records == []


def test_notice_is_given_once(caplog: pytest.LogCaptureFixture) -> None:
    """The same topic is not told again."""
    notices = Notices("tracker")
    notices.begin()
    with caplog.at_level(logging.WARNING, logger="slime_logging"):
        for _ in range(3):
            notices.once("topic", "cut")
    assert [record.getMessage() for record in caplog.records] == ["tracker: cut"]
