"""`slime-logging show`: why rows were set aside; the rest of it is shown on killed runs, in the proofs."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slime_logging
from slime_logging.cli.app import app
from slime_logging.cli.show import MAX_REASONS
from slime_logging.delivery import aside


@pytest.fixture
def run(tmp_path: Path) -> Path:
    args = Namespace(
        lr=1e-6,
        tracking_dir=str(tmp_path / "tracking"),
        wandb_run_id="job",
        tracking_system_metrics="off",
    )
    slime_logging.init_tracking(args)
    slime_logging.finish_tracking(args)
    return tmp_path / "tracking" / "job"


def note(run: Path, name: str, *rows: tuple[str, str]) -> None:
    lines = [json.dumps({"row_id": row_id, "reason": reason}) for row_id, reason in rows]
    (run / "delivery" / f"{name}.aside.jsonl").write_text("\n".join(lines) + "\n")


def show(*words: object) -> str:
    result = CliRunner().invoke(
        app, ["show", *map(str, words)], env={"COLUMNS": "150", "NO_COLOR": "1"}
    )
    assert result.exit_code == 0, result.output
    return result.output


def cells(output: str) -> list[list[str]]:
    return [re.split(r"  +", line.strip()) for line in output.splitlines() if line.strip()]


def test_a_run_with_nothing_set_aside_does_not_speak_of_it(run: Path) -> None:
    assert "refused for good" not in show(run)


def test_rows_set_aside_are_told_by_reason(run: Path) -> None:
    """Most rows first; a row that two deliveries noted counts once; torn lines are passed over."""
    note(run, "mlflow@first", ("a:3", "too long"), ("a:4", "bad name"), ("a:9", "too long"))
    note(run, "mlflow@second", ("a:9", "too long"))
    note(run, "wandb@first", ("b:1", "too long"))
    with (run / "delivery" / "wandb@first.aside.jsonl").open("a") as file:
        file.write('{"row_id": "b:2"}\n{"row_id": "b:')
    told = [row for row in cells(show(run)) if row[0] in ("mlflow", "wandb")]
    assert told[0] == ["mlflow", "2", "too long", "a:3"]
    assert sorted(told[1:]) == [
        ["mlflow", "1", "bad name", "a:4"],
        ["wandb", "1", "too long", "b:1"],
    ]
    found = json.loads(show(run, "--json"))["set_aside"]
    assert found[0] == {
        "destination": "mlflow",
        "reason": "too long",
        "num_rows": 2,
        "first_row_id": "a:3",
    }


def test_many_reasons_are_cut_off_with_a_mark(run: Path) -> None:
    note(
        run,
        "mlflow@first",
        *((f"a:{number}", f"reason {number}") for number in range(MAX_REASONS + 7)),
    )
    assert "and 7 further reasons: --json shows them all" in " ".join(show(run).split())


def test_what_is_read_is_bounded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "MAX_READ_BYTES", 100)
    note(run, "mlflow@first", *((f"a:{number}", "why") for number in range(100)))
    note(run, "mlflow@second", ("b:1", "never read"))
    output = show(run)
    assert "never read" not in output
    assert "why" in output
