"""A backend in a process of its own: what reaches it, what does not get out of it, and how it ends."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.process import BackendProcess
from slime_logging.errors import TryAgain
from slime_logging.values.run import RunFacts
from tests.backends import scenario

ROOT = Path(__file__).parents[2]
WRITER = Writer(label="primary")


@pytest.fixture
def run(note_others: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFacts:
    for name in [name for name in os.environ if name.startswith(("TRACKIO_", "HF_"))]:
        monkeypatch.delenv(name)
    return RunFacts(
        run_id="r1",
        project="project",
        name="job",
        group=None,
        directory=tmp_path / "run",
        created_s=scenario.START_S,
        axes={},
        options={},
    )


@pytest.fixture
def backend(run: RunFacts) -> Iterator[BackendProcess]:
    opened = BackendProcess("trackio")
    opened.open(run, WRITER)
    yield opened
    opened.close(None, 5)


BEFORE: set[psutil.Process] = set()
"""Processes of backends that other tests of this worker hold on to."""


@pytest.fixture(autouse=True)
def note_others() -> None:
    BEFORE.clear()
    BEFORE.update(psutil.Process().children())


def processes_of(pid: int) -> list[psutil.Process]:
    """The processes of backends that this one started."""
    return [
        child
        for child in psutil.Process(pid).children()
        if child not in BEFORE
        and any("slime_logging.backends.served" in word for word in child.cmdline())
    ]


def test_a_process_that_died_is_try_again_and_a_new_one_follows(
    backend: BackendProcess, run: RunFacts
) -> None:
    (process,) = processes_of(os.getpid())
    process.kill()
    with pytest.raises(TryAgain, match="its process ended"):
        backend.write([scenario.row(1, {"x": 1.0})])
    backend.open(run, WRITER)
    backend.write([scenario.row(1, {"x": 1.0})])
    backend.close(0, 30)
    assert len(list(backend.read_points(run))) == 1


@pytest.mark.parametrize("size", [1, 3_000_000], ids=["the answer", "a send that nobody reads"])
def test_a_process_that_hangs_is_killed_at_the_deadline(
    backend: BackendProcess, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("slime_logging.backends.process.CALL_TIMEOUT_S", 1.0)
    (process,) = processes_of(os.getpid())
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(TryAgain, match="trackio"):
        backend.write([scenario.row(1, {"x": "t" * size})])
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_it_dies_with_a_killed_caller(run: RunFacts) -> None:
    """SIGKILL of the caller: a moment later nothing writes behind the back of a successor."""
    script = f"""
        import time
        from pathlib import Path
        from slime_logging.backends.base import Writer
        from slime_logging.backends.process import BackendProcess
        from slime_logging.values.run import RunFacts
        backend = BackendProcess("trackio")
        backend.open(RunFacts(run_id="r2", project="p", name="n", group=None, created_s=1.0, axes={{}},
                              options={{}}, directory=Path({str(run.directory)!r})), Writer(label="a"))
        print("ready", flush=True)
        time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    caller = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"ready\n"
    processes = processes_of(caller.pid)
    assert processes
    caller.kill()
    caller.wait()
    caller.stdout.close()
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert not alive


def test_a_process_that_cannot_be_started_is_try_again(
    run: RunFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No memory for a fork, no interpreter to run: it is tried again."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(TryAgain, match="cannot start"):
        BackendProcess("trackio").open(run, WRITER)


def test_its_environment_holds_only_what_it_needs(
    run: RunFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other vendor's keys, no token of the scheduler's, nothing that decides about another run."""
    for name in ("WANDB_API_KEY", "HF_TOKEN", "SLURM_JWT", "OPENAI_API_KEY", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "c4n4ry")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    backend = BackendProcess("trackio")
    backend.open(run, WRITER)
    (process,) = processes_of(os.getpid())
    found = process.environ()
    backend.close(0, 30)
    assert "c4n4ry" not in found.values()
    assert found["HTTPS_PROXY"] == "http://127.0.0.1:1"


def test_what_it_warns_about_is_said_by_the_caller(
    backend: BackendProcess, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "slime_logging"):
        backend.write([scenario.row(1, {"timestamp": 1.0})])
    assert "'timestamp' is its own" in caplog.text


def test_its_notices_come_once(backend: BackendProcess, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "slime_logging"):
        for number in range(3):
            backend.write([scenario.row(number, {"timestamp": 1.0})])
    assert len(caplog.records) == 1


def test_reading_needs_no_open_and_one_process_which_goes_with_it(run: RunFacts) -> None:
    backend = BackendProcess("trackio")
    assert list(backend.read_points(run)) == []
    (process,) = processes_of(os.getpid())
    assert backend.read_config(run) == {}
    assert list(backend.read_media(run)) == []
    assert processes_of(os.getpid()) == [process]
    del backend
    deadline_s = time.monotonic() + 5
    while processes_of(os.getpid()) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not processes_of(os.getpid())


def test_a_long_reading_comes_whole_and_can_be_repeated(
    backend: BackendProcess, run: RunFacts
) -> None:
    """In more pieces than one; a reading that another one overtook says so."""
    written = [scenario.row(number, {"x": float(number)}) for number in range(2_500)]
    backend.write(written)
    expected = [point for row in written for point in backend.points(row)]
    assert list(backend.read_points(run)) == expected
    first = backend.read_points(run)
    next(first)
    assert list(backend.read_points(run)) == expected
    with pytest.raises(RuntimeError, match="one reading at a time"):
        list(first)


def test_a_run_elsewhere_is_read_there(
    backend: BackendProcess, run: RunFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the place changed in the environment: a vendor may fix its own when it is loaded."""
    backend.write([scenario.row(1, {"x": 1.0})])
    assert len(list(backend.read_points(run))) == 1
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "else"))
    assert list(backend.read_points(run)) == []
    monkeypatch.delenv("TRACKIO_DIR")
    assert len(list(backend.read_points(run))) == 1
