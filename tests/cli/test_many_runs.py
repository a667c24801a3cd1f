"""A person with ten runs: finds the best one, sees what was different, reads its samples; four commands, real runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slime_logging
from slime_logging.cli.app import app
from slime_logging.record.run import RunDirectory
from tests.cli.jobs import tensorboard_job

NUM_RUNS, BEST = 10, 6
COMMAND = [sys.executable, "-c", "from slime_logging.cli.app import app; app()"]


@pytest.fixture(scope="module")
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten runs that differ in a learning rate and in what a role file says; the seventh learned best."""
    place = tmp_path_factory.mktemp("ten")
    for number in range(NUM_RUNS):
        roles = place / f"roles-{number}.yaml"
        roles.write_text(f"megatron:\n  - role: critic\n    overrides: {{lr: {number + 1}.0e-5}}\n")
        args = Namespace(
            lr=1e-6 * (1 + (number == BEST)),
            seed=7,
            use_critic=True,
            megatron_config_path=str(roles),
            wandb_run_id=f"run{number}-{'abcdefghij'[number]}",
            wandb_project="math",
            tracking_dir=str(place / "tracking"),
            tracking_system_metrics="off",
            tracking_tags=["sweep"],
        )
        with slime_logging.tracked(args):
            for step in range(5):
                reward = 0.1 * step + (0.5 if number == BEST else 0.01 * number)
                row = {
                    "rollout/step": step,
                    "rollout/raw_reward": reward,
                    "train/loss": 1 / (step + 1),
                }
                slime_logging.log(args, row, "rollout/step")
                slime_logging.log_samples(
                    args,
                    [
                        {
                            "rollout/step": step,
                            "prompt": f"question {step}",
                            "completion": f"answer of {number} [red]to {step}[/] \x1b[2J <b>",
                            "reward": reward,
                        }
                    ],
                    "rollout/step",
                )
    return place / "tracking"


def call(tracking: Path, *words: str, columns: int | None = 120) -> str:
    env = {
        "NO_COLOR": "1",
        "SLIME_LOGGING_DIR": str(tracking),
        "COLUMNS": str(columns) if columns else None,
    }
    result = CliRunner().invoke(app, words, env=env)
    assert result.exit_code == 0, result.output
    return result.output


def test_four_commands_from_ten_runs_to_the_samples_of_the_best(
    tracking: Path, tmp_path: Path
) -> None:
    best = json.loads(call(tracking, "list", "--sort", "value", "--json"))[0]
    assert (best["run"], best["metric"], best["value"]) == ("run6-g", "rollout/raw_reward", 0.9)
    told = call(tracking, "diff", "run6", "run5")
    rows = [line.split() for line in told.splitlines()]
    assert ["lr", "actor", "2e-06", "1e-06"] in rows
    assert [
        "lr",
        "critic",
        "7e-05",
        "6e-05",
        "run6-g:",
        "role",
        "file,",
        "run5-f:",
        "role",
        "file",
    ] in rows
    assert ["rollout/raw_reward", "0.9", "0.45", "-0.45"] in rows
    assert "seed" not in told
    samples = call(tracking, "show", "run6", "--samples")
    assert "rollout/samples, step 4, sample 0" in samples
    assert "answer of 6 [red]to 4[/] \\x1b[2J <b>" in samples
    page = tmp_path / "page.html"
    call(tracking, "report", "run6", "-o", str(page))
    assert page.stat().st_size > 10_000


@pytest.mark.parametrize("columns", [80, 120])
def test_the_list_at_a_terminals_width(tracking: Path, columns: int) -> None:
    """Every run with its state and reward; nothing is cut, no line is longer than the terminal."""
    told = call(tracking, "list", "--sort", "value", columns=columns)
    assert max(map(len, told.splitlines())) <= columns
    assert "…" not in told
    words = told.split()
    assert [word for word in words if re.match(r"run\d-", word)][:3] == [
        "run6-g",
        "run9-j",
        "run8-i",
    ]
    assert words.count("finished") == NUM_RUNS
    assert "0.9" in words


def test_piped_every_run_is_a_line(tracking: Path) -> None:
    told = subprocess.run(
        [*COMMAND, "list", "--tracking-dir", str(tracking)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line.split() for line in told.splitlines() if line.startswith("run") and "-" in line]
    assert len(lines) == NUM_RUNS
    assert all("rollout/raw_reward" in line for line in lines)


def test_filters_and_another_metric(tracking: Path) -> None:
    def runs(*words: str) -> list[str]:
        return [run["run"] for run in json.loads(call(tracking, "list", "--json", *words))]

    assert runs("--filter", "run=run3") == ["run3-d"]
    assert len(runs("--filter", "state=finished", "--filter", "tags=sweep")) == NUM_RUNS
    assert runs("--filter", "project=other") == []
    assert runs("--sort", "run") == sorted(runs())
    assert runs() == list(reversed(runs("--reverse")))
    (one,) = json.loads(
        call(tracking, "list", "--json", "--filter", "run2", "--metric", "train/loss")
    )
    assert (one["metric"], one["value"], one["step"], one["rows"]) == ("train/loss", 0.2, 4, 10)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--sort", "reward"), "--sort reward: no such column; there are: run, name"),
        (("--filter", "colour=red"), "no column 'colour'; there are: run, name"),
    ],
)
def test_a_wrong_column_is_told_with_those_there(
    tracking: Path, words: tuple[str, ...], told: str
) -> None:
    result = CliRunner().invoke(app, ["list", "--tracking-dir", str(tracking), *words])
    assert (result.exit_code, told in " ".join(result.output.split())) == (1, True), result.output


def test_how_runs_ended_and_what_is_no_run(tracking: Path, tmp_path: Path) -> None:
    """Failed, died and running are told apart; a damaged description costs its own line only."""
    place = tmp_path / "tracking"
    for name, code in (("good", 0), ("bad", 3)):
        args = Namespace(tracking_dir=str(place), wandb_run_id=name, tracking_system_metrics="off")
        slime_logging.init_tracking(args)
        slime_logging.finish_tracking(args, code)
    died = Namespace(tracking_dir=str(place), wandb_run_id="died", tracking_system_metrics="off")
    code = f"import os, slime_logging; from argparse import Namespace; slime_logging.init_tracking({died!r}); os._exit(9)"
    subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    (place / "broken").mkdir()
    (place / "broken" / "run.json").write_text("{")
    lives = Namespace(tracking_dir=str(place), wandb_run_id="lives", tracking_system_metrics="off")
    slime_logging.init_tracking(lives)
    try:
        result = CliRunner().invoke(
            app, ["list", "--tracking-dir", str(place)], env={"COLUMNS": "150"}
        )
    finally:
        slime_logging.finish_tracking(lives)
    assert result.exit_code == 0
    states = {line.split()[0]: line for line in result.output.splitlines() if line.strip()}
    assert "finished" in states["good"]
    assert "failed (exit code 3)" in states["bad"]
    assert "died" in states["died"].split()[1:]
    assert "running" in states["lives"]
    assert "left out: " in result.output
    assert "broken" in result.output


def test_the_roles_are_those_that_joined(tmp_path: Path) -> None:
    """In the order of their start; a run without any has those of its configuration."""
    args = Namespace(
        tracking_dir=str(tmp_path),
        wandb_run_id="job",
        tracking_system_metrics="off",
        use_memory=True,
    )
    slime_logging.init_tracking(args)
    try:
        for role in ("trainer", "explorer"):
            other = Namespace(**vars(args))
            slime_logging.init_tracking(other, primary=False, role=role)
            slime_logging.finish_tracking(other)
    finally:
        slime_logging.finish_tracking(args)
    (run,) = json.loads(call(tmp_path, "list", "--json"))
    assert run["roles"] == ["trainer", "explorer"]


def test_samples_of_a_step_for_programs(tracking: Path) -> None:
    (one,) = json.loads(call(tracking, "show", "run1", "--samples", "--step", "2", "--json"))
    assert one["sample"]["completion"] == "answer of 1 [red]to 2[/] \x1b[2J <b>"
    assert (one["step"], one["name"]) == (2, "rollout/samples")
    assert "there are 5 steps, 0 to 4" in call(tracking, "show", "run1", "--samples", "--step", "9")


def test_watch_once_shows_a_living_run(tmp_path: Path) -> None:
    args = tensorboard_job(tmp_path)
    with slime_logging.tracked(args):
        for step in range(3):
            slime_logging.log(
                args,
                {"train/step": step, "train/loss": 2.0 - step, "rollout/raw_reward": step / 4},
                "train/step",
            )
        told = call(tmp_path, "watch", "job", "--once", columns=80)
    assert "running" in told
    rows = [line.split() for line in told.splitlines()]
    assert ["rollout/raw_reward", "0.5", "▁▅█"] in [
        [c.replace("▄", "▅") for c in row] for row in rows
    ]
    assert [row[0] for row in rows if row and "/" in row[0]][:2] == [
        "rollout/raw_reward",
        "train/loss",
    ]
    assert "…" not in told
    assert max(map(len, told.splitlines())) <= 80
    piped = subprocess.run(
        [*COMMAND, "watch", str(tmp_path / "job")], capture_output=True, text=True, check=True
    ).stdout
    assert piped.startswith("job finished: 3 rows, rollout/raw_reward 0.5")
    assert RunDirectory(tmp_path / "job").read().run_id == "job"
