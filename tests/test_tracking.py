"""The public calls: strict at the start, quiet in the loop, bounded at the end, and nothing at all when tracking is
off.
"""

from __future__ import annotations

import copy
import gc
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from argparse import Namespace
from pathlib import Path

import pytest

import slime_logging as sl
from slime_logging.backends import memory
from slime_logging.delivery.status import journal_config, journal_rows, run_status
from slime_logging.demo.namespace import grpo_namespace, ppo_namespace
from slime_logging.record.run import RunDirectory

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"

ROLES = """
megatron:
  - role: actor
    overrides: {lr: 2.0e-6}
  - role: critic
    overrides: {lr: 1.0e-5, weight_decay: 0.0}
"""


def job(tmp_path: Path, **changes: object) -> Namespace:
    args = ppo_namespace()
    args.use_wandb = False
    args.use_memory = True
    args.wandb_run_id = None
    args.tracking_dir = str(tmp_path / "tracking")
    args.tracking_system_metrics = "off"
    for name, value in changes.items():
        setattr(args, name, value)
    memory.forget()
    return args


def roles_file(tmp_path: Path) -> str:
    path = tmp_path / "roles.yaml"
    path.write_text(ROLES)
    return str(path)


def held(args: Namespace) -> memory.MemoryRun:
    return memory.RUNS[args.wandb_run_id]


def directory(args: Namespace) -> RunDirectory:
    return RunDirectory(Path(args.tracking_run_dir))


def test_a_ppo_job_is_one_run_with_the_configuration_of_both_roles(tmp_path):
    args = job(tmp_path, megatron_config_path=roles_file(tmp_path))
    sl.init_tracking(args)
    for role in ("actor", "critic"):
        role_args = sl.parse_megatron_role_args(args, args.megatron_config_path, role)
        sl.init_tracking(role_args, primary=False, role=role)
        sl.log(role_args, {"train/step": 3, f"train/{role}-loss": 0.5}, "train/step")
    sl.finish_tracking(args)
    config = held(args).config
    assert (config.values["lr"], config.values["critic/lr"]) == (2e-6, 1e-5)
    assert (config.values["weight_decay"], config.values["critic/end_weight_decay"]) == (
        args.weight_decay,
        0.0,
    )
    assert config.values["overrides/critic/lr"]["base"] == args.lr
    assert config.values["overrides/actor/lr"]["value"] == 2e-6
    assert set(config.roles) == {"actor", "critic"}
    assert [(row.role, row.step) for row in held(args).rows] == [("actor", 3), ("critic", 3)]
    assert held(args).exit_code == 0


def test_the_primary_alone_knows_every_roles_configuration(tmp_path):
    args = job(tmp_path, megatron_config_path=roles_file(tmp_path))
    sl.init_tracking(args)
    sl.finish_tracking(args)
    alone = dict(held(args).config.values)
    for name in vars(args):
        if name != "tracking_run_dir":
            assert name in alone, name
            assert f"critic/{name}" in alone, name
    assert alone["wandb_run_id"] == alone["critic/wandb_run_id"] == args.wandb_run_id


def test_a_grpo_job_has_no_critic_key(tmp_path):
    args = grpo_namespace()
    for name, value in vars(job(tmp_path)).items():
        if name.startswith(("use_", "tracking_", "wandb_run")) and name != "use_critic":
            setattr(args, name, value)
    sl.init_tracking(args)
    sl.init_tracking(args, primary=False, role="actor")
    sl.finish_tracking(args)
    sl.finish_tracking(args)
    assert not [key for key in held(args).config.values if "critic/" in key]


def test_the_arguments_are_not_changed_but_for_the_runs_address(tmp_path):
    args = job(tmp_path, megatron_config_path=roles_file(tmp_path))
    before = {name: copy.deepcopy(value) for name, value in vars(args).items()}
    sl.init_tracking(args)
    sl.finish_tracking(args)
    changed = {
        name for name, value in vars(args).items() if name not in before or before[name] != value
    }
    assert changed == {"wandb_run_id", "tracking_run_dir"}


def test_with_everything_off_nothing_is_imported_written_or_raised(tmp_path):
    code = """
        import os, sys
        from argparse import Namespace
        import slime_logging as sl
        args = Namespace(lr=1.0, use_wandb=False)
        sl.init_tracking(args); sl.init_tracking(args, primary=False, role="critic")
        sl.log(args, {"a": 1}, "missing"); sl.log_config(args, {"x": 1}); sl.finish_tracking(args)
        sl.init_wandb_primary(args); sl.init_wandb_secondary(args, "critic")
        assert args == Namespace(lr=1.0, use_wandb=False, wandb_run_id=None), args
        vendors = {"wandb", "torch", "ray", "megatron", "mlflow", "swanlab", "trackio", "tensorboard"}
        print(sorted(set(sys.modules) & vendors))
        print(os.listdir("."))
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True
    )
    assert (out.stdout, out.stderr) == ("[]\n[]\n", "")


def test_wandb_mode_disabled_means_nothing_at_all(tmp_path):
    args = job(tmp_path, use_memory=False, use_wandb=True, wandb_mode="disabled", tracking_dir=None)
    sl.init_tracking(args)
    sl.log(args, {"train/step": 1}, "train/step")
    assert (args.wandb_run_id, list(tmp_path.iterdir())) == (None, [])


def test_a_namespace_with_none_of_the_flags_works(tmp_path):
    sl.init_tracking(Namespace(lr=1.0))
    sl.finish_tracking(Namespace())


def test_a_row_without_its_step_key_is_kept_at_the_last_step_of_its_axis(tmp_path, caplog):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.log(args, {"train/loss": 0.5}, "train/step")
    sl.log(args, {"train/step": 7, "train/loss": 1.0}, "train/step")
    sl.log(args, {"eval/step": 2, "eval/x": 1.0}, "eval/step")
    sl.log(args, {"train/loss": 2.0}, "train/step")
    sl.finish_tracking()
    rows = [(row.step_key, row.step, row.metrics.get("train/loss")) for row in held(args).rows]
    assert rows == [
        ("train/step", 0, 0.5),
        ("train/step", 7, 1.0),
        ("eval/step", 2, None),
        ("train/step", 7, 2.0),
    ]
    assert caplog.text.count("train/step is missing in a row") == 1
    assert "train/loss" in caplog.text


def test_a_process_that_the_environment_switches_nothing_on_in_joins_by_its_arguments(
    tmp_path, monkeypatch
):
    args = Namespace(lr=1.0, use_wandb=False, wandb_run_id=None)
    monkeypatch.setenv("SLIME_LOGGING_DIR", str(tmp_path))
    sl.init_tracking(args)
    monkeypatch.delenv("SLIME_LOGGING_DIR")
    sl.init_tracking(args, primary=False, role="critic")
    assert len(directory(args).journal_paths()) == 2


def test_where_the_engines_metrics_are_stands_in_the_configuration(tmp_path):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.update_tracking_open_metrics(args, None)
    sl.update_tracking_open_metrics(args, "http://10.0.0.1:3000")
    sl.define_step_key_metric_group(prefix="a/train", step_key="a/train/step")
    sl.finish_tracking(args)
    config = held(args).config.values
    assert config["open_metrics/sgl_engine"] == "http://10.0.0.1:3000/engine_metrics"


def test_a_process_without_a_role_is_called_after_the_module_that_had_it_join(tmp_path):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.init_tracking(copy.copy(args), primary=False)
    names = sorted(path.name.partition("-vm")[0] for path in directory(args).journal_paths())
    assert [name for name in names if name.startswith("test_tracking")]


def test_there_is_no_critic_where_the_estimator_trains_none(tmp_path):
    args = job(tmp_path, use_critic=True, advantage_estimator="grpo")
    sl.init_tracking(args)
    sl.finish_tracking(args)
    assert not [key for key in held(args).config.values if "critic/" in key]


def test_logging_where_nothing_was_started_does_nothing():
    sl.log(Namespace(), {"train/step": 1}, "train/step")
    sl.finish_tracking(Namespace())


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"tracking_writer": "both"}, "--tracking-writer 'both'.*auto, single, shared"),
        ({"tracking_finish_timeout": "soon"}, "--tracking-finish-timeout"),
        ({"use_wandb": True, "wandb_mode": "onlin"}, "--wandb-mode 'onlin'"),
        ({"use_wandb": True, "wandb_mode": "online"}, "WANDB_API_KEY"),
        ({"wandb_run_id": "../x"}, "run id"),
        ({"tracking_system_metrics": "often"}, "--tracking-system-metrics"),
    ],
)
def test_a_mistake_in_a_flag_raises_at_the_start_with_the_fix(tmp_path, changes, match):
    args = job(tmp_path, **changes)
    with pytest.raises(sl.SettingsError, match=match):
        sl.init_tracking(args)
    assert not (tmp_path / "tracking").exists()


def test_a_mistake_in_the_role_file_raises_before_anything_is_made(tmp_path):
    path = tmp_path / "roles.yaml"
    path.write_text("megatron:\n  - role: critic\n    overrides: {learning_rate: 1}\n")
    args = job(tmp_path, megatron_config_path=str(path))
    with pytest.raises(sl.RoleConfigError, match="learning_rate"):
        sl.init_tracking(args)
    assert not (tmp_path / "tracking").exists()


def test_a_tracker_whose_package_is_missing_is_an_error_that_names_the_extra(tmp_path, monkeypatch):
    from slime_logging.backends.table import BACKENDS, Package, Tracker

    package = Package("no_such_package", "no-such-package", "1")
    monkeypatch.setitem(BACKENDS, "trackio", Tracker("nowhere:Nothing", package))
    with pytest.raises(sl.MissingBackendError, match=r"\.\[trackio\]"):
        sl.init_tracking(job(tmp_path, use_trackio=True))


def test_an_unwritable_directory_is_an_error_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        sl.init_tracking(job(tmp_path, tracking_dir=str(tmp_path / "file" / "below")))


def test_a_living_primary_keeps_its_run_id(tmp_path):
    args = job(tmp_path, wandb_run_id="mine")
    sl.init_tracking(args)
    code = "import slime_logging as sl, sys; from argparse import Namespace\n"
    code += f"sl.init_tracking(Namespace(use_memory=True, wandb_run_id='mine', tracking_dir={args.tracking_dir!r}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "RunConflictError" in out.stderr
    assert f"pid {os.getpid()}" in out.stderr


def test_calling_init_again_changes_nothing(tmp_path):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.init_tracking(args)
    for _ in range(3):
        sl.init_tracking(args, primary=False, role="critic")
    assert len(directory(args).journal_paths()) == 2


def test_the_same_id_continues_the_run_and_records_what_changed(tmp_path):
    args = job(tmp_path, wandb_run_id="again", lr=1.0)
    sl.init_tracking(args)
    sl.log(args, {"train/step": 1, "train/x": 1.0}, "train/step")
    sl.finish_tracking(args)
    second = copy.copy(args)
    second.lr = 3.0
    sl.init_tracking(second)
    sl.log(second, {"train/step": 1, "train/x": 2.0}, "train/step")
    sl.finish_tracking(second)
    config = held(second).config.values
    assert (config["lr"], config["resume/2/lr"]) == (3.0, {"before": 1.0, "now": 3.0})
    assert [row.metrics["train/x"] for row in held(second).rows] == [1.0, 2.0]


def test_the_newest_run_can_be_resumed_by_flag(tmp_path):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.finish_tracking(args)
    again = copy.copy(args)
    again.wandb_run_id, again.tracking_resume = None, True
    sl.init_tracking(again)
    assert again.wandb_run_id == args.wandb_run_id


def test_values_known_late_go_to_their_role(tmp_path):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.log_config(args, {"num_rollout": 5, "vocab": {"size": 128}})
    sl.log_config(args, {"num_params": 10}, role="critic")
    sl.finish_tracking(args)
    values = held(args).config.values
    assert (values["num_rollout"], values["vocab"], values["critic/num_params"]) == (
        5,
        {"size": 128},
        10,
    )


def test_odd_values_in_metrics_are_kept_in_the_nearest_form(tmp_path):
    import numpy
    import torch

    args = job(tmp_path)
    sl.init_tracking(args)
    metrics = {
        "train/step": torch.tensor(4),
        "train/tensor": torch.tensor(0.5),
        "train/numpy": numpy.float32(0.25),
        "train/nan": float("nan"),
        "train/inf": -math.inf,
        "train/int": 2**60,
        "train/huge": 2**100,
        "train/text": "hello",
        "train/flag": True,
        "train/none": None,
        "train/list": [1, 2.5],
        "train/object": object(),
    }
    before = dict(metrics)
    sl.log(args, metrics, "train/step")
    assert metrics == before or metrics.keys() == before.keys()
    sl.finish_tracking(args)
    (row,) = held(args).rows
    assert row.step == 4
    assert row.metrics["train/tensor"] == 0.5
    assert row.metrics["train/numpy"] == 0.25
    assert math.isnan(row.metrics["train/nan"])
    assert row.metrics["train/inf"] == -math.inf
    assert row.metrics["train/int"] == 2**60
    assert row.metrics["train/huge"] == 2.0**100
    assert (row.metrics["train/text"], row.metrics["train/flag"], row.metrics["train/none"]) == (
        "hello",
        True,
        None,
    )
    assert row.metrics["train/list"] == [1, 2.5]
    assert "object" in row.metrics["train/object"]


def test_what_a_jobs_own_signal_handler_raises_while_we_run_is_the_jobs(tmp_path):
    def leave(*_: object) -> None:
        raise TimeoutError("the job's own limit")

    args = job(tmp_path)
    sl.init_tracking(args)
    before = signal.signal(signal.SIGVTALRM, leave)  # SIGALRM is the test's own time limit
    gc.disable()  # what a handler raises within a collector's callback (Hypothesis has one) is lost
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
        with pytest.raises(TimeoutError, match="own limit"):
            for _ in range(1_000_000):
                sl.log(args, {"train/step": 1, "train/x": 0.5}, "train/step")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("step", ["text", float("nan"), None, [1]])
def test_a_step_that_is_no_number_does_not_cost_the_row(tmp_path, step):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.log(args, {"train/step": step, "train/x": 1}, "train/step")
    sl.finish_tracking(args)
    assert [(row.step, row.metrics["train/x"]) for row in held(args).rows] == [(0, 1)]


def test_no_secret_reaches_the_directory_or_the_tracker(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_" + "q" * 34)
    args = job(tmp_path, wandb_key=KEY, train_env_vars=f'{{"WANDB_API_KEY": "{KEY}"}}')
    sl.init_tracking(args)
    sl.log(args, {"train/step": 1, "train/note": f"key {KEY} token hf_{'q' * 34}"}, "train/step")
    sl.log_config(args, {"url": f"https://user:{KEY}@host"})
    sl.finish_tracking(args)
    everything = b"".join(
        p.read_bytes() for p in Path(args.tracking_run_dir).rglob("*") if p.is_file()
    )
    assert KEY.encode() not in everything
    assert b"q" * 34 not in everything
    assert KEY not in repr(held(args))
    assert held(args).config.values["wandb_key"] == "<hidden: wandb_key>"
    assert "wandb_key" in held(args).config.values["redacted_keys"]


def test_a_name_that_was_used_stays_whatever_is_learned_later(tmp_path):
    token = "ghp_" + "Zq7" * 12
    args = job(tmp_path)
    sl.init_tracking(args)
    first = {"train/step": 1, f"train/{token[4:]}": 1.0}
    sl.log(args, first, "train/step")
    sl.log(args, {"train/step": 2, "train/note": f"clone with {token}"}, "train/step")
    from slime_logging.session import lifetime

    lifetime._sessions[-1].redactor.learn("late_key", token[4:])
    sl.log(args, {**first, "train/step": 3}, "train/step")
    sl.finish_tracking(args)
    first_row, told, last_row = held(args).rows
    assert (list(first_row.metrics), told.metrics["train/note"].count(token)) == (
        list(last_row.metrics),
        0,
    )


def test_the_context_manager_ends_the_run_with_the_code_it_deserves(tmp_path):
    args = job(tmp_path)
    with sl.tracked(args):
        sl.log(args, {"train/step": 1}, "train/step")
    assert held(args).exit_code == 0
    for error, code in (
        (ValueError("x"), 1),
        (SystemExit(3), 3),
        (SystemExit(), 0),
        (KeyboardInterrupt(), 1),
    ):
        args = job(tmp_path)
        with pytest.raises(type(error)), sl.tracked(args):
            raise error
        assert held(args).exit_code == code


JOB = """
    import os, sys, time, signal
    from argparse import Namespace
    import slime_logging as sl
    args = Namespace(use_memory=True, tracking_dir=sys.argv[1], wandb_run_id="job", lr=1.0)
    args.tracking_system_metrics = "off"
    sl.init_tracking(args)
    for step in range(10):
        sl.log(args, {"train/step": step, "train/x": 0.5}, "train/step")
"""


def run_job(tmp_path: Path, then: str) -> subprocess.CompletedProcess:
    code = textwrap.dedent(JOB) + textwrap.dedent(then)
    return subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("then", "return_code", "exit_code"),
    [
        ("", 0, None),
        ("raise RuntimeError('training broke')", 1, 1),
        ("sys.exit(0)", 0, None),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)", -15, None),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, None),
        ("os._exit(7)", 7, None),
    ],
    ids=["end", "exception", "exit", "sigterm", "sigkill", "hard-exit"],
)
def test_however_a_process_ends_its_rows_are_there(tmp_path, then, return_code, exit_code):
    done = run_job(tmp_path, then)
    assert done.returncode == return_code, done.stderr
    status = run_status(RunDirectory(tmp_path / "job"))
    assert (status.num_rows, status.journals[0].num_torn_bytes) == (10, 0)
    assert status.journals[0].exit_code == exit_code


def test_a_forked_child_writes_a_journal_of_its_own(tmp_path):
    done = run_job(
        tmp_path,
        """
        if os.fork() == 0:
            for step in range(5):
                sl.log(args, {"train/step": 100 + step, "train/x": 1.0}, "train/step")
            sl.finish_tracking(args)
            os._exit(0)
        os.wait()
        sl.log(args, {"train/step": 10, "train/x": 0.5}, "train/step")
        sl.finish_tracking(args)
        import slime_logging.backends.memory as memory
        print(sorted(row.step for row in memory.RUNS["job"].rows))
        """,
    )
    assert done.stdout == f"{[*range(11), *range(100, 105)]}\n", done.stderr
    directory = RunDirectory(tmp_path / "job")
    rows = list(journal_rows(directory))
    assert len({row.journal for row in rows}) == 2
    assert [row.seq for row in rows if row.step < 100] == sorted(
        row.seq for row in rows if row.step < 100
    )


def test_a_child_that_is_still_alive_does_not_keep_the_run_locked(tmp_path):
    code = textwrap.dedent(JOB) + "if os.fork() == 0: time.sleep(20); os._exit(0)\nos._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=30, capture_output=False)
    locks = RunDirectory(tmp_path / "job").locks
    deadline = (
        time.monotonic() + 10
    )  # the child may still be about to let go when its parent is gone already
    while locks.has_living_primary and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not locks.has_living_primary


def test_spawned_processes_join_by_the_pickled_arguments(tmp_path):
    import multiprocessing

    args = job(tmp_path)
    sl.init_tracking(args)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(args, role)) for role in ("actor", "critic")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    sl.finish_tracking(args)
    assert sorted((row.role, row.step) for row in held(args).rows) == [
        *(("actor", step) for step in range(20)),
        *(("critic", step) for step in range(20)),
    ]


def work(args: Namespace, role: str) -> None:
    sl.init_tracking(args, primary=False, role=role)
    for step in range(20):
        sl.log(args, {"train/step": step, "train/x": 1.0}, "train/step")
    os._exit(0)  # as ray.kill would end it: no finish, no exit handlers


def test_a_broken_journal_is_told_once_and_rows_go_on_in_another_one(tmp_path, caplog):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.log(args, {"train/step": 0, "train/x": 1}, "train/step")
    from slime_logging.session import lifetime

    session = lifetime.session_of(args)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, session.recorder.journal._journal._fd)
    os.close(full)
    for step in range(1, 6):
        sl.log(args, {"train/step": step, "train/x": 1}, "train/step")
    sl.finish_tracking(args)
    assert sorted(row.step for row in held(args).rows) == list(range(6))
    assert len([r for r in caplog.records if "cannot write" in r.message]) == 1


def test_the_run_is_announced_in_one_line(tmp_path, capfd):
    args = job(tmp_path)
    sl.init_tracking(args)
    (line,) = [text for text in capfd.readouterr().err.splitlines() if "slime_logging" in text]
    assert args.wandb_run_id in line
    assert args.tracking_dir in line


def test_what_is_left_is_told_with_the_command_that_delivers_it(tmp_path, monkeypatch, capfd):
    from slime_logging.backends.table import BACKENDS, Tracker
    from slime_logging.errors import TryAgain
    from tests.delivery.trackers import new_plan

    monkeypatch.setitem(BACKENDS, "memory", Tracker("tests.delivery.trackers:FaultyBackend"))
    new_plan().opens = [TryAgain("nobody there")] * 1000
    args = job(tmp_path, tracking_finish_timeout=0.2)
    sl.init_tracking(args)
    sl.log(args, {"train/step": 0}, "train/step")
    begun = time.monotonic()
    sl.finish_tracking(args)
    assert time.monotonic() - begun < 10
    error = capfd.readouterr().err
    assert "1 rows" in error
    assert f"slime-logging sync {args.tracking_run_dir}" in error


def test_a_user_s_own_signal_handler_is_left_alone(tmp_path):
    def mine(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, mine)
    try:
        sl.init_tracking(job(tmp_path))
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_environment_variables_are_logged_by_list_only(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("MY_CLUSTER", "blue")
    monkeypatch.setenv("OTHER", "x")
    args = job(tmp_path, tracking_env=["MY_CLUSTER"])
    sl.init_tracking(args)
    config = journal_config(directory(args), ("actor",)).values
    assert config["env_vars"] == {"SLURM_JOB_ID": "42", "MY_CLUSTER": "blue"}


@pytest.mark.parametrize("kind", ["dict", "frozen model"])
def test_arguments_that_can_carry_nothing_are_an_error_with_the_fix(kind):
    import pydantic

    class Frozen(pydantic.BaseModel):
        use_wandb: bool = True

    args = {"dict": {"use_wandb": True}, "frozen model": Frozen()}
    with pytest.raises(sl.SettingsError, match=r"argparse\.Namespace"):
        sl.init_tracking(args[kind])


def test_an_object_with_attributes_is_as_good_as_a_namespace(tmp_path):
    import pydantic

    class Arguments(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        use_memory: bool = True
        tracking_dir: str = str(tmp_path)
        lr: float = 0.5

    args = Arguments()
    sl.init_tracking(args)
    sl.finish_tracking(args)
    assert held(args).config.values["lr"] == 0.5


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs a second user")
def test_another_users_directory_is_a_clear_error(tmp_path):
    (tmp_path / "runs").mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.seteuid(65534)
            RunDirectory(tmp_path / "runs" / "one").create()
        except sl.SettingsError as error:
            code = 0 if "--tracking-dir" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
