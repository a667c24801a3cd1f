"""The processes of a job: answers, deaths and ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from slime_logging.demo.crew import Crew, JobFailed


class Service:
    """A small service that can also die."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def commands(self) -> Mapping[str, Callable[..., Any]]:
        return {"double": lambda x: 2 * x, "pid": os.getpid, "die": self._die, "raise": self._raise}

    def close(self, exit_code: int) -> None:
        (self._place / f"closed-with-{exit_code}").touch()

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _raise(self) -> None:
        raise ValueError("the loss is on fire")


def failing_service() -> Service:
    """A service that cannot start."""
    raise RuntimeError("no weights here")


def test_children_answer_at_the_same_time(tmp_path: Path) -> None:
    """`answers` brings the answer of each child that was asked."""
    with Crew() as crew:
        first, second = (
            crew.start("first", Service, tmp_path),
            crew.start("second", Service, tmp_path),
        )
        answers = crew.answers({first: ("double", 2), second: ("double", 5)})
        assert (answers[first], answers[second]) == (4, 10)
        crew.end()


def test_an_end_closes_every_service_with_zero(tmp_path: Path) -> None:
    """A job that ended well tells its services so."""
    with Crew() as crew:
        crew.start("first", Service, tmp_path)
        crew.end()
    assert [path.name for path in tmp_path.iterdir()] == ["closed-with-0"]


def test_a_killed_child_is_named_with_its_signal(tmp_path: Path) -> None:
    """The message says who died and by what."""
    with Crew() as crew:
        child = crew.start("critic rank 0", Service, tmp_path)
        with pytest.raises(
            JobFailed, match=rf"critic rank 0 \(pid {child.process.pid}\) was killed by SIGKILL"
        ):
            crew.answer(child, "die")


def test_the_death_of_a_child_that_was_not_asked_is_noticed(tmp_path: Path) -> None:
    """Waiting for one child watches all of them."""
    with Crew() as crew:
        idle, busy = crew.start("idle", Service, tmp_path), crew.start("busy", Service, tmp_path)
        os.kill(crew.answer(idle, "pid"), signal.SIGKILL)
        idle.process.join()
        with pytest.raises(JobFailed, match="idle"):
            crew.ask(busy, "pid")
            crew.next_answer()
            crew.next_answer()


def test_an_exception_in_a_child_arrives_with_its_traceback(tmp_path: Path) -> None:
    """The driver shows what went wrong, and the service is closed with 1."""
    with Crew() as crew, pytest.raises(JobFailed, match="ValueError: the loss is on fire"):
        crew.answer(crew.start("actor", Service, tmp_path), "raise")
    assert [path.name for path in tmp_path.iterdir()] == ["closed-with-1"]


def test_a_service_that_cannot_start_says_why() -> None:
    """Its traceback arrives, however early it failed."""
    with Crew() as crew, pytest.raises(JobFailed, match="no weights here"):
        crew.answer(crew.start("actor", failing_service), "anything")


def test_no_child_outlives_the_crew(tmp_path: Path) -> None:
    """Leaving by an exception ends every process."""
    with pytest.raises(KeyboardInterrupt), Crew() as crew:
        pid = crew.answer(crew.start("actor", Service, tmp_path), "pid")
        raise KeyboardInterrupt
    assert not psutil.pid_exists(pid)
