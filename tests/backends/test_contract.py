"""What every tracker must do: the same tests for all, on the real libraries and, where there is one, a real server."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.table import BACKENDS, Package
from slime_logging.backends.table import Tracker as TrackerRow
from slime_logging.errors import BackendError, MissingBackendError
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends import scenario
from tests.backends.conftest import Tracker

WRITER = Writer(label="primary")
CLOSE_TIMEOUT_S = 60.0
LATE = {"late_value": "known late", "num_rollout": 77}
SAME: dict[str, list[set[str]]] = {
    "trackio": [{"nan", "nan_text"}],
    "tensorboard": [{"zero", "tiny"}, {"infinity", "beyond_double"}],
    "mlflow": [{"infinity", "beyond_double"}],
    "swanlab": [{"infinity", "beyond_double"}],
    "wandb": [{"infinity", "beyond_double"}, {"nan", "nan_text"}],
}
"""Odd values that a tracker cannot tell apart, as docs/backends.md says."""


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """A run that was delivered whole, and what was read back."""

    backend: Any
    run: RunFacts
    rows: list[Row]
    first: RunConfig
    config: RunConfig
    points: list[Point]
    held: dict[str, Json]


@pytest.fixture(scope="session")
def new_run(
    tracker: Tracker, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], RunFacts]:
    def new(run_id: str) -> RunFacts:
        return tracker.run(tmp_path_factory.mktemp(run_id), f"{tracker.name}-{run_id}")

    return new


@pytest.fixture(scope="session")
def delivered(tracker: Tracker, new_run: Callable[[str], RunFacts]) -> Delivered:
    """The whole scenario, written by one backend and read by another."""
    run = new_run("delivered")
    first, last = scenario.config(), scenario.config(**LATE)
    plain, odd = scenario.plain_rows(), scenario.odd_rows()
    backend = tracker.new()
    backend.open(run, WRITER)
    backend.set_config(first)
    backend.write(plain[:10])
    backend.set_config(last)
    backend.write(plain[10:])
    backend.write(odd)
    backend.close(0, CLOSE_TIMEOUT_S)
    reader = tracker.new()
    return Delivered(
        backend=reader,
        run=run,
        rows=plain + odd,
        first=first,
        config=last,
        points=list(reader.read_points(run)),
        held=reader.read_config(run),
    )


def points_of(backend: Any, rows: list[Row]) -> list[Point]:
    return [point for row in rows for point in backend.points(row)]


def test_every_row_is_held_once(delivered: Delivered) -> None:
    """Nothing lost and nothing doubled: what the rows should become is what the tracker holds, as multisets."""
    assert Counter(delivered.points) == Counter(points_of(delivered.backend, delivered.rows))


def test_rows_keep_their_order(delivered: Delivered) -> None:
    """A metric of one process is read back in the order in which it was written, lower steps included."""
    written = points_of(delivered.backend, [row for row in delivered.rows if row.journal == "p3"])
    assert [point for point in delivered.points if point in set(written)] == written


def test_time_is_the_rows_own(tracker: Tracker, delivered: Delivered) -> None:
    """A row logged a millisecond later is another point: the time held is the row's and not that of arrival."""
    if tracker.name == "wandb":
        pytest.skip(
            "its points have row ids instead of times; the tests of its own look at the times"
        )
    row = scenario.row(7, {"train/loss": 1.0})
    later = dataclasses.replace(row, time_s=row.time_s + 0.001)
    assert delivered.backend.points(row) != delivered.backend.points(later)


@pytest.mark.parametrize("name", scenario.ODD_VALUES)
def test_odd_metric_value_is_held(tracker: Tracker, name: str) -> None:
    """Whatever the value, the row becomes at least one point, different from that of any other value."""
    backend = tracker.new()
    points = {
        other: backend.points(scenario.row(1, {"x": value}))
        for other, value in scenario.ODD_VALUES.items()
    }
    alike = {other for other in points if points[other] == points[name]}
    assert points[name]
    assert alike == {name} or alike in SAME.get(tracker.name, [])


def test_odd_keys_stay_apart(tracker: Tracker) -> None:
    """No two names of metrics become one, and none disappears."""
    backend = tracker.new()
    by_key = {key: tuple(backend.points(scenario.row(1, {key: 1.0}))) for key in scenario.ODD_KEYS}
    assert len(set(by_key.values())) == len(scenario.ODD_KEYS)
    assert all(by_key.values())


def test_config_is_complete(delivered: Delivered) -> None:
    """Every key of every role is held as this tracker can hold it, 5,000 keys and 10,000-character values included."""
    assert delivered.held == delivered.backend.config_as_held(delivered.config)
    assert len(delivered.held) >= 5_000


def test_late_value_is_held(delivered: Delivered) -> None:
    """A value that became known after rows were written is in the configuration."""
    assert delivered.held != delivered.backend.config_as_held(delivered.first)


def test_config_is_as_typed_as_the_tracker_allows(tracker: Tracker, delivered: Delivered) -> None:
    """Numbers are numbers, bools bools and lists lists, but for the trackers that know texts only, or no lists."""
    prefix = {"trackio": "actor: ", "tensorboard": "actor: "}.get(tracker.name, "")
    names = ("lr", "seed", "odd_true", "odd_text", "odd_number_text", "odd_list", "odd_none")
    held = [delivered.held[f"{prefix}{name}"] for name in names]
    listed = [1, 2.5, "x", None, [True]]
    typed: list[Json] = [1e-6, 42, True, "text", "0.25", listed, None]
    expected = {
        "tensorboard": [1e-6, 42.0, True, "text", "0.25", json.dumps(listed), "None"],
        "mlflow": [
            "1e-06",
            "42",
            "True",
            "text",
            "0.25",
            json.dumps(listed, separators=(",", ":")),
            "None",
        ],
        "swanlab": [*typed[:-1], "None"],
    }.get(tracker.name, typed)
    assert [(type(value), value) for value in held] == [(type(value), value) for value in expected]


def test_changed_value_on_resume_is_held(
    tracker: Tracker, new_run: Callable[[str], RunFacts]
) -> None:
    """A run opened again with another value shows that value, and keeps the rows of before."""
    run = new_run("resumed")
    rows = scenario.plain_rows()
    for number, changes in enumerate(({"lr": 1e-6}, {"lr": 3e-6, "seed": 1})):
        backend = tracker.new()
        backend.open(run, WRITER)
        backend.set_config(scenario.config(60, **changes))
        backend.write(rows[number::2])
        backend.close(None if number == 0 else 0, CLOSE_TIMEOUT_S)
    assert backend.read_config(run) == backend.config_as_held(scenario.config(60, lr=3e-6, seed=1))
    assert Counter(backend.read_points(run)) == Counter(points_of(backend, rows))


def test_resume_after_kill(tracker: Tracker, new_run: Callable[[str], RunFacts]) -> None:
    """After kill -9 the tracker holds only rows that were written, all if it is durable; the rest can follow."""
    if tracker.name == "memory":
        pytest.skip("the memory tracker dies with its process")
    run = new_run("killed")
    num_written = _write_and_kill(tracker, run, num_batches=5)
    backend = tracker.new()
    possible = points_of(
        backend, [row for number in range(num_written + 1) for row in scenario.endless_rows(number)]
    )
    held = Counter(backend.read_points(run))
    assert held <= Counter(possible)
    rows = [row for number in range(num_written) for row in scenario.endless_rows(number)]
    if backend.is_durable:
        assert Counter(points_of(backend, rows)) <= held
    backend.open(run, WRITER)
    backend.write([row for row in rows if not all(point in held for point in backend.points(row))])
    backend.close(0, CLOSE_TIMEOUT_S)
    assert (
        Counter(points_of(backend, rows)) <= Counter(backend.read_points(run)) <= Counter(possible)
    )


def _write_and_kill(tracker: Tracker, run: RunFacts, num_batches: int) -> int:
    facts = dataclasses.asdict(run) | {"directory": str(run.directory)}
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.backends.scenario", tracker.name, json.dumps(facts)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert writer.stdout is not None
    for _ in range(num_batches):
        assert writer.stdout.readline(), "the writer ended by itself"
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().split()
    writer.wait()
    writer.stdout.close()
    return int(rest[-1]) if rest else num_batches


def test_close_can_be_repeated(tracker: Tracker, new_run: Callable[[str], RunFacts]) -> None:
    """The second close finds nothing to do."""
    backend = tracker.new()
    backend.open(new_run("closed"), WRITER)
    backend.close(1, CLOSE_TIMEOUT_S)
    backend.close(1, CLOSE_TIMEOUT_S)


def test_close_without_open(tracker: Tracker) -> None:
    """A backend that never opened closes at once."""
    tracker.new().close(0, 1.0)


def test_write_without_open_is_a_backend_error(tracker: Tracker) -> None:
    """A mistake in the order of calls is told in our own terms."""
    with pytest.raises(BackendError):
        tracker.new().write([scenario.row(1, {"x": 1.0})])


def test_reading_a_run_that_is_not_there(
    tracker: Tracker, new_run: Callable[[str], RunFacts]
) -> None:
    """A run that the tracker has never seen has no points and no configuration."""
    run = new_run("absent")
    backend = tracker.new()
    assert list(backend.read_points(run)) == []
    assert backend.read_config(run) == {}


def test_missing_package_names_the_extra(
    tracker: Tracker, new_run: Callable[[str], RunFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tracker whose package is not installed is an error at start that tells how to install it."""
    package = BACKENDS[tracker.name].package
    if package is None:
        pytest.skip("needs no package")
    monkeypatch.setitem(sys.modules, package.module, None)
    with pytest.raises(MissingBackendError, match=rf"\.\[{tracker.name}\]"):
        tracker.new().open(new_run("missing"), WRITER)


def test_package_that_is_too_old_says_which_is_needed(
    tracker: Tracker, new_run: Callable[[str], RunFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a failure in the middle of the job, but an error at start with what is there, what is needed, and the fix."""
    row = BACKENDS[tracker.name]
    if (package := row.package) is None:
        pytest.skip("needs no package")
    newer = Package(package.module, package.distribution, "1000.2")
    monkeypatch.setitem(BACKENDS, tracker.name, TrackerRow(row.backend, newer))
    told = rf"needs the package {package.distribution} 1000\.2 or newer, and \d[\d.]+ is installed.*\.\["
    with pytest.raises(MissingBackendError, match=told):
        tracker.new().open(new_run("old"), WRITER)


def test_arguments_are_left_alone(delivered: Delivered) -> None:
    """A backend changes neither the configuration nor the rows that it is given."""
    assert delivered.config == scenario.config(**LATE)
    assert [repr(row) for row in delivered.rows] == [
        repr(row) for row in scenario.plain_rows() + scenario.odd_rows()
    ]


def test_nothing_is_printed(
    tracker: Tracker, new_run: Callable[[str], RunFacts], capfd: pytest.CaptureFixture[str]
) -> None:
    """The vendor's client writes nothing to the job's output."""
    backend = tracker.new()
    backend.open(new_run("quiet"), WRITER)
    backend.write([scenario.row(1, {"train/loss": 1.0})])
    backend.close(0, CLOSE_TIMEOUT_S)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_nan_is_equal_to_nan(tracker: Tracker) -> None:
    """A row with NaN becomes the same points each time, or it could never be found again."""
    backend = tracker.new()
    assert backend.points(scenario.row(1, {"x": math.nan})) == backend.points(
        scenario.row(1, {"x": math.nan})
    )
