"""The benchmarks run, and write their page; how fast anything is, no test asks."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import NAMES, document, main, table


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "docs" / "benchmarks.md"
    assert main(["--quick", "--output", str(path)]) == 0
    return path.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_rows_of_every_benchmark(page, name):
    assert f"\n| **{name}**: " in page


def test_the_page_describes_the_machine(page):
    assert " cores (" in page
    assert "Python 3." in page


def test_a_promise_that_was_not_kept_is_named():
    row = {
        "name": "a row",
        "ours": 12.0,
        "others": {"theirs": 6.0},
        "unit": "us",
        "ratio": {"theirs": 2.0},
        "n": 3,
        "target": "<= 1x",
        "is_met": False,
    }
    text = table([("log", row)])
    assert (
        text.splitlines()[-1]
        == "| **log**: a row | 12 us | theirs: 6 us | 2x | <= 1x | **no** | 3 |"
    )
    assert "Not kept in this run: a row." in document(text, [("log", row)], 60.0)
