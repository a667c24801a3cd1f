"""Samples: whole texts in a file beside the journal, redacted, referred to by a row."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

import slime_logging
from slime_logging.delivery.status import journal_rows
from slime_logging.record.run import RunDirectory
from slime_logging.record.samples import MAX_TEXT_BYTES
from slime_logging.values.samples import read_samples, references


def run_with(tmp_path: Path, *calls: list[dict[str, Any]], **changes: Any) -> RunDirectory:
    args = Namespace(
        tracking_dir=str(tmp_path), wandb_run_id="job", tracking_system_metrics="off", **changes
    )
    with slime_logging.tracked(args):
        for samples in calls:
            slime_logging.log_samples(args, samples, "rollout/step")
    return RunDirectory(tmp_path / "job")


def tables(run: RunDirectory) -> list[tuple[float, list[dict[str, Any]]]]:
    return [
        (row.step, read_samples(run.path, file))
        for row in journal_rows(run)
        for name, file in references(row.metrics)
        if name == "rollout/samples"
    ]


def test_every_column_comes_back_as_it_was(tmp_path: Path) -> None:
    sample = {
        "prompt": "2 + 2 = ?",
        "completion": "<b>4</b>\n\u2028größer \U0001f600 \x00\x1b[31m",
        "reward": 0.5,
        "length": 3,
        "is_truncated": False,
        "label": None,
        "messages": [{"role": "user", "content": "hi"}],
    }
    run = run_with(tmp_path, [{"rollout/step": 3, **sample}])
    assert tables(run) == [(3, [sample])]


def test_the_journal_holds_a_reference_only(tmp_path: Path) -> None:
    run = run_with(tmp_path, [{"rollout/step": 1, "completion": "x" * 100_000}])
    assert sum(path.stat().st_size for path in run.journal_paths()) < 10_000
    (row,) = journal_rows(run)
    assert row.metrics["rollout/samples"]["num_samples"] == 1  # type: ignore[index]
    assert row.metrics["rollout/samples"]["columns"] == ["completion"]  # type: ignore[index]


def test_a_text_is_whole_up_to_a_mebibyte(tmp_path: Path) -> None:
    """Bytes of UTF-8; a longer one is cut between characters, and says how long it was."""
    whole, long = "é" * (MAX_TEXT_BYTES // 2), "é" * MAX_TEXT_BYTES
    run = run_with(tmp_path, [{"rollout/step": 1, "a": whole, "b": long, "c": "\ud800"}])
    ((_, (held,)),) = tables(run)
    assert held["a"] == whole
    assert held["b"] == whole + f"... <shortened: {len(long)} characters>"
    assert held["c"] == "\\ud800"


def test_steps_are_told_apart(tmp_path: Path) -> None:
    """A row a step; a sample without a step belongs to the one before."""
    samples = [{"rollout/step": 1, "n": 0}, {"n": 1}, {"rollout/step": 2, "n": 2}]
    run = run_with(tmp_path, samples, [], [{"rollout/step": 1, "n": 3}])
    assert tables(run) == [(1, [{"n": 0}, {"n": 1}]), (2, [{"n": 2}]), (1, [{"n": 3}])]


def test_a_missing_step_key_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no step key 'rollout/step'; it has: prompt"):
        run_with(tmp_path, [{"prompt": "x"}])


def test_odd_values_cost_nothing_but_their_form(tmp_path: Path) -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    run = run_with(tmp_path, [{"rollout/step": 1, "nan": float("nan"), "big": 2**80, "odd": Odd()}])
    ((_, (held,)),) = tables(run)
    assert (held["nan"], held["big"]) == ("nan", str(2**80))
    assert "odd" in held


def test_secrets_are_hidden_where_they_stand(tmp_path: Path) -> None:
    """By value, known or of a known form; what stands around them is kept."""
    secret = "s3cr3t-passw0rd-of-the-job"
    token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"
    text = f"before {secret} between {token} after " + "plain words only, " * 1000
    run = run_with(tmp_path, [{"rollout/step": 1, "completion": text}], wandb_key=secret)
    raw = b"".join(path.read_bytes() for path in (run.path / "media").iterdir()).decode()
    assert secret not in raw
    assert token not in raw
    ((_, (held,)),) = tables(run)
    assert held["completion"].startswith("before <hidden: ")
    assert held["completion"].endswith("after " + "plain words only, " * 1000)


def test_a_disk_that_is_full_costs_training_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The folder cannot be made: it is told, and the row that would refer to nothing is not there."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "media").write_text("in the way")
    run = run_with(tmp_path, [{"rollout/step": 1, "n": 1}])
    assert list(journal_rows(run)) == []
    assert "log_samples" in caplog.text


def test_a_process_that_never_joined_may_call_it() -> None:
    slime_logging.log_samples(Namespace(), [{"n": 1}], "rollout/step")


@pytest.mark.parametrize(
    "file",
    ["../secret.jsonl", "/etc/passwd", "media/../x.jsonl", "media/link.jsonl", "media/x.png"],
)
def test_nothing_outside_of_the_run_is_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "secret.jsonl").write_text('{"a": 1}')
    (tmp_path / "media" / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(ValueError, match="no file of samples"):
        read_samples(tmp_path, file)


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    lines = [json.dumps({"a": 1}), "[1]", "torn {", json.dumps({"a": 2}), '{"a": ']
    (tmp_path / "media" / "x.jsonl").write_text("\n".join(lines))
    assert read_samples(tmp_path, "media/x.jsonl") == [{"a": 1}, {"a": 2}]
