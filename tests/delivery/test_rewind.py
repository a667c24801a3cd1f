"""A run that is continued from an earlier step: what each tracker shows of it, with each policy; the journals keep all of it,
and `verify` knows what a tracker is to show.
"""

from __future__ import annotations

import json
import random
import sqlite3
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slime_logging
from slime_logging.backends import memory
from slime_logging.backends.base import Writer
from slime_logging.backends.memory import MemoryBackend
from slime_logging.backends.process import backend_of_anyone
from slime_logging.backends.table import BACKENDS, Tracker
from slime_logging.cli.app import app
from slime_logging.cli.samples import sample_tables
from slime_logging.delivery import attempts
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.delivery import Delivery
from slime_logging.delivery.rewind import Rewinds, rewinds_of
from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.verify import verify
from slime_logging.errors import TryAgain
from slime_logging.record.entries import Opening, encode
from slime_logging.record.journal import Journal
from slime_logging.record.run import RunDirectory
from slime_logging.report.gather import gather
from slime_logging.values.row import Row
from tests.record.test_run import run_file

LOCAL = ("wandb", "trackio", "tensorboard", "mlflow", "swanlab")
DROPPING = ("trackio", "tensorboard")
"""Of the real trackers: in these rows can be deleted."""

FIRST, SECOND = range(10), range(6, 12)


def attempt(place: Path, policy: str, number: int, steps: range, **options: object) -> RunDirectory:
    """One start of the job: an actor that trains, a driver that counts rollouts from the half of that step on."""
    options = {f"use_{name}": True for name in LOCAL} | options
    args = Namespace(
        **options,
        tracking_dir=str(place),
        tracking_rewind=policy,
        tracking_system_metrics="off",
        tracking_finish_timeout=300,
        wandb_run_id="job",
        lr=1e-6,
    )
    if "wandb_mode" not in options:
        args.wandb_mode = "offline"
    slime_logging.init_tracking(args)
    actor = Namespace(**vars(args))
    slime_logging.init_tracking(actor, primary=False, role="actor")
    for step in steps:
        row = {"train/step": step, "train/loss": 100.0 * number + step}
        slime_logging.log(actor, row, "train/step")
    for step in range(steps.start // 2, steps.stop // 2):
        row = {"rollout/step": step, "rollout/reward": 100.0 * number + step}
        slime_logging.log(args, row, "rollout/step")
    if number == 1:
        slime_logging.log(args, {"eval/step": 500, "eval/score": 1.0}, "eval/step")
    if args.wandb_mode == "offline":
        sample = {"rollout/step": 3 + number, "prompt": "p", "completion": f"of {number}"}
        slime_logging.log_samples(args, [sample], "rollout/step")
    slime_logging.finish_tracking(actor)
    slime_logging.finish_tracking(args)
    return RunDirectory(place / "job")


def losses(directory: RunDirectory, tracker: str) -> list[tuple[int, float]]:
    """Step and loss of every point that a tracker's own files hold, by step."""
    return sorted(_losses(directory, tracker))


def _losses(directory: RunDirectory, tracker: str) -> Iterator[tuple[int, float]]:
    facts = directory.read().facts(directory.path, directory.read().options)
    if tracker == "tensorboard":
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        shown = EventAccumulator(str(directory.path / "tensorboard" / "actor"))
        shown.Reload()
        if "train/loss" in shown.Tags()["scalars"]:
            yield from ((e.step, e.value) for e in shown.Scalars("train/loss"))
    elif tracker == "trackio":
        (path,) = (directory.path.parent / "trackio").glob("*.db")
        with sqlite3.connect(path) as database:
            for step, metrics in database.execute("SELECT step, metrics FROM metrics"):
                if (loss := json.loads(metrics).get("train/loss")) is not None:
                    yield step, loss
    elif tracker == "mlflow":
        for point in backend_of_anyone(tracker).read_points(facts):
            if point[0] == "train/loss":
                yield point[3], point[1]
    elif tracker == "swanlab":
        for key, _, step, value in backend_of_anyone(tracker).read_points(facts):
            if key == "train/loss":
                yield step, value
    else:
        from slime_logging.backends.wandb import offline

        for row in offline.read_rows(facts):
            if "train/loss" in row:
                yield row["train/step"], row["train/loss"]


BOTH = sorted([*((s, 100.0 + s) for s in FIRST), *((s, 200.0 + s) for s in SECOND)])
LATER = [*((s, 100.0 + s) for s in range(6)), *((s, 200.0 + s) for s in SECOND)]


@pytest.mark.parametrize(
    ("policy", "trackers"),
    [("keep", ("tensorboard",)), ("mark", DROPPING), ("drop", DROPPING)],
)
def test_what_each_tracker_shows(policy: str, trackers: tuple[str, ...], tmp_path: Path) -> None:
    assert_shown(policy, trackers, tmp_path)


def test_all_trackers_with_drop(tmp_path: Path) -> None:
    """Those that cannot drop rows show all of them, with the number of the attempt."""
    assert_shown("drop", LOCAL, tmp_path)


def assert_shown(policy: str, trackers: tuple[str, ...], tmp_path: Path) -> None:
    """Two starts of the job, the second from an earlier step; what these trackers show of it then."""
    chosen = {f"use_{name}": name in trackers for name in LOCAL}
    attempt(tmp_path, policy, 1, FIRST, **chosen)
    directory = attempt(tmp_path, policy, 2, SECOND, **chosen)
    facts = directory.read().facts(directory.path, directory.read().options)
    for tracker in trackers:
        verdict = verify(directory, tracker, facts)
        assert verdict.is_equal, (tracker, verdict)
        drops = policy == "drop" and tracker in DROPPING
        assert losses(directory, tracker) == (LATER if drops else BOTH), tracker
        # Of the first start: train 6 to 9, rollouts 3 and 4, and the samples of 4.
        assert verdict.num_dropped == (7 if drops else 0), tracker
    rows = list(journal_rows(directory))
    assert sum("train/loss" in row.metrics for row in rows) == len(FIRST) + len(SECOND)
    marks = {row.metrics.get(f"{row.step_key.split('/')[0]}/attempt") for row in rows}
    assert marks == ({None} if policy == "keep" else {1, 2})


def test_a_wandb_server_keeps_both_attempts_and_tells_them_apart(
    wandb_server, tmp_path, monkeypatch
):
    monkeypatch.setenv("WANDB_BASE_URL", wandb_server.url)
    monkeypatch.setenv("WANDB_API_KEY", wandb_server.key)
    trackers = {f"use_{name}": name == "wandb" for name in LOCAL}
    for number, steps in ((1, FIRST), (2, SECOND)):
        directory = attempt(tmp_path, "drop", number, steps, wandb_mode="online", **trackers)
    facts = directory.read().facts(directory.path, directory.read().options)
    assert verify(directory, "wandb", facts).is_equal
    held = [row for row in wandb_server.rows("job") if "train/loss" in row]
    found = sorted((row["train/step"], row["train/attempt"]) for row in held)
    assert found == sorted([*((s, 1) for s in FIRST), *((s, 2) for s in SECOND)])


def test_each_start_has_the_policy_that_it_asked_for(tmp_path: Path) -> None:
    """A later `keep` brings nothing back that a `drop` dropped, and drops nothing itself."""
    alone = {f"use_{name}": name == "tensorboard" for name in LOCAL}
    for number, policy, steps in (
        (1, "keep", FIRST),
        (2, "drop", SECOND),
        (3, "keep", range(8, 9)),
    ):
        directory = attempt(tmp_path, policy, number, steps, **alone)
    facts = directory.read().facts(directory.path, directory.read().options)
    assert verify(directory, "tensorboard", facts).is_equal
    assert losses(directory, "tensorboard") == sorted([*LATER, (8, 308.0)])


def row(
    start: int, step: float, step_key: str = "train/step", *, is_replacing: bool = False
) -> Row:
    return Row(
        journal="j",
        seq=0,
        time_s=0.0,
        role=None,
        step_key=step_key,
        step=step,
        metrics={},
        start=start,
        is_replacing=is_replacing,
    )


def test_only_the_axis_and_the_earlier_starts_are_replaced() -> None:
    rewinds = Rewinds()
    assert not rewinds.is_replaced(row(1, 5))
    assert rewinds.note("train/step", 2, 5)
    assert not rewinds.note("train/step", 2, 6)
    assert rewinds.is_replaced(row(1, 5))
    assert rewinds.is_replaced(row(1, 5.5))
    assert not rewinds.is_replaced(row(1, 4))
    assert not rewinds.is_replaced(row(2, 7))
    assert not rewinds.is_replaced(row(1, 9, "eval/step"))
    assert rewinds.note("train/step", 4, 1)
    assert rewinds.is_replaced(row(2, 7))
    assert not rewinds.is_replaced(row(4, 7))


def test_it_follows_from_the_journals_whatever_their_order(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "abc")
    directory.create()
    directory.start(run_file())
    for name, start, policy, steps in (
        ("z", 1, "keep", range(10)),
        ("a", 3, "drop", (9, 7, 8)),
        ("m", 2, "mark", (0, 1)),
        ("k", 3, "drop", (6,)),
        ("bad", 2, "<nothing>", (0,)),
    ):
        opening = Opening(run_id="abc", journal=name, role=None, is_primary=False, host="h", pid=1,
                          start=start, time_s=0.0, rewind=policy)  # fmt: skip
        journal = Journal(directory.journals, name)
        journal.append(encode("open", opening.to_body()))
        for step in steps:
            body = {"time_s": 1.0, "step_key": "train/step", "step": step, "metrics": {}}
            journal.append(encode("row", body))
    rewinds = rewinds_of(directory)
    assert rewinds.end("train/step", 1) == 6
    assert [row.step for row in rewinds.replaced_in(directory)] == [6, 7, 8, 9]


def test_the_page_and_the_samples_show_the_later_attempt(tmp_path: Path) -> None:
    none = {f"use_{name}": False for name in LOCAL}
    for policy, num_tables, num_points in (("mark", 2, len(BOTH)), ("drop", 1, len(LATER))):
        place = tmp_path / policy
        for number, steps in ((1, FIRST), (2, SECOND)):
            directory = attempt(place, policy, number, steps, **none)
        report = gather([directory], lambda num_rows: None)
        (chart,) = [c for g in report.groups for c in g.charts if c.title == "train/loss"]
        assert report.runs[0].num_sample_tables == num_tables
        assert len(sample_tables(directory)) == num_tables
        assert sum(line.num_points for line in chart.lines) == num_points


def test_points_that_a_tracker_holds_once_are_not_told_as_lost(tmp_path: Path) -> None:
    """MLflow keeps what two processes logged of one metric at one step in one millisecond, with one value, as one point."""
    directory = RunDirectory(tmp_path / "abc")
    directory.create()
    directory.start(run_file())
    for name in ("one", "other"):
        opening = Opening(run_id="abc", journal=name, role=None, is_primary=False, host="h", pid=1,
                          start=1, time_s=0.0)  # fmt: skip
        journal = Journal(directory.journals, name)
        journal.append(encode("open", opening.to_body()))
        metrics = {"train/attempt": 1, f"train/{name}": 0.5}
        body = {"time_s": 1.0, "step_key": "train/step", "step": 3, "metrics": metrics}
        journal.append(encode("row", body))
        journal.close()
    facts = directory.read().facts(directory.path, {})
    delivery = Delivery(
        Assignment(
            tracker="mlflow",
            directory=directory,
            facts=facts,
            writer=Writer(label="d", is_sync=True),
        )
    )
    delivery.start()
    delivery.stop(0, 100.0)
    assert delivery.wait().is_complete
    assert verify(directory, "mlflow", facts).is_equal


def test_a_run_that_is_delivered_afterwards_shows_the_later_attempt_too(tmp_path: Path) -> None:
    alone = {f"use_{name}": name == "tensorboard" for name in LOCAL}
    for number, steps in ((1, FIRST), (2, SECOND)):
        directory = attempt(tmp_path, "drop", number, steps, **alone, tracking_delivery="off")
    result = CliRunner().invoke(app, ["sync", str(directory.path)])
    assert result.exit_code == 0, result.output
    assert CliRunner().invoke(app, ["verify", str(directory.path)]).exit_code == 0
    assert losses(directory, "tensorboard") == LATER


class Stubborn(MemoryBackend):
    """The memory tracker, which fails to drop rows now and then, after some of them."""

    name = "stubborn"
    chance = random.Random(7)

    def drop(self, rows: Iterable[Row]) -> None:
        wanted = list(rows)
        if self.chance.random() < 0.3:
            super().drop(wanted[: len(wanted) // 2])
            raise TryAgain("not now")
        super().drop(wanted)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_arrives_when_and_whoever_delivers(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of all starts come in any order, also late ones of the first; deliveries end and others go on."""
    monkeypatch.setitem(BACKENDS, "stubborn", Tracker("tests.delivery.test_rewind:Stubborn"))
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.01)
    memory.forget()
    chance = random.Random(seed)
    directory = RunDirectory(tmp_path / "abc")
    directory.create()
    directory.start(run_file())
    journals = []
    for number, policy in enumerate(("drop", "drop", "mark", "drop")):
        name = f"j{chance.random()}"
        opening = Opening(run_id="abc", journal=name, role="actor", is_primary=False, host="h",
                          pid=1, start=1 + number, time_s=0.0, rewind=policy)  # fmt: skip
        journals.append(Journal(directory.journals, name))
        journals[-1].append(encode("open", opening.to_body()))
    facts = directory.read().facts(directory.path, {})
    for label in range(6):
        for _ in range(chance.randrange(40)):
            axis = chance.choice(["train/step", "eval/step"])
            body = {"time_s": 1.0, "step_key": axis, "step": chance.randrange(30), "metrics": {}}
            chance.choice(journals).append(encode("row", body))
        writer = Writer(label=str(label))
        delivery = Delivery(
            Assignment(tracker="stubborn", directory=directory, facts=facts, writer=writer)
        )
        delivery.start()
        delivery.stop(0, 10.0)
        assert delivery.wait().is_complete
        verdict = verify(directory, "stubborn", facts)
        assert verdict.is_equal
    assert verdict.num_dropped
    assert len(memory.RUNS["abc"].rows) == verdict.num_rows
