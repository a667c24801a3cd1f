"""A run's directory can be found, has one primary, and is read as hostile input."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slime_logging.errors import RunConflictError, RunNotFoundError, SettingsError
from slime_logging.record.run import (
    RunDirectory,
    RunFile,
    check_run_id,
    mint_run_id,
    newest_run,
    write_whole,
)


def run_file(run_id: str = "abc", **changes: object) -> RunFile:
    values: dict = {
        "run_id": run_id,
        "project": "p",
        "name": "n",
        "group": None,
        "created_s": 1.0,
        "num_starts": 1,
        "is_shared": False,
        "trackers": ("memory",),
        "roles": ("actor",),
        "axes": {"train": "train/step"},
    }
    return RunFile(**(values | changes))


def made(path: Path, run_id: str = "abc") -> RunDirectory:
    directory = RunDirectory(path / run_id)
    directory.create()
    directory.start(run_file(run_id))
    return directory


def test_what_was_written_is_read_back(tmp_path):
    assert made(tmp_path).read() == run_file()


def test_a_second_start_keeps_what_the_run_was_and_counts(tmp_path):
    directory = made(tmp_path)
    again = directory.start(run_file(name="other", created_s=9.0, roles=("actor", "critic")))
    assert (again.num_starts, again.name, again.created_s, again.roles) == (
        2,
        "n",
        1.0,
        ("actor", "critic"),
    )
    assert directory.read() == again


def test_run_ids_are_minted_as_wandbs_own():
    assert all(
        len(i) == 8 and i.isalnum() and i.islower() | i.isdigit()
        for i in (mint_run_id() for _ in range(50))
    )


@pytest.mark.parametrize("bad", ["", "..", "a/b", "../x", "-x", "x" * 129, "a\n", "a b", ".hidden"])
def test_an_id_that_could_name_another_path_is_refused(bad):
    with pytest.raises(SettingsError, match="run id"):
        check_run_id(bad)


def test_a_second_primary_is_refused_by_name_and_pid(tmp_path):
    directory = made(tmp_path)
    directory.locks.lock()
    with pytest.raises(RunConflictError, match=rf"pid {os.getpid()}"):
        RunDirectory(directory.path).locks.lock()
    directory.locks.unlock()
    RunDirectory(directory.path).locks.lock()


def test_the_lock_of_a_killed_primary_is_free(tmp_path):
    directory = made(tmp_path)
    code = (
        "import sys, time; from pathlib import Path; from slime_logging.record.run import RunDirectory\n"
        "RunDirectory(Path(sys.argv[1])).locks.lock(); print('locked', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(directory.path)], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    assert directory.locks.has_living_primary
    process.kill()
    process.wait()
    assert not directory.locks.has_living_primary
    directory.locks.lock()
    directory.locks.unlock()


def test_a_sync_and_a_running_delivery_exclude_each_other(tmp_path):
    directory = made(tmp_path)
    directory.locks.share_delivery()
    with pytest.raises(RunConflictError):
        RunDirectory(directory.path).locks.claim_delivery()
    RunDirectory(directory.path).locks.share_delivery()
    directory.locks.unlock()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"run_id": "../x"}',
        b"\xff",
        b"null",
        b'{"run_id": 3, "trackers": 1}',
    ],
)
def test_a_file_that_is_no_run_is_told_as_such(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RunNotFoundError):
        RunDirectory(tmp_path).read()


def test_a_run_id_inside_the_file_cannot_escape(tmp_path):
    directory = made(tmp_path)
    text = (directory.path / "run.json").read_text().replace('"abc"', '"../../x"')
    (directory.path / "run.json").write_text(text)
    with pytest.raises(RunNotFoundError):
        directory.read()


def test_the_newest_run_is_the_one_started_last(tmp_path):
    assert newest_run(tmp_path) is None
    for number, name in enumerate(("b", "a", "c")):
        directory = made(tmp_path, name)
        os.utime(directory.path / "run.json", (time.time(), 1000 + number))
    assert newest_run(tmp_path).path.name == "c"


def test_everything_is_for_the_owner_only(tmp_path):
    directory = made(tmp_path)
    directory.locks.lock()
    modes = {p.name: p.stat().st_mode & 0o777 for p in (directory.path, *directory.path.iterdir())}
    assert modes == {
        "abc": 0o700,
        "run.json": 0o600,
        "primary.lock": 0o600,
        "journals": 0o700,
        "delivery": 0o700,
    }
    directory.locks.unlock()


def test_a_failed_replacement_leaves_the_old_file_and_no_scrap(tmp_path):
    path = tmp_path / "f.json"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_links_among_the_journals_are_not_followed(tmp_path):
    directory = made(tmp_path)
    (directory.journals / "evil.jsonl").symlink_to("/etc/passwd")
    assert directory.journal_paths() == []
