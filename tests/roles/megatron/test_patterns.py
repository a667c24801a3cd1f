"""Layer patterns: as Python evaluates them, without running code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_logging.roles.megatron.patterns import MAX_LAYERS, evaluate

LISTS = st.recursive(
    st.lists(st.integers(0, 9).map(str), min_size=1, max_size=4).map(
        lambda items: f"[{','.join(items)}]"
    ),
    lambda inner: (
        st.tuples(inner, inner).map(lambda two: f"({two[0]}+{two[1]})")
        | st.tuples(inner, st.integers(0, 4)).map(lambda two: f"({two[0]}*{two[1]})")
        | st.tuples(inner, st.integers(0, 4)).map(lambda two: f"({two[1]}*{two[0]})")
    ),
    max_leaves=5,
)


@given(LISTS)
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_a_pattern_is_what_python_makes_of_it(text: str) -> None:
    """Megatron-LM evaluates the pattern as Python; so the result is Python's."""
    assert evaluate(text) == eval(text)


@pytest.mark.parametrize(
    "text", ["([1]*3+[0]*1)*3", "([0]+[1]*23)", "[1],[2]", "[(1,2),(3)]", "3*2+1"]
)
def test_patterns_of_the_documentation(text: str) -> None:
    """As users copy them."""
    assert evaluate(text) == eval(text)


@pytest.mark.parametrize(
    "text",
    [
        "f()",
        "[x]",
        "[1]**2",
        "[1]-[1]",
        "[1.5]",
        "['a']",
        "[1]+1",
        "[1]*[1]",
        "[True]",
        "",
        "[",
        "[1]*2.0",
        "(1,)+[1]",
    ],
)
def test_all_else_is_refused(text: str) -> None:
    """Names, calls, powers, fractions, texts, and sums of unlike things."""
    with pytest.raises(ValueError):
        evaluate(text)


@pytest.mark.parametrize(
    "text",
    [f"[1]*{MAX_LAYERS + 1}", "[1]*9999999999", "[[1]*999]*999999", "9" * 30, "(" * 300 + "1"],
)
def test_what_would_use_up_memory_is_refused(text: str) -> None:
    """The size is known before the list is made."""
    with pytest.raises(ValueError):
        evaluate(text)
