"""W&B offline: every row of every segment is in the `.wandb` files, whatever killed the client in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.process import BackendProcess
from slime_logging.backends.wandb import offline as wandb_offline
from slime_logging.backends.wandb import session as wandb_session
from slime_logging.errors import TryAgain
from slime_logging.values.run import RunConfig
from tests.backends.wandb_rows import CONFIG, facts, held, odd_rows, points, rows

pytest.importorskip("wandb")

ROOT = Path(__file__).parents[2]
OFFLINE = {"wandb_mode": "offline", "wandb_key": "5ecret" * 7}


def test_what_is_read_back_is_what_was_written(tmp_path: Path) -> None:
    """Odd keys and values, two segments: equal multisets of points, equal configuration, no key in any file."""
    run = facts(tmp_path / "run", OFFLINE)
    written = [*odd_rows("odd"), *rows("a", 0, 1000)]
    backend = BackendProcess("wandb")
    environ = dict(os.environ)
    backend.open(run, Writer(label="primary"))
    backend.set_config(CONFIG)
    backend.write(written)
    backend.close(None, 30)
    backend.open(run, Writer(label="primary"))
    backend.set_config(CONFIG)
    more = rows("a", 1000, 2000)
    backend.write(more[:500])
    backend.write(more[500:])
    backend.close(0, 30)
    assert held(run) == points(backend, [*written, *more])
    assert backend.read_config(run) == backend.config_as_held(CONFIG)
    assert len(wandb_offline.find_files(run)) == 2
    assert dict(os.environ) == environ
    assert "wandb" not in {
        child.name for child in (tmp_path / "run" / "wandb").iterdir() if child.is_symlink()
    }
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"5ecret" not in path.read_bytes(), path


def test_a_row_keeps_its_own_time(tmp_path: Path) -> None:
    """A row delivered late shows when it was logged."""
    run = facts(tmp_path / "run", OFFLINE)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 2))
    backend.close(0, 30)
    assert [row["_timestamp"] for row in wandb_offline.read_rows(run)] == [
        1_700_000_000.25,
        1_700_000_001.25,
    ]


def test_a_killed_job_is_continued_without_loss_or_double(tmp_path: Path) -> None:
    """SIGKILL in the middle: what the files hold is found exactly, the rest is written, and nothing twice."""
    run = facts(tmp_path / "run", OFFLINE)
    script = f"""
        import os, signal, sys, time
        from pathlib import Path
        from slime_logging.backends.base import Writer
        from slime_logging.values.run import RunConfig
        from slime_logging.backends.process import BackendProcess
        from tests.backends.wandb_rows import facts, rows
        backend = BackendProcess("wandb")
        backend.open(facts(Path({str(tmp_path / "run")!r}), {OFFLINE!r}), Writer(label="primary"))
        backend.write(rows("a", 0, 3000))
        backend.write(rows("a", 3000, 3001))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    time.sleep(1.0)  # until the client of the killed job has died of it
    written = rows("a", 0, 3001)
    before = held(run)
    backend = BackendProcess("wandb")
    missing = [row for row in written if not all(before[point] for point in backend.points(row))]
    assert before == points(backend, [row for row in written if row not in missing])
    backend.open(run, Writer(label="primary"))
    backend.write(missing)
    backend.close(0, 30)
    assert held(run) == points(backend, written)


def test_a_torn_file_gives_the_whole_records_before_the_tear(tmp_path: Path) -> None:
    """Cut at every byte of its last kilobyte: reading never raises, and yields a prefix of what was written."""
    run = facts(tmp_path / "run", OFFLINE)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 400))
    backend.close(0, 30)
    (path,) = wandb_offline.find_files(run)
    whole = path.read_bytes()
    all_ids = [row["_row"] for row in wandb_offline.read_rows(run)]
    counts = []
    for end in range(len(whole) - 1024, len(whole), 8):
        path.write_bytes(whole[:end])
        ids = [row["_row"] for row in wandb_offline.read_rows(run)]
        assert ids == all_ids[: len(ids)]
        counts.append(len(ids))
    assert counts == sorted(counts)


def test_a_damaged_record_ends_its_file(tmp_path: Path) -> None:
    """A flipped byte is noticed by the checksum: no wrong value is ever read."""
    run = facts(tmp_path / "run", OFFLINE)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 400))
    backend.close(0, 30)
    (path,) = wandb_offline.find_files(run)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    assert not held(run) - points(backend, rows("a", 0, 400))
    assert 0 < held(run).total() < 400


def test_a_run_without_files_holds_nothing(tmp_path: Path) -> None:
    """Before the first open there is nothing to read, and that is no error."""
    assert not held(facts(tmp_path / "run", OFFLINE))


def test_two_writers_of_one_second_have_files_of_their_own(tmp_path: Path) -> None:
    """Same run, same directory, same second: neither's data vanishes."""
    run = facts(tmp_path / "run", {**OFFLINE, "wandb_dir": str(tmp_path / "shared")})
    backends = [BackendProcess("wandb"), BackendProcess("wandb")]
    for number, backend in enumerate(backends):
        backend.open(run, Writer(label=f"writer {number}"))
    for number, backend in enumerate(backends):
        backend.write(rows(f"w{number}", 0, 10))
        backend.close(0, 30)
    assert held(run) == points(backends[0], [*rows("w0", 0, 10), *rows("w1", 0, 10)])


def test_clients_that_follow_each_other_within_a_second_stand_in_their_order(
    tmp_path: Path,
) -> None:
    """A delivery tried again, a short job resumed: no file replaces another, and the last one counts."""
    run = facts(tmp_path / "run", OFFLINE)
    written = rows("a", 0, 12)
    for number in range(6):
        backend = BackendProcess("wandb")
        backend.open(run, Writer(label="primary"))
        backend.set_config(RunConfig(values={"lr": number}, roles={}))
        backend.write(written[2 * number : 2 * number + 2])
        backend.close(None, 30)
    assert len(wandb_offline.find_files(run)) == 6
    assert held(run) == points(backend, written)
    assert backend.read_config(run) == {"lr": 5}


def test_a_run_of_the_users_own_is_not_disturbed(tmp_path: Path) -> None:
    """Opened before ours, in the same process: it is still `wandb.run` and logs on after ours is closed."""
    script = f"""
        import os
        from pathlib import Path
        import wandb
        from slime_logging.backends.base import Writer
        from slime_logging.values.run import RunConfig
        from slime_logging.backends.process import BackendProcess
        from tests.backends.wandb_rows import facts, rows
        own = wandb.init(mode="offline", id="own", project="p", dir={str(tmp_path)!r}, settings={{"silent": True}})
        wandb.log({{"x": 1}})
        environ = dict(os.environ)
        backend = BackendProcess("wandb")
        backend.open(facts(Path({str(tmp_path / "run")!r}), {OFFLINE!r}), Writer(label="primary"))
        backend.write(rows("a", 0, 3))
        backend.close(0, 30)
        assert wandb.run is own and dict(os.environ) == environ
        wandb.log({{"x": 2}})
        wandb.finish()
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, timeout=60, check=True
    )
    own = facts(tmp_path / "own", {**OFFLINE, "wandb_dir": str(tmp_path)}, run_id="own")
    assert [row["x"] for row in wandb_offline.read_rows(own)] == [1, 2]
    assert held(facts(tmp_path / "run", OFFLINE)) == points(
        BackendProcess("wandb"), rows("a", 0, 3)
    )


def test_a_service_that_does_not_end_matters_only_where_its_file_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W&B's `teardown` waits for its service for ever; delivery tries again where a record may be missing."""
    import wandb

    run, backend = facts(tmp_path / "run", OFFLINE), BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 100))
    backend.close(0, 30)
    (whole,) = wandb_offline.find_files(run)
    torn = tmp_path / "torn.wandb"
    torn.write_bytes(whole.read_bytes()[:-20])
    ended = threading.Event()
    monkeypatch.setattr(wandb, "teardown", ended.wait)
    wandb_session._end_service(whole, 0.2)
    with pytest.raises(TryAgain, match=r"did not end within 0\.2 s"):
        wandb_session._end_service(torn, 0.2)
    ended.set()
    wandb_session._end_service(torn, 5.0)


def test_what_is_stored_in_another_form_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As the other trackers do; and nothing is said of a row that is only compared."""
    backend = BackendProcess("wandb")
    backend.points(rows("a", 0, 1, _step=4)[0])
    assert not caplog.records
    backend.open(facts(tmp_path / "run", {"wandb_mode": "offline"}), Writer(label="primary"))
    backend.write(rows("a", 0, 2, _step=4))
    backend.close(0, 30)
    assert len([r for r in caplog.records if "would drop" in r.getMessage()]) == 1
