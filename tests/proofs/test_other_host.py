"""A process on a host that does not see the run's directory: it keeps a journal there, and delivers that one itself."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slime_logging as sl
from slime_logging.cli.app import app
from slime_logging.delivery.status import journal_rows, run_status
from slime_logging.record.run import RunDirectory
from slime_logging.tracking import init_wandb_secondary
from tests.wandb_server.control import WandbServer


@pytest.fixture
def primary(tmp_path: Path, wandb_server: WandbServer) -> Namespace:
    return Namespace(
        lr=1e-6,
        use_critic=True,
        use_wandb=True,
        wandb_mode="online",
        wandb_key=wandb_server.key,
        wandb_host=wandb_server.url,
        wandb_project="p",
        wandb_run_id="job",
        tracking_dir=str(tmp_path / "host1"),
        tracking_system_metrics="off",
        tracking_finish_timeout=30,
    )


def critic_elsewhere(primary: Namespace, tmp_path: Path) -> Namespace:
    """The critic's arguments as they arrive on another host: the primary's path means nothing there."""
    args = copy.copy(primary)
    args.lr = 5e-6
    args.tracking_run_dir = str(tmp_path / "a-disk-of-host1" / "job")
    args.tracking_dir = str(tmp_path / "host2")
    return args


CRITIC = """
import json, sys
from argparse import Namespace
import slime_logging as sl
args = Namespace(**json.loads(sys.argv[1]))
sl.init_tracking(args, primary=False, role="critic")
sl.log(args, {"train/step": 7, "train/critic-loss": 0.1}, "train/step")
sl.finish_tracking(args)
"""


def test_a_server_that_is_down_leaves_the_rows_on_the_host_that_logged_them(
    tmp_path, primary, wandb_server
):
    sl.init_tracking(primary)
    critic = critic_elsewhere(primary, tmp_path)
    critic.tracking_finish_timeout = 1
    wandb_server.kill()
    done = subprocess.run(
        [sys.executable, "-c", CRITIC, json.dumps(vars(critic))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "slime-logging sync" in done.stderr
    wandb_server.restart()
    options = [f"wandb_key={wandb_server.key}", f"wandb_host={wandb_server.url}"]
    words = [word for option in options for word in ("-o", option)]
    result = CliRunner().invoke(app, ["sync", str(tmp_path / "host2" / "job"), *words])
    assert result.exit_code == 0, result.output
    assert [
        row["train/step"] for row in wandb_server.rows("job") if "train/critic-loss" in row
    ] == [7]
    sl.finish_tracking(primary)


def words_of(server: WandbServer) -> list[str]:
    options = (f"wandb_key={server.key}", f"wandb_host={server.url}")
    return [word for option in options for word in ("-o", option)]


def invoke(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


def two_hosts(
    tmp_path: Path, primary: Namespace, *, is_primary_last: bool = False
) -> tuple[Path, Path]:
    """A job of two hosts, the critic's the last one to end by default; the run's directory on each."""
    sl.init_tracking(primary)
    actor, critic = copy.copy(primary), critic_elsewhere(primary, tmp_path)
    if is_primary_last:  # what it expects of the critic stands then
        critic.lr = primary.lr
    sl.init_tracking(actor, primary=False, role="actor")
    sl.init_tracking(critic, primary=False, role="critic")
    for step in range(20):
        sl.log(primary, {"rollout/step": step, "rollout/reward": 0.5}, "rollout/step")
        sl.log(critic, {"train/step": step, "train/critic-loss": 0.1}, "train/step")
    sl.log_config(critic, {"vocab_size": 151_936})
    sl.log_config(actor, {"start_rollout_id": 3})
    for args in (actor, critic, primary) if is_primary_last else (actor, primary, critic):
        sl.finish_tracking(args)
    return tmp_path / "host1" / "job", tmp_path / "host2" / "job"


@pytest.mark.parametrize("semantics", ["replace", "merge"])
@pytest.mark.parametrize("is_primary_last", [True, False], ids=["primary-last", "primary-first"])
def test_a_run_of_two_hosts_is_proved_by_their_two_directories(
    tmp_path, primary, wandb_server, semantics, is_primary_last
):
    """Rows, and the whole configuration at the end, whoever uploads last to a server that replaces. Each host's journal
    stays there, and says who delivers it. One alone is not equal, and says what to name as well; merged they are, and
    nothing is sent twice.
    """
    wandb_server.behave(config=semantics)
    here, there = two_hosts(tmp_path, primary, is_primary_last=is_primary_last)
    rows = wandb_server.rows("job")
    for axis, metric in (("rollout", "reward"), ("train", "critic-loss")):
        steps = [row[f"{axis}/step"] for row in rows if f"{axis}/{metric}" in row]
        assert sorted(steps) == list(range(20))
    assert {row.role for row in journal_rows(RunDirectory(here))} == {None}
    assert {row.role for row in journal_rows(RunDirectory(there))} == {"critic"}
    (journal,) = run_status(RunDirectory(there)).journals
    assert journal.opening.delivers == ("wandb",)
    config = wandb_server.config("job")
    assert config["critic/vocab_size"] == 151_936
    assert (config["start_rollout_id"], config["lr"]) == (3, 1e-6)
    assert config["critic/lr"] == (1e-6 if is_primary_last else 5e-6)
    words = words_of(wandb_server)
    for alone in (here, there):
        code, text = invoke("verify", alone, *words)
        assert code == 1
        assert "other hosts" in " ".join(text.split()), text
    code, text = invoke("verify", here, there, *words)
    differing = [line.split(":")[1].strip() for line in text.splitlines() if "config: " in line]
    # A primary that uploads last says what it expects of the critic, whose directory is another one here.
    assert differing == (["critic/tracking_dir"] if is_primary_last else []), text
    assert code == int(is_primary_last)
    assert invoke("merge", there, "--into", here)[0] == 0
    code, text = invoke("sync", here, *words)
    assert code == 0, text
    code, text = invoke("verify", here, *words)
    assert code == 0, text
    own = wandb_server.config("job").get("overrides/critic/lr")  # what no host could say by itself
    assert own is None if is_primary_last else (own["base"], own["value"]) == (1e-6, 5e-6)


def test_with_a_single_writer_no_other_host_opens_a_client(tmp_path, primary, wandb_server):
    primary.tracking_writer = "single"
    here, there = two_hosts(tmp_path, primary)
    words = words_of(wandb_server)
    assert len(wandb_server.rows("job")) == 20
    assert not list(there.rglob("*wandb*"))
    assert invoke("merge", there, "--into", here)[0] == 0
    assert invoke("sync", here, *words)[0] == 0
    code, text = invoke("verify", here, *words)
    assert code == 0, text
    assert len(wandb_server.rows("job")) == 40


def test_with_a_single_writer_a_client_of_its_own_is_refused_to_any_process(
    tmp_path, primary, wandb_server
):
    primary.tracking_writer = "single"
    sl.init_tracking(primary)
    for args in (copy.copy(primary), critic_elsewhere(primary, tmp_path)):
        init_wandb_secondary(args, role="critic")
        sl.log(args, {"train/step": 7, "train/critic-loss": 0.1}, "train/step")
        sl.finish_tracking(args)
    sl.finish_tracking(primary)
    assert len(wandb_server.rows("job")) == 1
