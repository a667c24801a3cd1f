"""Idle files are looked at ever more rarely, active ones at once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slime_logging.delivery.changes import Changes
from slime_logging.delivery.digests import difference, digest_of, digests_of
from slime_logging.delivery.watch import FIRST_PAUSE_S, Watch


def test_a_thousand_idle_files_cost_at_most_250_looks_a_second(tmp_path):
    paths = [tmp_path / str(number) for number in range(1000)]
    for path in paths:
        path.touch()
    watch, now = Watch(), 0.0
    while now < 30.0:
        watch.grown(paths, now)
        now += 0.1
    before = watch.num_looks
    while now < 60.0:
        watch.grown(paths, now)
        now += 0.1
    assert (watch.num_looks - before) / 30.0 <= 250


def test_a_file_that_grows_is_seen_at_once_while_it_is_active(tmp_path):
    path = tmp_path / "a"
    path.touch()
    watch, now = Watch(), 0.0
    assert watch.grown([path], now) == [path]
    for size in range(1, 20):
        path.write_bytes(b"x" * size)
        now += FIRST_PAUSE_S
        assert watch.grown([path], now) == [path]
    now += FIRST_PAUSE_S
    assert watch.grown([path], now) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One on a disk that no other host can write."""
    if Changes(tmp_path).take() is None:
        pytest.skip("the kernel tells no changes of this file system")
    return tmp_path


def test_where_the_kernel_tells_what_grew_nothing_else_is_looked_at(folder):
    paths = [folder / str(number) for number in range(1000)]
    for path in paths:
        path.touch()
    watch, now = Watch(folder), 0.0
    assert watch.grown(paths, now) == paths
    watch.grown(paths, now)
    before = watch.num_looks
    while now < 50.0:
        assert watch.grown(paths, now) == []
        now += 0.5
    assert watch.num_looks == before
    paths[500].write_bytes(b"x")
    assert watch.grown(paths, now) == [paths[500]]
    assert watch.num_looks == before + 1
    while now < 300.0:
        watch.grown(paths, now)
        now += 0.5
    assert (watch.num_looks - before) / 250.0 <= 25


def test_what_another_process_writes_is_told_and_a_new_file_too(folder):
    changes = Changes(folder)
    assert changes.take() == set()
    code = "import sys; open(sys.argv[1], 'ab').write(b'x')"
    for name in ("a.jsonl", "b.jsonl"):
        subprocess.run([sys.executable, "-c", code, str(folder / name)], check=True)
        assert changes.take() == {name}
    (folder / "a.jsonl").replace(folder / "c.jsonl")
    assert "c.jsonl" in (changes.take() or ())
    assert changes.take() == set()


def test_what_cannot_be_told_is_looked_at(folder, tmp_path):
    assert Changes(Path("/proc")).take() is None  # of a kind that is not known to be this host's
    assert Changes(folder / "not there").take() is None
    lost = folder / "journals"
    lost.mkdir()
    (lost / "a").write_bytes(b"x")
    watch = Watch(lost)
    assert watch.grown([lost / "a"], 0.0) == [lost / "a"]
    shutil.rmtree(lost)
    lost.mkdir()
    (lost / "a").write_bytes(b"other")
    assert watch.grown([lost / "a"], 0.1) == [lost / "a"]
    (lost / "a").write_bytes(b"yet another")
    assert watch.grown([lost / "a"], 5.0) == [lost / "a"]


def test_a_queue_that_ran_over_makes_all_of_them_be_looked_at(folder):
    paths = [folder / str(number) for number in range(50)]
    for path in paths:
        path.touch()
    watch = Watch(folder)
    watch.grown(paths, 0.0)
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    files = [path.open("ab", buffering=0) for path in paths]
    for number in range(most + 100):
        files[number % len(files)].write(b"x")
    assert watch.grown(paths, 0.1) == paths
    files[7].write(b"x")
    assert paths[7] in watch.grown(paths, 5.0)
    for file in files:
        file.close()


def test_marks_tell_multisets_apart():
    one = digests_of([("a", -1), ("a", -1), ("b", 2.0), "text"])
    other = digests_of([("a", -1), ("b", 2), "text", ("a", -2)])
    assert difference(one, other) == ({digest_of(("a", -1))}, {digest_of(("a", -2))})
    assert difference(one, one) == (set(), set())
