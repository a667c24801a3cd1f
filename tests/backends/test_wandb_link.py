"""The client's process: bounded, and gone when its parent is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from slime_logging.backends.wandb.link import Link
from slime_logging.errors import TryAgain

ROOT = Path(__file__).parents[2]


def workers_of(pid: int) -> list[psutil.Process]:
    """Processes of links below `pid`; other tests may have left helpers of their own there."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):  # one that has ended, and that nobody waited for
            if any("backends.wandb.worker" in part for part in child.cmdline()):
                found.append(child)
    return found


def test_a_process_that_hangs_is_killed_at_the_deadline() -> None:
    """A stopped client: the request raises TryAgain, and nothing of it is left."""
    link = Link()
    (worker,) = workers_of(os.getpid())
    worker.suspend()
    with pytest.raises(TryAgain, match=r"did not answer within 0\.5 s"):
        link.ask("rows", [], timeout_s=0.5)
    assert not worker.is_running()


def test_a_send_that_nobody_reads_is_ended_at_the_deadline() -> None:
    """More than the socket's buffer holds, to a stopped client: no endless wait in the send."""
    link = Link()
    (worker,) = workers_of(os.getpid())
    worker.suspend()
    with pytest.raises(TryAgain, match="has ended"):
        link.send("rows", ["x" * 10_000_000], timeout_s=0.5)
    link.kill()


def test_a_process_that_died_says_so() -> None:
    """The next request raises TryAgain instead of a broken pipe."""
    link = Link()
    for worker in workers_of(os.getpid()):
        worker.kill()
    with pytest.raises(TryAgain, match="has ended"):
        link.ask("rows", [], timeout_s=5)
    link.kill()


def test_the_client_dies_with_a_killed_parent() -> None:
    """SIGKILL of the job: a moment later no process of the client is left to write behind the back of a successor."""
    script = """
        import time
        import time
        from slime_logging.backends.wandb.link import Link
        link = Link()
        print("ready", flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    workers = workers_of(parent.pid)
    assert workers
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive


def test_a_process_that_cannot_be_started_is_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory for a fork, no interpreter to run: delivery tries again."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(TryAgain, match="cannot start"):
        Link()
