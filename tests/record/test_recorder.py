"""The recorder: the quick way for plain rows gives the same lines as the thorough one."""

from __future__ import annotations

import math

import numpy as np
import orjson
import pytest

from slime_logging.record.entries import Opening
from slime_logging.record.journal import journal_name
from slime_logging.record.recorder import Recorder
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.redact import Redactor

STEP = "train/step"


def recorded(tmp_path, rows):
    """The lines of these rows, each recorded a second time, when its names are known."""
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    opening = Opening(
        run_id="run",
        journal=journal_name(None),
        role=None,
        is_primary=True,
        host="h",
        pid=1,
        start=1,
        time_s=0.0,
    )
    recorder = Recorder(directory, opening, Redactor.of(None, {}))
    for row in rows:
        recorder.row(row, STEP)
        recorder.row(row, STEP)
    recorder.finish(0)
    lines = [orjson.loads(line) for line in recorder.journal.path.read_bytes().splitlines()]
    return [line for line in lines if line["kind"] == "row"]


@pytest.mark.parametrize(
    "values",
    [
        {"train/x": 0.5, "train/n": 3, "train/is_on": True},
        {},
        {"train/x": math.nan, "train/y": 1.0},
        {"train/x": math.inf, "train/y": -math.inf},
        {"train/x": 1e308, "train/y": 1e308},
        {"train/x": 2**70, "train/y": 1.0},
        {"train/x": 2**2000, "train/y": 1.0},
        {"train/x": 2**64 - 1, "train/y": -(2**63)},
        {"train/x": None, "train/y": "text", "train/z": [1, {"a": 2}]},
        {"train/x": np.float32(0.5), "train/y": np.array([2.0])},
        {np.str_("train/x"): 1.0, 7: 2.0},
    ],
    ids=str,
)
def test_a_row_is_recorded_alike_whether_its_names_are_new_or_known(tmp_path, values):
    first, second = recorded(tmp_path, [{STEP: 1, **values}])
    for line in (first, second):
        del line["seq"], line["time_s"]
    assert first == second
    kept = [first.get(part, {}) for part in ("metrics", "nonfinite", "large")]
    assert sum(map(len, kept)) == len(values)


@pytest.mark.parametrize("step", [2**70, 1.5, True, "3", None], ids=str)
def test_a_strange_step_is_recorded_alike_whether_its_name_is_new_or_known(tmp_path, step):
    first, second = recorded(tmp_path, [{STEP: 1}, {STEP: step, "train/x": 1.0}])[2:]
    assert first["step"] == second["step"]


def test_a_secret_in_a_known_name_or_value_is_hidden_every_time(tmp_path):
    key = "sk-" + "a1B2c3D4" * 6
    lines = recorded(tmp_path, [{STEP: 1, f"train/{key}": 1.0}, {STEP: 2, "train/x": key}])
    assert key not in str(lines)


def test_the_callers_row_is_not_changed(tmp_path):
    row = {STEP: 1, "train/x": 0.5}
    recorded(tmp_path, [row])
    assert row == {STEP: 1, "train/x": 0.5}
