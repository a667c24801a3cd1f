"""Delivery brings every row to the tracker once, whatever the tracker does, and raises into nobody's way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from slime_logging.backends import memory
from slime_logging.backends.base import Writer
from slime_logging.backends.table import BACKENDS, Tracker
from slime_logging.delivery import attempts
from slime_logging.delivery import delivery as delivery_module
from slime_logging.delivery.assignment import Assignment
from slime_logging.delivery.cursor import read_cursors
from slime_logging.delivery.delivery import Delivery
from slime_logging.delivery.refused import NUM_REFUSALS_IN_A_ROW, read_set_aside
from slime_logging.errors import TryAgain, WillNeverWork
from slime_logging.record.entries import Opening, encode
from slime_logging.record.journal import Journal
from slime_logging.record.run import RunDirectory
from tests.delivery.trackers import Plan, new_plan
from tests.record.test_run import run_file


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setitem(BACKENDS, "faulty", Tracker("tests.delivery.trackers:FaultyBackend"))
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(delivery_module, "POLL_INTERVAL_S", 0.02)
    memory.forget()
    return new_plan()


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "abc")
    directory.create()
    directory.start(run_file())
    return directory


def journal(
    run: RunDirectory, name: str = "j", *, role: str | None = "actor", start: int = 1, delivers=()
) -> Journal:
    opening = Opening(
        run_id="abc",
        journal=name,
        role=role,
        is_primary=False,
        host="h",
        pid=1,
        start=start,
        time_s=0.0,
        delivers=delivers,
    )
    new = Journal(run.journals, name)
    new.append(encode("open", opening.to_body()))
    return new


def add_rows(to: Journal, num: int, first: int = 0) -> None:
    for step in range(first, first + num):
        to.append(
            encode(
                "row",
                {
                    "time_s": 1.0 + step,
                    "step_key": "train/step",
                    "step": step,
                    "metrics": {"train/x": step},
                },
            )
        )


def new_delivery(
    run: RunDirectory, label: str, *, is_primary: bool = True, **options: Any
) -> Delivery:
    """A delivery of the run to the faulty tracker, not started yet."""
    return Delivery(
        Assignment(
            tracker="faulty",
            directory=run,
            facts=run.read().facts(run.path, {}),
            writer=Writer(label=label, is_primary=is_primary),
            **options,
        )
    )


def deliver(run: RunDirectory, label: str = "d", timeout_s: float = 5.0, **options):
    delivery = new_delivery(run, label, **options)
    delivery.start()
    delivery.stop(0, timeout_s)
    return delivery.wait()


def steps() -> list[int | float]:
    held = memory.RUNS.get("abc")
    return [row.step for row in held.rows] if held else []


def test_every_row_arrives_once_and_in_order(plan, run):
    add_rows(journal(run), 1000)
    result = deliver(run)
    assert steps() == list(range(1000))
    assert (result.is_complete, result.num_confirmed, result.num_left) == (True, 1000, 0)
    assert memory.RUNS["abc"].exit_code == 0


def test_a_second_delivery_sends_nothing_again(plan, run):
    j = journal(run)
    add_rows(j, 10)
    deliver(run, "first")
    add_rows(j, 5, first=10)
    deliver(run, "second")
    assert steps() == list(range(15))


def test_journals_that_come_later_are_found_while_it_runs(plan, run):
    delivery = new_delivery(run, "d")
    delivery.start()
    add_rows(journal(run, "late"), 3)
    deadline = time.monotonic() + 5
    while steps() != [0, 1, 2] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert steps() == [0, 1, 2]
    delivery.stop(0, 5.0)
    assert delivery.wait().is_complete


def test_a_tracker_that_is_down_at_the_start_gets_everything_later(plan, run):
    plan.opens = [TryAgain("down")] * 3
    add_rows(journal(run), 10)
    assert deliver(run).is_complete
    assert steps() == list(range(10))


@pytest.mark.parametrize("num_taken", [0, 3, 10])
def test_a_hand_over_that_breaks_off_neither_loses_nor_doubles(plan, run, num_taken):
    plan.writes = [TryAgain("cut")] * 2
    plan.num_taken_before_failing = num_taken
    add_rows(journal(run), 10)
    assert deliver(run).is_complete
    assert steps() == list(range(10))


def test_a_client_with_a_queue_is_opened_anew_after_a_broken_hand_over(plan, run):
    plan.is_durable = False
    plan.writes = [TryAgain("cut")]
    plan.num_taken_before_failing = 4
    add_rows(journal(run), 10)
    assert deliver(run).is_complete
    assert (steps(), plan.num_opens) == (list(range(10)), 2)


def test_a_tracker_that_stays_down_costs_a_bounded_time_and_says_what_is_left(plan, run):
    plan.opens = [TryAgain("down")] * 10_000
    add_rows(journal(run), 10)
    begun = time.monotonic()
    result = deliver(run, timeout_s=0.3)
    assert time.monotonic() - begun < 5
    assert (result.is_complete, result.num_left, result.reason) == (False, 10, "down")
    plan.opens = []
    assert deliver(run, "later").is_complete
    assert steps() == list(range(10))


def test_a_tracker_that_refuses_the_run_leaves_the_rows_for_later(plan, run, caplog):
    plan.opens = [WillNeverWork("wrong key")]
    add_rows(journal(run), 10)
    result = deliver(run)
    assert (result.state, result.num_left) == ("refused", 10)
    assert [r.message for r in caplog.records if "wrong key" in r.message]
    assert deliver(run, "later").is_complete
    assert steps() == list(range(10))


def test_a_refused_row_is_set_aside_with_its_reason_and_the_others_arrive(plan, run):
    plan.refuses = lambda row: WillNeverWork("bad value") if row.step in (3, 7) else None
    add_rows(journal(run), 10)
    result = deliver(run)
    assert steps() == [0, 1, 2, 4, 5, 6, 8, 9]
    assert (result.num_set_aside, result.is_complete) == (2, True)
    (aside,) = read_set_aside(run)
    assert (aside.destination, aside.reason, aside.num_rows, aside.first_row_id) == (
        "faulty",
        "bad value",
        2,
        "j:4",
    )


def test_a_tracker_that_refuses_every_row_is_refusing_the_run_and_sets_nothing_aside(plan, run):
    plan.refuses = lambda row: WillNeverWork("revoked")
    add_rows(journal(run), NUM_REFUSALS_IN_A_ROW * 2)
    result = deliver(run)
    assert (result.state, result.num_set_aside, result.num_left) == (
        "refused",
        0,
        NUM_REFUSALS_IN_A_ROW * 2,
    )
    plan.refuses = lambda row: None
    assert deliver(run, "later").is_complete
    assert steps() == list(range(NUM_REFUSALS_IN_A_ROW * 2))


def test_an_exception_that_no_backend_should_raise_stays_in_the_thread(plan, run, caplog):
    plan.writes = [ZeroDivisionError("a bug")]
    add_rows(journal(run), 3)
    result = deliver(run)
    assert (result.state, result.num_left) == ("refused", 3)
    assert "sync" in caplog.text


def test_after_a_crash_the_tracker_is_asked_before_anything_is_sent_again(plan, run):
    plan.is_durable = False
    j = journal(run)
    add_rows(j, 10)
    killed = new_delivery(run, "killed")
    killed._hand_over.pass_on()
    killed._ledger.save(now=True)  # and here its process is killed: nobody closes it
    assert [cursor.is_closed for cursor in read_cursors(run)] == [False]
    add_rows(j, 5, first=10)
    assert deliver(run, "next").is_complete
    assert sorted(steps()) == list(range(15))
    assert len(steps()) == 15


def test_a_tracker_that_cannot_be_asked_yet_is_waited_for_and_not_doubled(plan, run):
    plan.is_durable = False
    j = journal(run)
    add_rows(j, 10)
    plan.closes = [TryAgain("no answer")] * 10_000
    assert not deliver(run, "first", timeout_s=0.2).is_complete
    plan.closes, plan.reads = [], [TryAgain("still down")] * 3
    assert deliver(run, "second").is_complete
    assert steps() == list(range(10))


def test_an_unclosed_delivery_that_a_later_one_absorbed_is_not_looked_up_for_ever(plan, run):
    add_rows(journal(run), 3)
    plan.is_durable = False
    plan.closes = [TryAgain("no answer")] * 10_000
    deliver(run, "first", timeout_s=0.2)
    plan.closes = []
    deliver(run, "second")
    plan.reads = [ZeroDivisionError("asked without need")]
    assert deliver(run, "third").is_complete


def test_a_close_that_was_not_confirmed_is_tried_again_while_there_is_time(plan, run):
    plan.is_durable, plan.closes = False, [TryAgain("no answer")]
    add_rows(journal(run), 10)
    assert deliver(run).is_complete
    assert steps() == list(range(10))


def test_a_close_that_hangs_leaves_time_for_another(plan, run):
    """A vendor's client that hangs once would else cost the confirmation of the whole run."""
    plan.is_durable, plan.closes = False, [TryAgain("no answer within its time")]
    add_rows(journal(run), 10)
    assert deliver(run, timeout_s=60.0).is_complete
    first, _, second = plan.close_timeouts
    assert 40.0 < first <= 45.0
    assert 35.0 < second <= 45.0


@pytest.mark.parametrize(("timeout_s", "expected_s"), [(6.0, 6.0), (20.0, 10.0)])
def test_a_short_time_is_not_cut_shorter(plan, run, timeout_s, expected_s):
    plan.is_durable = False
    add_rows(journal(run), 10)
    assert deliver(run, timeout_s=timeout_s).is_complete
    assert expected_s - 1.0 < plan.close_timeouts[0] <= expected_s


def test_nothing_is_opened_before_the_last_client_s_rows_have_arrived(plan, run):
    """A client that opens sooner writes over them, and a look sooner sees them missing and doubles them."""
    plan.is_durable, plan.settle_s = False, 0.5
    add_rows(journal(run), 10)
    plan.closes = [TryAgain("no answer")] * 10_000
    before_s = time.monotonic()
    assert not deliver(run, "first", timeout_s=0.2).is_complete
    assert plan.num_opens == 1
    plan.closes = []
    assert deliver(run, "second").is_complete
    assert plan.opened_at[1] - before_s >= 0.5
    assert steps() == list(range(10))


def test_a_new_client_after_a_broken_one_waits_too(plan, run):
    plan.is_durable, plan.settle_s = False, 0.5
    plan.writes = [TryAgain("its process died")]
    add_rows(journal(run), 10)
    assert deliver(run).is_complete
    assert plan.opened_at[1] - plan.opened_at[0] >= 0.5
    assert steps() == list(range(10))


def test_what_a_broken_client_had_in_its_queue_is_sent_again(plan, run):
    """Also its configuration: the new client knows of none."""
    plan.is_durable, plan.has_queue = False, True
    j = journal(run)
    j.append(encode("config", {"time_s": 1.0, "scope": "", "rank": 0, "values": {"lr": 1.0}}))
    add_rows(j, 10)
    delivery = new_delivery(run, "d")
    delivery._hand_over.pass_on()
    add_rows(j, 5, first=10)
    plan.writes = [TryAgain("its process died")]
    delivery.start()
    delivery.stop(0, 5.0)
    assert delivery.wait().is_complete
    assert steps() == list(range(15))
    assert memory.RUNS["abc"].config.values == {"lr": 1.0}


def test_rows_that_look_the_same_to_the_tracker_are_all_sent(plan, run):
    """One held row answers for one row, and those confirmed before the crash are answered for already."""
    plan.points_by_step = True
    for name in ("a", "b", "c"):
        add_rows(journal(run, name), 2)
    first = new_delivery(run, "killed")
    first._hand_over.pass_on()
    first._ledger.save(now=True)
    for name in ("d", "e"):
        add_rows(journal(run, name), 2)
    plan.writes, plan.num_taken_before_failing = [TryAgain("cut")], 1
    assert deliver(run, "next").is_complete
    assert sorted(steps()) == [0] * 5 + [1] * 5


def test_rows_set_aside_are_counted_apart_from_rows_confirmed_and_left(plan, run):
    plan.refuses = lambda row: WillNeverWork("bad value") if row.step in (3, 7) else None
    plan.closes = [TryAgain("no answer")] * 10_000
    j = journal(run)
    add_rows(j, 10)
    result = deliver(run, timeout_s=1.5)
    assert (result.num_confirmed, result.num_set_aside, result.num_left) == (8, 2, 0)
    plan.closes, plan.refuses = [], lambda row: None
    add_rows(j, 1, first=10)
    result = deliver(run, "second")
    assert (result.num_confirmed, result.num_set_aside, result.num_left) == (9, 2, 0)


def test_processes_that_go_on_writing_do_not_keep_a_delivery_from_ending(plan, run):
    """What was there when it was told to stop is delivered, though for every row delivered another one is logged."""
    j = journal(run)
    add_rows(j, 10)
    plan.refuses = lambda row: add_rows(j, 1, first=100)
    assert deliver(run, timeout_s=5.0).state == "closed"
    assert steps()[:10] == list(range(10))


def test_repair_sends_what_the_tracker_lost_and_nothing_else(plan, run):
    add_rows(journal(run), 10)
    deliver(run, "first")
    del memory.RUNS["abc"].rows[2:5]
    assert deliver(run, "plain").is_complete
    assert len(steps()) == 7
    assert deliver(run, "repair", is_repair=True).is_complete
    assert sorted(steps()) == list(range(10))


def test_journals_that_their_own_living_process_delivers_are_left_to_it_but_for_their_configuration(
    plan, run
):
    RunDirectory(run.path).locks.hold("own")
    own = journal(run, "own", delivers=("faulty",))
    own.append(
        encode("config", {"time_s": 1.0, "scope": "critic", "rank": 1, "values": {"lr": 2.0}})
    )
    add_rows(own, 3)
    add_rows(journal(run, "seen"), 3, first=10)
    assert deliver(run).is_complete
    assert steps() == [10, 11, 12]
    assert memory.RUNS["abc"].config.values == {"critic/lr": 2.0}


@pytest.mark.parametrize("start", [1, 2])
def test_the_journals_of_a_process_that_delivered_itself_are_taken_over_once_it_is_dead(
    plan, run, start
):
    own = RunDirectory(run.path)
    own.locks.hold("own")
    j = journal(run, "own", delivers=("faulty",))
    add_rows(j, 3)
    itself = new_delivery(run, "own", only="own")
    itself._hand_over.pass_on()
    itself._ledger.save(now=True)
    add_rows(j, 2, first=3)
    primary = new_delivery(run, "primary", start=start)
    primary.start()
    add_rows(journal(run, "seen"), 1, first=10)
    while 10 not in steps():
        time.sleep(0.01)
    assert steps() == [0, 1, 2, 10]
    own.locks.unlock()  # as its death does
    j.close()
    primary.stop(0, 5.0)
    assert primary.wait().is_complete
    assert sorted(steps()) == [0, 1, 2, 3, 4, 10]


def test_a_process_that_delivers_itself_settles_nothing_for_the_primary(plan, run):
    """A killed primary's hand-over is looked up though a secondary joined and finished meanwhile."""
    plan.is_durable = False
    add_rows(journal(run, "seen"), 3)
    primary = new_delivery(run, "primary")
    primary._hand_over.pass_on()
    primary._ledger.save(now=True)
    add_rows(journal(run, "own", delivers=("faulty",)), 2, first=10)
    assert deliver(run, "own", only="own").num_confirmed == 2
    assert deliver(run, "after").is_complete
    assert sorted(steps()) == [0, 1, 2, 10, 11]


def test_a_primary_settles_nothing_for_a_process_that_delivers_itself(plan, run):
    """A secondary's hand-over is looked up after its death though a primary came and went meanwhile."""
    plan.is_durable = False
    own = RunDirectory(run.path)
    own.locks.hold("own")
    add_rows(journal(run, "own", delivers=("faulty",)), 3)
    itself = new_delivery(run, "own", only="own")
    itself._hand_over.pass_on()
    itself._ledger.save(now=True)
    assert deliver(run, "primary").is_complete
    own.locks.unlock()
    assert deliver(run, "after").is_complete
    assert steps() == [0, 1, 2]


def test_a_process_that_delivers_itself_sends_the_configuration_of_all(plan, run):
    """On a tracker that replaces, its view may be the last one."""
    journal(run, "primary").append(
        encode("config", {"time_s": 1.0, "scope": "", "rank": 0, "values": {"lr": 1.0}})
    )
    own = journal(run, "own", delivers=("faulty",))
    own.append(
        encode("config", {"time_s": 1.0, "scope": "critic", "rank": 1, "values": {"lr": 2.0}})
    )
    assert deliver(run, "own", only="own").is_complete
    assert memory.RUNS["abc"].config.values == {
        "lr": 1.0,
        "critic/lr": 2.0,
        "overrides/critic/lr": {"base": 1.0, "asked": 1.0, "value": 2.0, "source": "own"},
    }


def test_a_process_can_deliver_its_own_journal_alone(plan, run):
    add_rows(journal(run, "mine"), 2)
    add_rows(journal(run, "other"), 2, first=10)
    assert deliver(run, only="mine").is_complete
    assert steps() == [0, 1]


def test_foreign_files_among_the_journals_are_ignored(plan, run):
    (run.journals / "x.jsonl").write_text("hello\n")
    (run.journals / "y.jsonl").write_text('{"kind":"open","schema":99}\n')
    (run.journals / "z.jsonl").write_text('{"kind":"row","seq":0}\n')
    add_rows(journal(run), 2)
    assert deliver(run).is_complete
    assert steps() == [0, 1]


def test_configuration_is_set_again_only_when_it_changed(plan, run):
    j = journal(run)
    body = {"time_s": 1.0, "scope": "", "rank": 0, "values": {"lr": 1.0}}
    j.append(encode("config", body))
    add_rows(j, 3)
    deliver(run)
    assert len(memory.RUNS["abc"].configs) == 1
    j.append(encode("config", {**body, "time_s": 2.0, "values": {"lr": 2.0}}))
    deliver(run, "second")
    assert memory.RUNS["abc"].config.values == {"lr": 2.0}
