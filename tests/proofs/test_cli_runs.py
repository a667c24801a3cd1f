"""`show`, `sync` and `verify` on runs of real jobs: what they print, how they end, and that they can be repeated."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slime_logging.cli.app import app
from slime_logging.delivery.ending import read_ending
from slime_logging.record.run import RunDirectory
from tests.proofs.checks import assert_equal
from tests.proofs.nursery import Nursery

COMMAND = (sys.executable, "-c", "from slime_logging.cli.app import app; app()")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a run whose primary and critic were killed, and its delivery too: as left
    by a machine that died. TensorBoard has nothing of it.
    """
    nursery = Nursery(tmp_path_factory.mktemp("killed"))
    args = {
        "tracking_dir": str(nursery.place / "tracking"),
        "wandb_run_id": "job",
        "tracking_system_metrics": "off",
        "use_tensorboard": True,
    }
    nursery.start(0, args, primary=True)
    while len(nursery.acknowledged()) < 10:
        time.sleep(0.01)
    nursery.start(
        1, {**args, "tracking_run_dir": str(nursery.place / "tracking" / "job")}, role="critic"
    )
    while len(nursery.acknowledged()) < 500:
        time.sleep(0.01)
    nursery.close()
    run = RunDirectory(nursery.place / "tracking" / "job")
    while read_ending(run, 1) is None or run.locks.has_living_supervisor:
        time.sleep(0.05)
    shutil.rmtree(run.path / "tensorboard")
    for path in run.delivery.iterdir():
        path.unlink()
    yield run.path


def call(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_a_killed_run_from_show_to_verify(killed):
    """The way that a person goes: look, see what is left, deliver it, see that it is there."""
    code, text = call("show", killed)
    assert code == 0
    assert text.splitlines()[0].endswith(": died")
    assert "primary" in text
    assert "critic" in text
    assert f"slime-logging sync {killed}" in text.replace("\n", "")
    code, text = call("show", killed, "--json")
    status = json.loads(text)
    num_rows = sum(journal["num_rows"] for journal in status["journals"])
    assert (code, len(status["journals"]), status["is_running"]) == (0, 2, False)
    assert num_rows >= 500
    code, text = call("sync", killed)
    assert (code, f"tensorboard: complete, {num_rows:,} rows" in text) == (0, True)
    code, text = call("verify", killed)
    assert (code, f"tensorboard: {num_rows:,} rows" in text, "equal" in text) == (0, True, True)
    code, text = call("show", killed, "--json")
    (delivery,) = json.loads(text)["deliveries"]
    assert (delivery["state"], delivery["num_confirmed"], delivery["num_left"]) == (
        "closed",
        num_rows,
        0,
    )


def test_everything_can_go_to_another_tracker_later_and_twice_is_once(killed):
    for _ in range(2):
        code, text = call("sync", killed, "--to", "trackio")
        assert code == 0, text
    assert_equal(killed, "trackio")
    code, text = call("verify", killed, "--of", "trackio")
    assert (code, "equal" in text) == (0, True)


def test_what_a_tracker_lost_is_found_and_mended(killed):
    call("sync", killed)
    for path in (killed / "tensorboard" / "critic").glob("*.rows"):
        path.unlink()
    code, text = call("verify", killed)
    assert (code, "NOT EQUAL" in text, "missing: row critic-" in text, "more" in text) == (
        1,
        True,
        True,
        True,
    )
    assert call("sync", killed)[0] == 0
    assert call("verify", killed)[0] == 1  # a cursor says that it was confirmed
    assert call("sync", killed, "--repair")[0] == 0
    assert call("verify", killed)[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "nothing-here"), "no run"),
        (("report", "nothing-here"), "no run"),
        (("sync", "nothing-here"), "no run"),
        (("verify", "nothing-here"), "no run"),
        (("sync", "KILLED", "--to", "waldb"), "no tracker 'waldb'"),
        (("verify", "KILLED", "--of", "waldb"), "no tracker 'waldb'"),
    ],
)
def test_a_mistake_ends_with_1_and_one_line(killed, tmp_path, words, told):
    code, text = call(
        *(killed if word == "KILLED" else word for word in words), "--tracking-dir", tmp_path
    )
    assert (code, told in text, "Traceback" in text) == (1, True, False)


def test_a_run_that_is_being_delivered_is_left_alone(killed):
    holder = RunDirectory(killed)
    holder.locks.share_delivery()
    try:
        code, text = call("sync", killed, "--timeout", 0.5)
    finally:
        holder.locks.unlock()
    assert (code, "delivering it now" in text.replace("\n", " ")) == (1, True)


@pytest.mark.parametrize("command", ["show", "verify", "report", "sync"])
def test_hostile_files_cost_bounded_memory(tmp_path, command):
    """A journal without an end of line, a line of 60 MB, a cursor of 1 GB, a thousand empty journals."""
    run = RunDirectory(tmp_path / "job")
    run.create()
    description = {
        "run_id": "job",
        "project": "p",
        "name": "n",
        "group": None,
        "created_s": 1.0,
        "num_starts": 1,
        "is_shared": False,
        "trackers": ["memory"],
        "roles": ["actor"],
        "axes": {},
        "schema": 1,
        "host": "h",
        "options": {},
    }
    (run.path / "run.json").write_text(json.dumps(description))
    for name, size in (("endless", 512 * 2**20), ("long", 60 * 2**20)):
        with (run.journals / f"{name}.jsonl").open("wb") as file:
            file.truncate(size)
    with (run.journals / "long.jsonl").open("ab") as file:
        file.write(b"\n")
    with (run.delivery / "memory@x.json").open("wb") as file:
        file.truncate(2**30)
    for number in range(1000):
        (run.journals / f"empty-{number}.jsonl").touch()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (640 * 2**20, 640 * 2**20))

    done = subprocess.run(
        [*COMMAND, command, str(run.path)],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
    )
    assert "Traceback" not in done.stderr
    assert "MemoryError" not in done.stderr
    # A journal that cannot be read makes a run not equal, and a delivery not complete.
    assert done.returncode == (command == "verify"), done.stderr
