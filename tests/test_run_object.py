"""One object for a job of one's own: made or joined, logged with, finished."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

import slime_logging
from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.verify import journal_config
from slime_logging.errors import RunConflictError, RunNotFoundError, SettingsError
from slime_logging.record.reading import read_opening
from slime_logging.record.run import RunDirectory

SECRET = "a9f3c1d7e5b2046881f0d3b7c6e4a2958d1f7c3b"
QUIET = {"system_metrics": "off"}
NUM_STARTS = int(os.environ.get("RUN_OBJECT_STARTS", "4"))
"""Starts of eight processes in the same instant: RUN_OBJECT_STARTS=100 tries them all."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "tracking"


def config(run: slime_logging.Run) -> dict:
    return dict(journal_config(RunDirectory(Path(run.directory)), ()).values)


def by_role(run: slime_logging.Run) -> dict:
    return {
        k: dict(v) for k, v in journal_config(RunDirectory(Path(run.directory)), ()).roles.items()
    }


def rows(directory: str) -> list[tuple]:
    return [
        (row.step_key, row.step, dict(row.metrics))
        for row in journal_rows(RunDirectory(Path(directory)))
    ]


def runs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/run.json"))


def join(**keywords):
    return slime_logging.join(**{"project": "rft", "name": "math-1", "options": QUIET} | keywords)


def test_a_role_has_a_prefix_an_axis_and_a_configuration_of_its_own(here):
    tree = {"lr": 1e-6, "judge": {"api_key": SECRET, "models": [{"name": "a"}]}}
    with join(config=tree, role="explorer") as run:
        run.log({"reward": 0.5, "rollout/accuracy": 0.4, "explorer/time": 2}, step=3)
        run.log({"accuracy": 0.7, "eval/pass": 1}, step=2.5, axis="eval")
        run.log_config({"model_hash": "ab12", "late": {"n": 1}})
    assert rows(run.directory) == [
        (
            "explorer/step",
            3,
            {"explorer/reward": 0.5, "explorer/rollout/accuracy": 0.4, "explorer/time": 2},
        ),
        ("explorer/eval/step", 2.5, {"explorer/eval/accuracy": 0.7, "explorer/eval/pass": 1}),
    ]
    held = config(run)
    assert held["explorer/lr"] == 1e-6
    assert held["explorer/judge.models.0.name"] == "a"
    assert held["explorer/judge.api_key"].startswith("<hidden")
    assert (held["explorer/model_hash"], held["explorer/late.n"]) == ("ab12", 1)
    assert SECRET not in "".join(p.read_text() for p in Path(run.directory).rglob("*.json*"))
    assert tree["judge"]["api_key"] == SECRET


def test_what_the_environment_calls_a_run_is_cleaned_and_bounded(here, monkeypatch):
    """Name, notes and kind of job by W&B's variables; what is said in the code stands above them."""
    monkeypatch.setenv("WANDB_NAME", "n\x1b[2J" + "a" * 10_000)
    monkeypatch.setenv("WANDB_NOTES", "why\x1b")
    monkeypatch.setenv("WANDB_JOB_TYPE", "train")
    with join(name=None) as run:
        held = RunDirectory(Path(run.directory)).read()
    assert held.name.startswith("n")
    assert "\x1b" not in held.name + held.options["tracking_notes"]
    assert len(held.name) < 1_000
    assert held.options["tracking_notes"].startswith("why")
    assert held.options["tracking_job_type"] == "train"
    with join() as run:
        assert RunDirectory(Path(run.directory)).read().name == "math-1"


@pytest.mark.parametrize(
    ("axis", "step_key"),
    [("eval/math", "e/eval/math/step"), ("/eval/", "e/eval/step"), (5, "e/5/step"), ("", "e/step")],
)
def test_an_axis_of_any_kind_names_its_step(here, axis, step_key):
    """No row is lost for the name of its axis."""
    with join(role="e") as run:
        run.log({"accuracy": 0.7}, step=1, axis=axis)
    assert rows(run.directory)[0][:2] == (step_key, 1)


def test_an_actor_is_a_role_like_any_other_and_differs_from_the_critic(here):
    with join(config={"lr": 1e-6}, role="actor") as actor:
        join(config={"lr": 1e-5}, role="critic").finish()
        join(config={"seed": 1}).finish()
    assert (config(actor)["actor/lr"], config(actor)["critic/lr"]) == (1e-6, 1e-5)
    assert config(actor)["seed"] == 1
    assert by_role(actor) == {"actor": {"lr": 1e-6}, "critic": {"lr": 1e-5}}


def test_without_a_role_there_is_no_prefix_and_steps_count_themselves(here):
    with join() as run:
        run.log({"loss": 1.0})
        run.log({"loss": 0.5, "step": 7})
        run.log({"loss": 0.4})
        run.log({"loss": 0.3, "step": 1}, step=9)
        run.log({"loss": 0.2}, step=float("nan"))
    assert [(key, step) for key, step, _ in rows(run.directory)] == [
        ("step", step) for step in (0, 7, 8, 9, 10)
    ]
    assert rows(run.directory)[3][2] == {"loss": 0.3, "step~2": 1}


def test_the_object_knows_where_it_is(here):
    with join(role="explorer", trackers={"tensorboard": {}, "memory": None}) as run:
        assert run.directory == str(here / run.id)
        assert set(run.urls) == {"tensorboard"}
        assert run.url == run.urls["tensorboard"]
        assert run.token == f"{run.id}@{run.directory}"
        assert run.is_primary and run.role == "explorer"


@pytest.mark.parametrize(
    ("error", "code"), [(None, 0), (ValueError("x"), 1), (SystemExit(3), 3), (SystemExit(), 0)]
)
def test_the_block_ends_with_the_code_that_it_deserves(here, error, code):
    from slime_logging.backends.memory import RUNS

    with suppress(ValueError, SystemExit), join(trackers=["memory"]) as run:
        run.log({"x": 1})
        if error is not None:
            raise error
    assert RUNS[run.id].exit_code == code
    run.log({"x": 2})
    run.finish()
    assert len(rows(run.directory)) == 1


def test_samples_are_a_table_over_the_role_s_axis(here):
    with join(role="explorer") as run:
        run.log_samples([{"prompt": "1+1", "reward": 1.0}, {"prompt": "2+2", "reward": 0}], step=4)
    ((key, step, metrics),) = rows(run.directory)
    assert (key, step) == ("explorer/step", 4)
    assert next(iter(metrics)).startswith("explorer/")


def test_who_has_the_same_name_is_in_the_same_run_while_it_lives(here):
    first = join(role="explorer")
    second = join(role="trainer")
    other = join(name="math-2")
    first.finish()
    third = join(role="evaluator")  # the trainer is still there
    assert second.id == third.id == first.id != other.id
    assert [run.is_primary for run in (first, second, third, other)] == [True, False, False, True]
    second.finish()
    third.finish()
    fresh = join(role="explorer")
    assert fresh.id != first.id


def test_a_second_job_of_the_same_name_is_told_whose_run_it_joins(here, capsys, caplog):
    """Aloud, as a warning where its rows mix with another's in one role; ranks are told apart."""
    with join(role="explorer") as first:
        join(role="trainer").finish()
        assert (
            f"joined the run {first.directory}, which has the name 'math-1'"
            in capsys.readouterr().err
        )
        assert "already" not in caplog.text
        join(role="explorer").finish()
    assert f"process {os.getpid()} on" in caplog.text
    assert "logs as role 'explorer' in this run already" in caplog.text


def test_a_run_that_ended_is_continued_by_its_id_or_by_resume(here):
    first = join()
    first.finish()
    again = join(resume=True)
    again.finish()
    assert again.id == first.id
    by_id = join(id=first.id, name="whatever")
    assert by_id.id == first.id and by_id.is_primary
    assert RunDirectory(Path(first.directory)).read().num_starts == 3


def test_the_token_joins_from_another_directory(here, tmp_path, monkeypatch):
    first = join()
    monkeypatch.setenv("SLIME_LOGGING_RUN", first.token)
    second = slime_logging.join(role="late", directory=tmp_path / "elsewhere", options=QUIET)
    assert (second.id, second.directory) == (first.id, first.directory)
    monkeypatch.setenv("SLIME_LOGGING_RUN", f"own-id@{here / 'own-id'}")
    made = slime_logging.join(options=QUIET)
    assert (made.id, made.directory, made.is_primary) == ("own-id", str(here / "own-id"), True)


def test_make_insists(here, monkeypatch):
    monkeypatch.setattr("slime_logging.session.meeting.JOIN_WAIT_S", 0.2)
    with pytest.raises(RunNotFoundError, match="math-1"):
        join(make=False)
    with pytest.raises(SettingsError, match="name="):
        join(make=False, name=None)
    first = join(make=True)
    assert join(make=False, role="a").id == first.id
    with pytest.raises(RunConflictError, match="lives already"):
        join(make=True)


def test_processes_of_one_torchrun_are_one_run_without_a_name(here, monkeypatch):
    for name, value in {
        "TORCHELASTIC_RUN_ID": "none",
        "MASTER_ADDR": "h",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    first = join(name=None)
    assert join(name=None, role="x").id == first.id
    monkeypatch.setenv("MASTER_PORT", "2")  # as after a restart, where the agents share no store
    assert join(name=None, role="y").id == first.id
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "another")
    assert join(name=None).id != first.id
    for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name)
    assert join(name=None).id != join(name=None).id


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"role": "a/b"}, "role 'a/b'"),
        ({"role": " "}, "role ' '"),
        ({"role": "process"}, "'process_worker'"),
        ({"trackers": ["wandbb"]}, "no tracker 'wandbb'"),
        ({"trackers": {"wandb": {"mod": "offline"}}}, "did you mean 'mode'"),
        ({"options": {"finish_timout": 3}}, "did you mean 'finish_timeout'"),
        ({"id": "../x"}, "run id"),
        ({"config": [1]}, "config is a list"),
    ],
)
def test_a_mistake_raises_at_the_start(here, keywords, words):
    with pytest.raises(SettingsError, match=words):
        join(**keywords)
    assert not runs(here)


def test_a_forked_child_logs_into_the_same_run(here):
    with join(role="explorer") as run:
        child = multiprocessing.get_context("fork").Process(target=run.log, args=({"x": 1}, 5))
        child.start()
        child.join()
        assert child.exitcode == 0
        run.log({"x": 2}, step=6)
    assert sorted(step for _, step, _ in rows(run.directory)) == [5, 6]


def _start(barrier, folder: str, number: int) -> None:
    barrier.wait()
    with join(config={"rank": number}, role=f"role{number}", directory=folder) as run:
        run.log({"x": number}, step=number)
        barrier.wait()  # nobody ends before everybody has joined


@pytest.mark.timeout(1200)
def test_of_eight_processes_in_the_same_instant_one_makes_the_run(tmp_path):
    context = multiprocessing.get_context("fork")
    for number in range(NUM_STARTS):
        folder, barrier = tmp_path / str(number), context.Barrier(8)
        jobs = [
            context.Process(target=_start, args=(barrier, str(folder), rank)) for rank in range(8)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        (path,) = runs(folder)
        openings = [read_opening(journal) for journal in RunDirectory(path).journal_paths()]
        assert sum(opening.is_primary for opening in openings) == 1
        assert len(openings) == 8 and len(rows(str(path))) == 8


LINES = {
    "spawn": """
        import multiprocessing, slime_logging
        def work(rank):
            with slime_logging.join({"lr": rank}, role=f"role{rank}", project="p", name="n") as run:
                for step in range(3): run.log({"loss": 1 / (step + 1)}, step=step)
        if __name__ == "__main__":
            with slime_logging.join(project="p", name="n"):
                with multiprocessing.get_context("spawn").Pool(4) as pool:
                    pool.map(work, range(4), 1)
        """,
    "torchrun": """
        import os, slime_logging
        rank = int(os.environ["RANK"])
        with slime_logging.join({"lr": rank}, role=f"role{rank}", project="p", name="n") as run:
            for step in range(3): run.log({"loss": 1 / (step + 1)}, step=step)
        """,
    "ray": """
        import os, ray
        @ray.remote(num_cpus=0)
        def work(rank):
            import slime_logging
            with slime_logging.join({"lr": rank}, role=f"role{rank}", project="p", name="n", directory=f"{DIR}/{rank}") as run:
                for step in range(3): run.log({"loss": 1 / (step + 1)}, step=step)
                while len(slime_logging_journals(run)) < 4: pass
        DIR = os.path.abspath("tracking")
        def slime_logging_journals(run): return os.listdir(run.directory + "/journals")
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
        ray.get([work.remote(rank) for rank in range(4)])
        """,
}


@pytest.mark.parametrize("way", LINES)
def test_a_job_of_four_processes_needs_at_most_six_lines_of_ours(way, here, tmp_path):
    text = textwrap.dedent(LINES[way])
    assert (
        sum(
            "slime_logging." in line or "run.log" in line or "import slime_logging" in line
            for line in text.splitlines()
        )
        <= 6
    )
    (tmp_path / "job.py").write_text(text)
    start = {"torchrun": ["-m", "torch.distributed.run", "--nproc-per-node=4"]}.get(way, [])
    environ = os.environ | {"SLIME_LOGGING_SYSTEM_METRICS": "off", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *start, "job.py"], env=environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = [file.parent for file in here.rglob("run.json")]
    assert {name for _, _, metrics in rows(str(path)) for name in metrics} == {
        f"role{rank}/loss" for rank in range(4)
    }
    assert len(rows(str(path))) == 12


@pytest.mark.parametrize("kind", ["numpy", "torch", "text", "float"])
def test_a_step_of_any_kind_is_a_number(here, kind):
    """As trainers have them; a whole one is a whole number in the row."""
    import numpy
    import torch

    step = {"numpy": numpy.int64(3), "torch": torch.tensor(3.0), "text": "3", "float": 3.0}[kind]
    with join() as run:
        run.log({"loss": 1.0}, step=step)
        run.log({"loss": 1.0})
    assert [row[1] for row in rows(run.directory)] == [3, 4]
