"""Directories of one run from hosts that share no disk: merged, or verified side by side."""

from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slime_logging as sl
from slime_logging.cli.app import app
from slime_logging.record.run import RunDirectory

STEPS = 30


@pytest.fixture
def hosts(tmp_path: Path) -> tuple[Path, Path]:
    """The run's directory on the driver's host, and what the critic's host kept; TensorBoard off the critic's."""
    driver = Namespace(
        lr=1e-6,
        use_critic=True,
        use_tensorboard=True,
        wandb_run_id="job",
        tracking_dir=str(tmp_path / "host1"),
        tracking_system_metrics="off",
    )
    sl.init_tracking(driver)
    critic = Namespace(**{**vars(driver), "tracking_dir": str(tmp_path / "host2"), "lr": 5e-6})
    critic.tracking_run_dir = "/nowhere/host1/job"
    sl.init_tracking(critic, primary=False, role="critic")
    actor = Namespace(**vars(driver))
    sl.init_tracking(actor, primary=False, role="actor")
    for step in range(STEPS):
        sl.log(actor, {"train/step": step, "train/loss": 0.1}, "train/step")
        sl.log(critic, {"train/step": step, "train/critic-loss": 0.2}, "train/step")
    for args in (critic, actor, driver):
        sl.finish_tracking(args)
    return tmp_path / "host1/job", tmp_path / "host2/job"


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


def test_the_run_without_the_other_hosts_rows_is_not_equal_and_says_who_is_missing(hosts):
    code, text = run("verify", hosts[0])
    assert code == 1
    assert "critic" in text


def test_a_host_without_a_way_to_the_run_says_so_at_the_join(tmp_path, caplog):
    args = Namespace(
        use_tensorboard=True, wandb_run_id="job", tracking_run_dir="/nowhere/job",
        tracking_dir=str(tmp_path / "here"), tracking_system_metrics="off",
    )  # fmt: skip
    sl.init_tracking(args, primary=False, role="critic")
    (text,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    for word in ("role critic", str(tmp_path / "here" / "job"), "slime-logging merge"):
        assert word in text


def test_the_primary_says_at_its_end_who_never_joined(tmp_path, caplog):
    args = Namespace(
        use_critic=True, use_memory=True, tracking_dir=str(tmp_path), tracking_system_metrics="off"
    )
    sl.init_tracking(args)
    sl.finish_tracking(args)
    assert "role critic" in caplog.text


def test_a_second_process_of_the_host_is_no_process_of_the_run_itself(tmp_path, caplog):
    """Where the path is the same on every host, the directory of the first one looks like the run's own."""
    args = Namespace(
        use_tensorboard=True, wandb_run_id="job", tracking_run_dir=str(tmp_path / "t" / "job"),
        tracking_dir=str(tmp_path / "t"), tracking_system_metrics="off",
    )  # fmt: skip
    (tmp_path / "t").mkdir()
    sl.init_tracking(Namespace(**vars(args)), primary=False, role="critic")
    sl.init_tracking(Namespace(**vars(args)), primary=False, role="rollout")
    assert caplog.text.count("does not see the run's directory") == 2


def test_merge_sync_verify(hosts):
    code, text = run("merge", *hosts, "--into", hosts[0])
    assert code == 0, text
    assert run("sync", hosts[0])[0] == 0
    code, text = run("verify", hosts[0])
    assert code == 0, text
    before = sorted((p.name, p.read_bytes()) for p in (hosts[0] / "journals").iterdir())
    code, text = run("merge", hosts[1], "--into", hosts[0])
    assert code == 0
    assert ": 0 bytes taken" in text
    assert before == sorted((p.name, p.read_bytes()) for p in (hosts[0] / "journals").iterdir())


def test_verify_over_several_directories_reads_them_as_one_run(hosts):
    run("merge", *hosts, "--into", hosts[0])
    run("sync", hosts[0])
    for path in (hosts[0] / "journals").glob("critic*"):
        path.unlink()
    assert run("verify", hosts[0])[0] == 1
    code, text = run("verify", *hosts)
    assert code == 0, text
    assert run("verify", *reversed(hosts))[0] == 0


def test_a_new_directory_is_made(hosts, tmp_path):
    code, text = run("merge", *hosts, "--into", tmp_path / "new/job")
    assert code == 0, text
    merged = RunDirectory(tmp_path / "new/job")
    assert merged.read().outpost_of is None
    assert len(merged.journal_paths()) >= 3


def test_a_journal_that_goes_on_differently_is_refused_by_both(hosts, tmp_path):
    other = tmp_path / "other/job"
    shutil.copytree(hosts[1], other)
    path = next((other / "journals").glob("critic*"))
    path.write_bytes(path.read_bytes()[:-10] + b"0123456789 and more")
    run("merge", hosts[1], "--into", hosts[0])
    code, text = run("merge", other, "--into", hosts[0])
    assert code == 1
    assert "refused" in text
    code, text = run("verify", hosts[0], other)
    assert code == 1
    assert path.name in text.replace("\n", "")


def test_directories_of_two_runs_are_refused(hosts, tmp_path):
    args = Namespace(
        wandb_run_id="other", tracking_dir=str(tmp_path), tracking_system_metrics="off"
    )
    sl.init_tracking(args)
    sl.finish_tracking(args)
    for command in (
        ("merge", hosts[0], tmp_path / "other", "--into", hosts[0]),
        ("verify", hosts[0], tmp_path / "other"),
    ):
        code, text = run(*command)
        assert code == 1
        assert "only directories of one run" in text.replace("\n", " ")


def test_a_job_of_roles_that_nobody_expected_misses_nobody(tmp_path, caplog):
    """An explorer and a trainer: slime's actor is not one of them."""
    args = Namespace(
        use_tensorboard=True,
        tracking_dir=str(tmp_path),
        wandb_run_id="job",
        tracking_system_metrics="off",
    )
    sl.init_tracking(args)
    explorer = Namespace(**vars(args))
    sl.init_tracking(explorer, primary=False, role="explorer")
    sl.log(explorer, {"explorer/step": 1, "explorer/x": 2}, "explorer/step")
    sl.finish_tracking(explorer)
    sl.finish_tracking(args)
    assert "expected of this job" not in caplog.text
    code, text = run("verify", tmp_path / "job")
    assert code == 0, text
