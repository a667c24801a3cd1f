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
from slime_logging.cli.show import MAX_PROCESSES, MAX_REASONS
from slime_logging.delivery import refused
from tests.cli.jobs import tensorboard_job


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


def test_of_more_processes_than_a_person_looks_at_those_with_a_fault_are_shown(run: Path) -> None:
    """The primary, and one whose journal is torn, stand where they always do; how many more there are is said."""
    (primary,) = (run / "journals").iterdir()
    opening = json.loads(primary.read_bytes().splitlines()[0]) | {"is_primary": False}
    opening["time_s"] -= 1
    for number in range(MAX_PROCESSES + 5):
        name = f"worker-{number:04}"
        lines = json.dumps(opening | {"journal": name, "role": name}) + "\n"
        (run / "journals" / f"{name}.jsonl").write_text(lines + "torn" * (number == MAX_PROCESSES))
    rows = [line[0] for line in cells(show(run)) if line[0].startswith(("worker-", "primary"))]
    assert rows[:2] == ["worker-0000", "worker-0001"]
    assert rows[-2:] == [f"worker-{MAX_PROCESSES:04}", "primary"]
    assert len(rows) == MAX_PROCESSES
    assert "and 6 further processes: --json shows them all" in show(run)
    assert len(json.loads(show(run, "--json"))["journals"]) == MAX_PROCESSES + 6


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
    monkeypatch.setattr(refused, "MAX_READ_BYTES", 100)
    note(run, "mlflow@first", *((f"a:{number}", "why") for number in range(100)))
    note(run, "mlflow@second", ("b:1", "never read"))
    output = show(run)
    assert "never read" not in output
    assert "why" in output


def cursor(run: Path, destination: str, state: str, reason: str, **changes: object) -> None:
    told = {
        "backend": destination.partition("-")[0],
        "destination": destination,
        "label": "x",
        "state": state,
    }
    told |= {"reason": reason, "updated_s": 1.0, "places": {}, **changes}
    (run / "delivery" / f"{destination}@x.json").write_text(json.dumps(told))


@pytest.mark.parametrize("columns", ["80", "120", ""])
def test_a_reason_stands_whole_under_the_table(run: Path, columns: str) -> None:
    """At 80 columns, at 120, and piped; no word is cut, no line too long for a terminal."""
    reason = "the server said: " + " ".join(f"word{number}" for number in range(60))
    cursor(run, "wandb-online", "waiting", reason)
    result = CliRunner().invoke(
        app, ["show", str(run)], env={"COLUMNS": columns or None, "NO_COLOR": "1"}
    )
    told = result.output.splitlines()
    assert reason in " ".join(result.output.split())
    assert "…" not in result.output
    assert not columns or max(
        len(line) for line in told if "slime-logging sync" not in line and str(run) not in line
    ) <= int(columns)
    assert columns or any(reason in line for line in told)


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("wandb-online", ["--to", "wandb", "--online"]),
        ("wandb-online-0a1b2c3d", ["--to", "wandb", "--online"]),
        ("trackio", ["--to", "trackio"]),
        ("swanlab-online", ["--to", "swanlab", "-o", "swanlab_mode=cloud"]),
        ("mlflow-0a1b2c3d", ["--to", "mlflow", "-o", "mlflow_tracking_uri=THE-SERVER"]),
    ],
)
def test_the_advice_leads_where_something_is_left(
    run: Path, destination: str, words: list[str]
) -> None:
    """The sync that it names delivers to that place, not to the job's own trackers only."""
    cursor(run, destination, "waiting", "down")
    (line,) = [line for line in show(run).splitlines() if line.startswith("slime-logging sync")]
    assert line.split() == ["slime-logging", "sync", str(run), *words]


def test_a_page_that_the_client_told_is_shown(tmp_path: Path) -> None:
    args = tensorboard_job(tmp_path)
    with slime_logging.tracked(args):
        pass
    cursor(tmp_path / "job", "wandb-online", "closed", "", page="https://wandb.ai/us/p/runs/job")
    told = show(tmp_path / "job")
    assert "wandb: https://wandb.ai/us/p/runs/job" in told
    assert (
        f"tensorboard: tensorboard --load_fast=false --logdir {tmp_path / 'job' / 'tensorboard'}"
        in told
    )
    held = json.loads((tmp_path / "job" / "run.json").read_text())["addresses"]
    assert held["tensorboard"].endswith(str(tmp_path / "job" / "tensorboard"))


def test_the_version_is_told() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"slime-logging {slime_logging.__version__}\n")


def test_a_process_without_a_role_has_a_name(tmp_path: Path) -> None:
    """In `show` and `watch`: the primary, and the module that had the other join. One start is not counted."""
    args = Namespace(tracking_dir=str(tmp_path), wandb_run_id="job", tracking_system_metrics="off")
    slime_logging.init_tracking(args)
    other = Namespace(**vars(args))
    slime_logging.init_tracking(other, primary=False)
    slime_logging.finish_tracking(other)
    slime_logging.finish_tracking(args)
    told = show(tmp_path / "job")
    assert told.splitlines()[0].endswith(": finished")
    rows = [row[0] for row in cells(told)]
    assert rows[rows.index("process") + 2 :][:2] == ["primary", "test_show"]
    watched = CliRunner().invoke(app, ["watch", str(tmp_path / "job"), "--once"]).output
    assert {"primary", "test_show"} <= {row[0] for row in cells(watched)}
