"""Rows that no journal could take wait in bounded memory, in order, whatever threads add meanwhile."""

from __future__ import annotations

import threading

from slime_logging.delivery import direct
from slime_logging.delivery.direct import DirectRows
from slime_logging.values.row import Row


def row(step: int) -> Row:
    metrics = {"train/x": step}
    return Row(
        journal="j",
        seq=step,
        time_s=1.0,
        role=None,
        step_key="train/step",
        step=step,
        metrics=metrics,
    )


def steps(rows: list[Row]) -> list[float]:
    return [item.step for item in rows]


def test_rows_wait_until_they_are_handed_over():
    waiting = DirectRows("t")
    for step in range(3):
        waiting.add(row(step))
    batch = waiting.next_batch()
    assert steps(batch) == steps(waiting.next_batch()) == [0, 1, 2]
    waiting.hand(batch, is_confirmed=True)
    assert (len(waiting), waiting.are_waiting) == (0, False)


def test_what_a_queue_lost_waits_again_in_its_order():
    waiting = DirectRows("t")
    for step in range(3):
        waiting.add(row(step))
    waiting.hand(waiting.next_batch(), is_confirmed=False)
    waiting.add(row(3))
    assert len(waiting) == 4
    waiting.take_back()
    assert steps(waiting.next_batch()) == [0, 1, 2, 3]


def test_what_is_confirmed_is_not_sent_again():
    waiting = DirectRows("t")
    waiting.add(row(0))
    waiting.hand(waiting.next_batch(), is_confirmed=False)
    waiting.confirm()
    waiting.take_back()
    assert len(waiting) == 0


def test_the_oldest_go_when_there_are_too_many_and_it_is_told_once(monkeypatch, caplog):
    monkeypatch.setattr(direct, "MAX_DIRECT_ROWS", 5)
    waiting = DirectRows("t")
    for step in range(4):
        waiting.add(row(step))
    batch = waiting.next_batch()
    for step in range(4, 8):
        waiting.add(row(step))
    waiting.hand(batch, is_confirmed=True)
    assert steps(waiting.next_batch()) == [4, 5, 6, 7]
    assert len([record for record in caplog.records if "are lost" in record.message]) == 1


def test_threads_add_while_rows_are_handed_over():
    waiting = DirectRows("t")
    threads = [
        threading.Thread(target=lambda: [waiting.add(row(step)) for step in range(2_000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    num_handed = 0
    while any(thread.is_alive() for thread in threads) or waiting.are_waiting:
        batch = waiting.next_batch()
        waiting.hand(batch, is_confirmed=True)
        num_handed += len(batch)
    assert num_handed == 8_000
