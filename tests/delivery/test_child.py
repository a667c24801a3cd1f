"""A tracker's own process: it runs the vendor's client, and is ended and begun anew when that broke or hangs."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil

from slime_logging.delivery import attempts
from slime_logging.delivery.cursor import read_cursors
from slime_logging.delivery.refused import read_set_aside
from slime_logging.errors import TryAgain, WillNeverWork
from tests.delivery.test_delivery import add_rows, journal, new_delivery, plan, run, steps
from tests.delivery.test_supervisor import our_processes, start_job, wait_until_delivered

__all__ = ["plan", "run"]


def deliver_alone(run, timeout_s=5.0, num=1):
    """Deliver as successive processes of one tracker do; returns the deliveries."""
    done = []
    while not done or done[-1].needs_new_process:
        delivery = new_delivery(run, "d", is_alone=True)
        delivery.start()
        delivery.stop(0, timeout_s)
        delivery.wait()
        done.append(delivery)
        assert len(done) < 10
    return done


def test_a_client_with_a_queue_that_broke_is_left_to_die_and_a_new_process_goes_on(plan, run):
    """The old one could go on writing behind the back of the new one, as long as its process lives."""
    plan.is_durable, plan.has_queue = False, True
    plan.writes = [TryAgain("connection lost")]
    add_rows(journal(run), 50)
    first, second = deliver_alone(run)
    assert (first.needs_new_process, second.result().is_complete) == (True, True)
    assert steps() == list(range(50))
    assert plan.num_opens == 2


def test_a_new_process_knows_that_a_row_was_refused_and_finds_out_which(plan, run):
    plan.is_durable = False
    plan.refuses = lambda row: WillNeverWork("no sevens") if row.step == 7 else None
    add_rows(journal(run), 20)
    *_, last = deliver_alone(run)
    assert last.result().is_complete
    assert steps() == [step for step in range(20) if step != 7]
    assert len(read_set_aside(run)) == 1


def test_the_own_journals_of_a_process_are_gone_on_with_where_its_last_delivery_ended(plan, run):
    """A secondary with a client of its own: a new process of its delivery doubles nothing."""
    own = journal(run, "own", delivers=("faulty",))
    add_rows(own, 10)
    for _ in range(2):
        delivery = new_delivery(run, "own", is_primary=False, only="own")
        delivery.start()
        delivery.stop(None, 5.0)
        delivery.wait()
        add_rows(own, 5, first=10) if len(steps()) == 10 else None
    assert steps() == list(range(15))


def test_a_client_that_hangs_is_told_with_the_calls_in_which_it_does(plan, run, monkeypatch):
    monkeypatch.setattr(attempts, "HANG_S", 0.2)
    plan.refuses = lambda row: time.sleep(2)
    add_rows(journal(run), 1)
    delivery = new_delivery(run, "d")
    delivery.start()
    deadline_s = time.monotonic() + 10
    while not delivery.is_hanging:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    delivery.note_hang()
    (cursor,) = read_cursors(run)
    assert cursor.state == "waiting"
    assert "< write (trackers.py:" in cursor.reason
    delivery.stop(0, 5.0)
    delivery.wait()


def test_a_pause_is_no_hang(plan, run, monkeypatch):
    monkeypatch.setattr(attempts, "HANG_S", 0.1)
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 1.0)
    plan.opens = [TryAgain("down")]
    delivery = new_delivery(run, "d")
    delivery.start()
    deadline_s = time.monotonic() + 0.6
    while time.monotonic() < deadline_s:
        assert not delivery.is_hanging
        time.sleep(0.02)
    delivery.stop(0, 5.0)
    assert delivery.wait().is_complete


def test_a_tracker_has_one_process_and_what_its_vendor_starts(tmp_path):
    """No process of ours between the delivery and the client; none sees another tracker's key."""
    then = """
        sl.finish_tracking(args)
        more = Namespace(use_wandb=True, use_mlflow=True, wandb_mode="offline", lr=1.0,
                         tracking_dir=sys.argv[1] + "/both", wandb_run_id="job",
                         tracking_system_metrics="off")
        sl.init_tracking(more)
        log(10, 0, more)
        print("ready", flush=True)
        sys.stdin.readline()
        sl.finish_tracking(more)
        """
    environment = {"WANDB_API_KEY": "c4n4ry" * 6, "PATH": "/usr/bin:/bin"}
    job = start_job(tmp_path, then, stdin=-1, env=environment)
    assert job.stdout.readline() == "ready\n", job.stderr.read()
    deadline_s = time.monotonic() + 60
    while "wandb-core" not in (found := _below(tmp_path / "both")).values():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    assert sorted(name for name in found.values() if name != "wandb-core") == [
        "child",
        "child",
        "supervisor",
    ]
    for process in found:
        assert "c4n4ry" not in str(process.environ()) + str(process.cmdline())
    job.communicate("\n", timeout=60)
    wait_until_delivered(tmp_path / "both")


def _below(place) -> dict[psutil.Process, str]:
    """The processes that deliver, and all below them, by name; what ended meanwhile is left out."""
    found = {}
    for process in our_processes(place):
        with suppress(psutil.Error):
            for each in [process, *process.children(recursive=True)]:
                found[each] = _name(each)
    return found


def _name(process: psutil.Process) -> str:
    words = " ".join(process.cmdline())
    return next(
        (name for name in ("child", "supervisor") if f"slime_logging.delivery.{name}" in words),
        process.name(),
    )
