"""A disk that is full, a directory that is gone or closed: one loud line, training goes on, rows reach the trackers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

NUM_ROWS = 400

JOB = f"""
import copy, json, os, resource, shutil, sys, time
from argparse import Namespace
from pathlib import Path
import slime_logging as sl
from slime_logging.backends import memory

where, event = Path(sys.argv[1]), sys.argv[2]
args = Namespace(use_memory=True, tracking_dir=str(where), wandb_run_id="job", tracking_system_metrics="off")
sl.init_tracking(args)
critic = copy.copy(args)
sl.init_tracking(critic, primary=False, role="critic")

def fill(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError:
        os.close(fd)

for step in range({NUM_ROWS}):
    if event == "full" and step == {NUM_ROWS - 10}:
        time.sleep(2.1)
        os.remove(where / "filler")
    if step == {NUM_ROWS // 2}:
        time.sleep(1.2)  # the delivery has found both journals: one that nobody saw is gone with its directory
        if event == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        elif event == "full":
            fill(where / "filler")
        elif event == "removed":
            shutil.rmtree(where / "job")
            time.sleep(1.2)
        elif event == "closed":
            for directory in ("journals", "delivery", "."):
                (where / "job" / directory).chmod(0)
            if os.geteuid() == 0:  # whom permissions do not stop
                os.seteuid(65534)
    for given in (args, critic):
        sl.log(given, {{"train/step": step, "train/text": "x" * 2000}}, "train/step")
sl.finish_tracking(critic)
sl.finish_tracking(args)
held = memory.RUNS["job"].rows
print(json.dumps({{str(role): [row.step for row in held if row.role == role] for role in (None, "critic")}}))
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory that any user may enter and write; pytest's own is for its owner only."""
    directory = Path(tempfile.mkdtemp(prefix="slime-logging-disk-"))
    directory.chmod(0o777)
    yield directory
    for path in (directory / "job", directory / "job" / "journals", directory / "job" / "delivery"):
        if path.exists():
            path.chmod(0o700)
    shutil.rmtree(directory)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A disk of one MiB, where this user may mount one."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(directory)], capture_output=True
    )
    yield directory if mounted.returncode == 0 else None
    if mounted.returncode == 0:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def run_job(where: Path, event: str) -> tuple[dict[str, list[int]], list[str]]:
    """The steps that the tracker holds by role, and the loud lines."""
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(where), event], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), [
        line for line in done.stderr.splitlines() if "cannot write" in line
    ]


def assert_every_row_once(held: dict[str, list[int]]) -> None:
    assert set(held) == {"None", "critic"}
    for steps in held.values():
        assert sorted(steps) == list(range(NUM_ROWS))


def test_a_disk_that_fills_up_while_running(small_disk, place):
    """A file system of 4 MiB that is full for two seconds; where none can be mounted, a limit on the size of files does the same to a write."""
    held, loud = run_job(*((small_disk, "full") if small_disk else (place, "limit")))
    assert_every_row_once(held)
    assert len(loud) == 2  # a process has one journal a role, and each tells once


def test_a_write_that_is_cut_short(place):
    held, loud = run_job(place, "limit")
    assert_every_row_once(held)
    assert len(loud) == 2
    assert "training goes on" in loud[0].lower()


def test_a_run_directory_that_is_removed_while_running(place):
    held, loud = run_job(place, "removed")
    assert_every_row_once(held)
    assert len(loud) == 2
    assert "deleted" in loud[0]


def test_permissions_that_are_dropped_while_running(place):
    """The files are open already: nothing breaks, and there is nothing to say."""
    held, loud = run_job(place, "closed")
    assert_every_row_once(held)
    assert loud == []


def test_a_disk_that_is_full_at_the_start_is_an_error_there(place):
    code = """if True:
        import resource, sys
        from argparse import Namespace
        import slime_logging as sl
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        try:
            sl.init_tracking(Namespace(use_memory=True, tracking_dir=sys.argv[1], tracking_system_metrics="off"))
        except OSError as error:
            print("OSError")
        """
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "OSError\n", done.stderr
    assert list(place.iterdir())
