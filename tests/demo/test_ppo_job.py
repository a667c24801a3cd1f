"""The PPO demo in real processes, read back: from the journals, from W&B's offline file and from Trackio's database."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from slime_logging.backends.base import Readable
from slime_logging.backends.process import BackendProcess
from slime_logging.demo.namespace import ppo_namespace

from .reading import SLIME_LOGGING, Run, environment, read_run, run_demo, start_demo

pytestmark = pytest.mark.xdist_group("demo-ppo")

NUM_ROLLOUTS = 6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Six rollouts of PPO with W&B and Trackio."""
    return run_demo(tmp_path_factory.mktemp("ppo"), "ppo", "--rollouts", str(NUM_ROLLOUTS))


def test_each_process_logged_every_row(run: Run) -> None:
    """Driver a row a rollout; rollout process one more for the evaluation; critic 2 steps a rollout; actor 2 steps
    a rollout but the first, and 2 rows on the rollout's axis."""
    counts = Counter((row.journal.split("-")[0], row.step_key) for row in run.job_rows)
    assert counts == {
        ("primary", "rollout/step"): NUM_ROLLOUTS,
        ("rollout", "rollout/step"): NUM_ROLLOUTS,
        ("rollout", "eval/step"): 1,
        ("actor", "train/step"): 2 * (NUM_ROLLOUTS - 1),
        ("actor", "rollout/step"): 2 * (NUM_ROLLOUTS - 1),
        ("critic", "train/step"): 2 * NUM_ROLLOUTS,
    }


def test_steps_count_up_without_a_gap(run: Run) -> None:
    """The critic begins at 0, the actor after the critic-only rollout."""
    steps = {
        role: [row.step for row in run.rows_of(role) if row.step_key == "train/step"]
        for role in ("actor", "critic")
    }
    assert steps == {
        "critic": list(range(2 * NUM_ROLLOUTS)),
        "actor": list(range(2, 2 * NUM_ROLLOUTS)),
    }


def test_roles_log_under_slimes_names(run: Run) -> None:
    """`train/<key>` is the actor's, `train/critic-<key>` the critic's."""
    names = {
        role: {key for row in run.rows_of(role) for key in row.metrics}
        for role in ("actor", "critic")
    }
    assert {
        "train/loss",
        "train/pg_loss",
        "train/ppo_kl",
        "train/grad_norm",
        "train/lr-pg_0",
    } <= names["actor"]
    assert {"train/critic-loss", "train/critic-value_loss", "train/critic-lr-pg_0"} <= names[
        "critic"
    ]
    assert all(key.startswith("train/critic-") for key in names["critic"])


@pytest.mark.parametrize(
    "backend",
    [BackendProcess("wandb"), BackendProcess("trackio")],
    ids=lambda backend: backend.name,
)
def test_the_tracker_holds_every_row_once_with_its_values(run: Run, backend: Readable) -> None:
    """What the tracker holds is exactly what the processes logged: nothing lost, nothing doubled, nothing changed."""
    expected = Counter(point for row in run.rows for point in backend.points(row))
    assert Counter(backend.read_points(run.facts)) == expected


@pytest.mark.parametrize(
    "backend",
    [BackendProcess("wandb"), BackendProcess("trackio")],
    ids=lambda backend: backend.name,
)
def test_the_tracker_holds_the_whole_configuration(run: Run, backend: Readable) -> None:
    """Every key of both roles, with the values that the roles used."""
    assert backend.read_config(run.facts) == backend.config_as_held(run.config)


def test_the_configuration_has_every_argument_of_both_roles(run: Run) -> None:
    """All 873 names un-prefixed, and again under `critic/`, but those that belong to a process or to tracking."""
    names = set(vars(ppo_namespace())) - {"rank", "local_rank", "wandb_run_id", "wandb_key"}
    assert not names - set(run.config.values)
    assert not {f"critic/{name}" for name in names} - set(run.config.values)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lr", 2e-3),
        ("critic/lr", 5e-3),
        ("lr_decay_style", "cosine"),
        ("critic/lr_decay_style", "constant"),
        ("clip_grad", 0.5),
        ("critic/clip_grad", 5.0),
        ("critic/weight_decay", 0.01),
        ("critic/start_weight_decay", 0.01),
        ("untie_embeddings_and_output_weights", False),
        ("critic/untie_embeddings_and_output_weights", True),
        ("overrides/critic/lr", {"base": 1e-3, "value": 5e-3, "source": "file"}),
        ("overrides/actor/lr", {"base": 1e-3, "value": 2e-3, "source": "file"}),
        ("hidden_size", 64),
        ("params_dtype", "torch.float32"),
        # Known late, told by log_config.
        ("num_rollout", NUM_ROLLOUTS),
        ("start_rollout_id", 0),
        ("train_iters", 2 * NUM_ROLLOUTS),
        ("critic/train_iters", 2 * NUM_ROLLOUTS),
        ("vocab_size", 128),
        ("critic/padded_vocab_size", 128),
    ],
)
def test_the_configuration_shows_what_was_used(run: Run, key: str, value: Any) -> None:
    """Spot values of both roles, overrides, forced and late ones."""
    assert run.config.values[key] == value


def test_logged_learning_rates_are_the_configured_ones(run: Run) -> None:
    """What the optimizer really used is what the configuration shows."""
    used = {
        role: max(row.metrics.get(key, 0.0) for row in run.rows_of(role))
        for role, key in LEARNING_RATES.items()
    }
    assert used == {
        "actor": pytest.approx(run.config.values["lr"], rel=0.05),
        "critic": run.config.values["critic/lr"],
    }


LEARNING_RATES = {"actor": "train/lr-pg_0", "critic": "train/critic-lr-pg_0"}


def test_the_end_screen_tells_what_differs_and_where_to_look(run: Run) -> None:
    """It names differing keys, the rows, and a command for each tracker."""
    for text in (
        "what differs",
        "clip_grad",
        "rows logged",
        "wandb leet run ",
        "trackio show --project slime-demo",
    ):
        assert text in run.output


def test_the_commands_on_the_end_screen_name_real_places(run: Run) -> None:
    """W&B's command names the directory with the run's file, Trackio's the one with its database."""
    [wandb_place] = re.findall(r"wandb leet run (\S+)", run.output)
    [trackio_place] = re.findall(r"TRACKIO_DIR=(\S+)", run.output)
    here = run.directory.path.parent
    assert list((here / wandb_place).glob("*.wandb"))
    assert (here / trackio_place / "slime-demo.db").is_file()


def test_wandbs_own_reader_sees_the_run(run: Run) -> None:
    """`wandb leet inspect` reads the file: it is a real one, not only one that we can read."""
    [file] = run.directory.path.glob("wandb/*/*.wandb")
    done = subprocess.run(
        [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum("history" in json.dumps(record)[:200] for record in records) >= len(run.rows)


@dataclass
class Killed:
    """A job whose driver was killed: where it ran, how many rows it had told of, and which children it had."""

    directory: Path
    num_told: int
    children: list[psutil.Process]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """SIGKILL of the driver between two rollouts, half-way."""
    directory = tmp_path_factory.mktemp("killed")
    with start_demo(directory, "ppo", "--rollouts", "20", "--trackers", "wandb") as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if (match := re.search(r"rollout (\d+)/20.* (\d+) rows", line)) and int(match[1]) >= 10:
                break
        assert match
        children = psutil.Process(demo.pid).children(recursive=True)
        demo.send_signal(signal.SIGKILL)
    return Killed(directory=directory, num_told=int(match[2]), children=children)


def test_a_killed_primary_leaves_no_process_behind(killed: Killed) -> None:
    """Its children end when their pipes do."""
    assert not psutil.wait_procs(killed.children, timeout=20)[1]


def test_a_killed_primary_leaves_every_row_in_the_journals(killed: Killed) -> None:
    """Each row that had been logged before is on disk, of every process."""
    run = read_run(killed.directory)
    assert len(run.job_rows) >= killed.num_told > 0
    assert {row.journal.split("-")[0] for row in run.job_rows} == {
        "primary",
        "rollout",
        "actor",
        "critic",
    }


def test_sync_brings_the_rows_of_a_killed_job_to_the_tracker_once(killed: Killed) -> None:
    """Whatever the killed delivery had written, W&B ends with each row exactly once."""
    psutil.wait_procs(killed.children, timeout=20)
    run = read_run(killed.directory)
    subprocess.run(
        [SLIME_LOGGING, "sync", str(run.directory.path)],
        env=environment(killed.directory),
        check=True,
        timeout=120,
    )
    backend = BackendProcess("wandb")
    expected = Counter(point for row in run.rows for point in backend.points(row))
    assert Counter(backend.read_points(run.facts)) == expected


def test_time_of_rows_is_when_they_were_logged(run: Run) -> None:
    """Rows of each process are in the order of time."""
    assert all(row.time_s <= time.time() for row in run.rows)
    for process in ("primary", "rollout", "actor", "critic"):
        times = [row.time_s for row in run.rows_of(process)]
        assert times == sorted(times)
