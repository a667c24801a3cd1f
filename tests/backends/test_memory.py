"""The tracker for tests."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from slime_logging.backends import memory
from slime_logging.backends.base import Writer
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario


@pytest.fixture
def run(tmp_path: Path) -> RunFacts:
    memory.forget()
    return RunFacts(
        run_id="r1", project="p", name="n", group=None, directory=tmp_path, created_s=0.0, axes={}
    )


def test_run_is_continued(run: RunFacts) -> None:
    """A second writer finds what the first wrote."""
    for number in range(2):
        backend = memory.MemoryBackend()
        backend.open(run, Writer(label=f"w{number}"))
        backend.write([scenario.row(number, {"x": 1})])
        backend.close(None, 0.0)
    held = memory.RUNS["r1"]
    assert ([writer.label for writer in held.writers], len(held.rows), held.exit_code) == (
        ["w0", "w1"],
        2,
        None,
    )


def test_configuration_is_a_copy(run: RunFacts) -> None:
    """What the caller does to its values afterwards does not change what was delivered."""
    backend = memory.MemoryBackend()
    backend.open(run, Writer(label="w"))
    values = {"a": [1]}
    backend.set_config(RunConfig(values=values, roles={}))
    values["a"].append(2)
    assert backend.read_config(run) == {"a": [1]}


def test_exit_code_is_that_of_the_last_close_with_one(run: RunFacts) -> None:
    """A writer that only stops leaves the state as it is."""
    for exit_code in (3, None):
        backend = memory.MemoryBackend()
        backend.open(run, Writer(label="w"))
        backend.close(exit_code, 0.0)
    assert memory.RUNS["r1"].exit_code == 3


def test_points_tell_rows_apart(run: RunFacts) -> None:
    """Equal metrics of two rows are two points."""
    backend = memory.MemoryBackend()
    row = scenario.row(1, {"x": 1})
    assert backend.points(row) != backend.points(dataclasses.replace(row, journal="other"))


def test_forget_drops_every_run(run: RunFacts) -> None:
    """A test starts with nothing."""
    memory.MemoryBackend().open(run, Writer(label="w"))
    memory.forget()
    assert memory.RUNS == {}
