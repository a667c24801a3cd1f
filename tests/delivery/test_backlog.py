"""The backlog: journals take turns, batches stay small whatever the number of journals, and nothing is passed over."""

from __future__ import annotations

import itertools

from slime_logging.delivery.backlog import BATCH_ROWS, Backlog
from slime_logging.delivery.source import BATCH_BYTES
from slime_logging.record.entries import Opening, encode
from slime_logging.record.journal import Journal
from slime_logging.record.run import RunDirectory

NUM_JOURNALS = 12
NUM_ROWS = 500


def run_of_many(tmp_path):
    """A run of twelve journals with 500 short rows each."""
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    for number in range(NUM_JOURNALS):
        name = f"worker{number:02d}-host-1-0000000000000000"
        opening = Opening(
            run_id="run",
            journal=name,
            role=None,
            is_primary=False,
            host="h",
            pid=1,
            start=1,
            time_s=0.0,
        )
        journal = Journal(directory.journals, name)
        journal.append(encode("open", opening.to_body()))
        for step in range(NUM_ROWS):
            journal.append(
                encode(
                    "row",
                    {"time_s": 1.0, "step_key": "a/step", "step": step, "metrics": {"a/x": 1.5}},
                )
            )
        journal.close()
    return directory


def batches(directory):
    backlog = Backlog(directory, lambda opening: True, lambda opening: 0)
    backlog.discover()
    taken = list(itertools.takewhile(lambda batch: batch.ends, iter(backlog.take, None)))
    backlog.close()
    return taken


def test_every_row_of_every_journal_is_taken_once_and_in_order(tmp_path):
    steps = {}
    for batch in batches(run_of_many(tmp_path)):
        for row in batch.rows:
            steps.setdefault(row.journal, []).append(row.step)
    assert len(steps) == NUM_JOURNALS
    assert all(of_one == list(range(NUM_ROWS)) for of_one in steps.values())


def test_a_batch_does_not_grow_with_the_number_of_journals(tmp_path):
    assert NUM_ROWS * 60 < BATCH_BYTES
    assert all(len(batch.rows) < BATCH_ROWS + NUM_ROWS for batch in batches(run_of_many(tmp_path)))


def test_what_is_counted_with_a_batch_are_its_rows(tmp_path):
    for batch in batches(run_of_many(tmp_path)):
        assert sum(num_rows for _, num_rows in batch.ends.values()) == len(batch.rows)
