"""Idle files are looked at ever more rarely, active ones at once."""

from __future__ import annotations

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


def test_marks_tell_multisets_apart():
    one = digests_of([("a", -1), ("a", -1), ("b", 2.0), "text"])
    other = digests_of([("a", -1), ("b", 2), "text", ("a", -2)])
    assert difference(one, other) == ({digest_of(("a", -1))}, {digest_of(("a", -2))})
    assert difference(one, one) == (set(), set())
