"""A delivery killed between any two of its steps, a journal cut at any byte: never a row lost, never one doubled."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.table import BACKENDS, Tracker
from slime_logging.delivery import attempts, ledger, source
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.backlog import Backlog
from slime_logging.delivery.delivery import Delivery
from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.verify import verify
from slime_logging.record.entries import Opening, encode
from slime_logging.record.journal import Journal
from slime_logging.record.journal_status import journal_status
from slime_logging.record.reading import count_rows
from slime_logging.record.run import RunDirectory
from tests.proofs import file_tracker
from tests.record.test_run import run_file


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "abc")
    directory.create()
    directory.start(run_file())
    return directory


def write_journal(
    run: RunDirectory, name: str, num_rows: int, delivers: tuple[str, ...] = ()
) -> Path:
    opening = Opening(
        run_id="abc",
        journal=name,
        role="actor",
        is_primary=False,
        host="h",
        pid=1,
        start=1,
        time_s=0.0,
        delivers=delivers,
    )
    journal = Journal(run.journals, name)
    journal.append(encode("open", opening.to_body()))
    journal.append(
        encode("config", {"time_s": 1.0, "scope": name, "rank": 1, "values": {"lr": 0.5}})
    )
    for step in range(num_rows):
        metrics = {f"train/metric_{i}": random.random() for i in range(3)}
        journal.append(
            encode(
                "row",
                {"time_s": 1.0 + step, "step_key": "train/step", "step": step, "metrics": metrics},
            )
        )
    journal.append(
        encode("config", {"time_s": 9.0, "scope": name, "rank": 2, "values": {"late": name}})
    )
    journal.close()
    return journal.path


def deliver_until(run: RunDirectory, die_at: int, label: str) -> int:
    """Deliver in a process that dies at a step; returns how it ended."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            file_tracker.DIE_AT = die_at
            file_tracker.watch(run.path)
            delivery = Delivery(
                Assignment(
                    tracker="file",
                    directory=run,
                    facts=run.read().facts(run.path, {}),
                    writer=Writer(label=label),
                    start=1,
                )
            )
            delivery.stop(0, 20.0)
            delivery._run()
            code = 0 if delivery.result().is_complete else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("has_queue", [False, True], ids=["durable", "queue"])
def test_a_delivery_may_die_between_any_two_steps(run, monkeypatch, has_queue):
    """At each step once, and the next one at a random step: the third ends, and every row and key is there once."""
    monkeypatch.setitem(BACKENDS, "file", Tracker("tests.proofs.file_tracker:FileTracker"))
    monkeypatch.setattr(file_tracker, "HAS_QUEUE", has_queue)
    monkeypatch.setattr(source, "BATCH_BYTES", 700)
    monkeypatch.setattr(ledger, "SAVE_INTERVAL_S", 0.0)
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.0)
    for name, delivers in (("a", ()), ("b", ()), ("own", ("file",))):
        write_journal(run, name, 6, delivers)
    facts = run.read().facts(run.path, {})
    chance = random.Random(0)
    outcomes: Counter[int] = Counter()
    for die_at in range(200):
        first = deliver_until(run, die_at, f"first-{die_at}")
        second = deliver_until(run, chance.randrange(die_at + 1), f"second-{die_at}")
        assert deliver_until(run, -1, f"third-{die_at}") == 0
        found = verify(run, "file", facts)
        assert (found.num_rows, found.missing, found.doubled, found.unknown, found.config) == (
            18,
            (),
            (),
            (),
            (),
        )
        outcomes[second] += 1
        for leftover in (*run.delivery.iterdir(), *(run.path.parent / "tracker").iterdir()):
            leftover.unlink()
        if first == 0:
            break
    assert first == 0
    assert outcomes[file_tracker.DIED] > 20


def test_a_journal_may_be_cut_at_any_byte(run):
    """At every byte of its last 4 KiB: every reader sees the complete lines and nothing of the torn one."""
    path = write_journal(run, "a", 60)
    whole = path.read_bytes()
    rows = list(journal_rows(run))
    for cut in range(len(whole) - 4096, len(whole) + 1):
        os.truncate(path, 0)
        path.write_bytes(whole[:cut])
        num_complete = (
            whole[:cut].count(b'\n{"kind":"row"') if whole[cut - 1 : cut] == b"\n" else None
        )
        complete = whole[: whole.rfind(b"\n", 0, cut) + 1]
        expected = complete.count(b'{"kind":"row",')
        assert num_complete in (None, expected)
        status = journal_status(path)
        assert status is not None
        assert (status.num_rows, status.num_torn_bytes) == (expected, cut - len(complete))
        assert (status.num_damaged, status.num_missing) == (0, 0)
        assert count_rows(path) == expected
        backlog = Backlog(run, lambda _: True, lambda _: 0)
        backlog.discover()
        assert backlog.take().rows == rows[:expected]
        backlog.close()
