"""W&B online, the real client against a strict server: converging configuration, confirmed rows, kinds of failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.process import BackendProcess
from slime_logging.backends.wandb.form import comparable, history_point
from slime_logging.errors import TryAgain, WillNeverWork
from slime_logging.values.run import RunConfig, RunFacts
from tests.backends.wandb_rows import AXES, CONFIG, facts, held, odd_rows, points, rows
from tests.wandb_server import WandbServer

pytest.importorskip("wandb")

ROOT = Path(__file__).parents[2]
PRIMARY = Writer(label="primary", is_shared=True)


def secondary(number: int) -> Writer:
    return Writer(label=f"secondary-{number}", is_primary=False, is_shared=True)


def stored(server: WandbServer, run: RunFacts) -> Counter[Any]:
    """The points on the server, without the second that it takes to ask for them by the API."""
    return Counter(history_point(row) for row in server.rows(run.run_id))


def test_plain_what_the_server_holds_is_what_was_written(
    tmp_path: Path, wandb_server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One writer: rows, times, configuration, axes and state; read back by the public API; no secret sent or stored."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "c4n4ry")
    monkeypatch.setattr(sys, "argv", ["train.py", "--wandb-key=c4n4ry"])
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    environ = dict(os.environ)
    backend.open(run, Writer(label="primary"))
    backend.set_config(CONFIG)
    written = [*odd_rows("odd"), *rows("a", 0, 200)]
    backend.write(written)
    backend.close(3, 30)
    assert held(run) == points(backend, written)
    assert backend.read_config(run) == backend.config_as_held(CONFIG)
    found = wandb_server.run(run.run_id)
    assert found is not None
    assert (found["state"], found["exit_code"]) == ("failed", 3)
    assert [row["_timestamp"] for row in found["history"]] == [row.time_s for row in written]
    declared = {axis["1"] for axis in found["config"]["_wandb"]["value"]["m"] if "1" in axis}
    assert set(AXES.values()) <= declared
    assert not any(axis.get("2") == "*" for axis in found["config"]["_wandb"]["value"]["m"])
    assert dict(os.environ) == environ
    for secret in (wandb_server.key, "c4n4ry"):
        assert all(secret not in str(request) for request in wandb_server.requests)
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path
    assert not (tmp_path / "home" / ".netrc").exists()


@pytest.mark.parametrize("semantics", ["replace", "merge"])
@pytest.mark.parametrize("last", ["primary", "secondary"])
def test_shared_writers_converge_whoever_finishes_last(
    tmp_path: Path, wandb_server: WandbServer, semantics: str, last: str
) -> None:
    """A primary and two secondaries: all rows, one configuration and one table of axes, on either kind of server."""
    wandb_server.behave(config=semantics)
    run = facts(tmp_path / "run", wandb_server.options)
    backends = [BackendProcess("wandb"), BackendProcess("wandb"), BackendProcess("wandb")]
    for number, backend in enumerate(backends):
        backend.open(run, secondary(number) if number else PRIMARY)
        backend.set_config(CONFIG)
        backend.write(rows(f"w{number}", 0, 20))
    for backend in backends if last == "secondary" else reversed(backends):
        backend.close(0 if backend is backends[0] else None, 30)
    expected = points(
        backends[0], [row for number in range(3) for row in rows(f"w{number}", 0, 20)]
    )
    assert stored(wandb_server, run) == expected
    assert comparable(wandb_server.config(run.run_id)) == backends[0].config_as_held(CONFIG)
    found = wandb_server.run(run.run_id)
    assert found is not None
    declared = {axis["1"] for axis in found["config"]["_wandb"]["value"]["m"] if "1" in axis}
    assert set(AXES.values()) <= declared
    if last == "primary":
        assert found["state"] == "finished"


def test_a_primary_that_leaves_a_run_that_is_not_over_does_not_end_it(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """Closed without an exit code, the run is shown as preempted, and continues where it was."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.set_config(CONFIG)
    backend.write(rows("a", 0, 5))
    backend.close(None, 30)
    found = wandb_server.run(run.run_id)
    assert found is not None
    assert found["state"] == "preempted"
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 5, 9))
    backend.close(0, 30)
    assert stored(wandb_server, run) == points(backend, rows("a", 0, 9))
    assert comparable(wandb_server.config(run.run_id)) == backend.config_as_held(CONFIG)


@pytest.mark.parametrize(
    ("exit_code", "state"),
    [(0, "finished"), (3, "failed"), (137, "failed"), (143, "preempted")],
)
def test_how_the_job_ended_is_the_state_of_the_run(
    tmp_path: Path, wandb_server: WandbServer, exit_code: int, state: str
) -> None:
    """A job that was asked to end by SIGTERM is preempted, one that vanished failed."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.close(exit_code, 30)
    found = wandb_server.run(run.run_id)
    assert found is not None
    assert found["state"] == state


def test_changed_configuration_only_adds_what_changed(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """Called again with the whole of it, a changed value is replaced without an error."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.set_config(RunConfig(values={"lr": 1, "seed": 2}, roles={}))
    backend.set_config(RunConfig(values={"lr": 3, "seed": 2}, roles={}))
    backend.close(0, 30)
    assert wandb_server.config(run.run_id) == {"lr": 3, "seed": 2}


def test_an_outage_at_the_start_is_try_again_and_a_later_open_succeeds(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """No "run ID is in use" after a failed start."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb", open_timeout_s=4)
    wandb_server.fail("UpsertBucket", 503)
    with pytest.raises(TryAgain):
        backend.open(run, Writer(label="primary"))
    wandb_server.heal()
    backend = BackendProcess("wandb")  # on a busy machine the client's own import takes seconds
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    backend.close(0, 30)
    assert stored(wandb_server, run) == points(backend, rows("a", 0, 5))


@pytest.mark.parametrize("action", ["hang", "cut"])
def test_open_is_bounded(tmp_path: Path, wandb_server: WandbServer, action: str) -> None:
    """A server that hangs or cuts every connection: TryAgain at the deadline."""
    wandb_server.fail("*", action=action)
    with pytest.raises(TryAgain):
        BackendProcess("wandb", open_timeout_s=2).open(
            facts(tmp_path / "run", wandb_server.options), Writer(label="primary")
        )
    wandb_server.heal()


def test_a_server_that_is_not_there_is_try_again(tmp_path: Path, wandb_server: WandbServer) -> None:
    """Connection refused."""
    run = facts(tmp_path / "run", wandb_server.options)
    wandb_server.kill()
    with pytest.raises(TryAgain):
        BackendProcess("wandb", open_timeout_s=3).open(run, Writer(label="primary"))


def test_a_wrong_key_will_never_work_and_says_what_to_do(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """The message names the flag and the variable, and does not show the key."""
    run = facts(tmp_path / "run", {**wandb_server.options, "wandb_key": "f" * 40})
    with pytest.raises(WillNeverWork, match="--wandb-key or WANDB_API_KEY") as caught:
        BackendProcess("wandb").open(run, Writer(label="primary"))
    assert "f" * 40 not in str(caught.value)


def test_no_key_at_all_will_never_work_and_asks_nobody(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """No prompt on a terminal, no login: an error with the fix."""
    run = facts(tmp_path / "run", {**wandb_server.options, "wandb_key": None})
    with pytest.raises(WillNeverWork, match="--wandb-key or WANDB_API_KEY"):
        BackendProcess("wandb").open(run, Writer(label="primary"))


@pytest.mark.parametrize("status", [400, 413])
def test_a_stream_that_the_server_refused_for_good_is_not_called_delivered(
    tmp_path: Path, wandb_server: WandbServer, status: int
) -> None:
    """The client keeps silent; close does not, and a new client delivers what is missing."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    wandb_server.fail("file_stream", status)
    backend.write(rows("a", 0, 5))
    with pytest.raises(TryAgain, match=str(status)):
        backend.close(0, 30)
    wandb_server.heal()
    if status == 413:
        backend.open(run, Writer(label="primary"))
        backend.write(rows("a", 0, 5))
        backend.close(0, 30)
        assert stored(wandb_server, run) == points(backend, rows("a", 0, 5))


@pytest.mark.parametrize("fault", [{"status": 429}, {"action": "hang"}])
def test_close_is_bounded(tmp_path: Path, wandb_server: WandbServer, fault: dict[str, Any]) -> None:
    """A server that never takes the rows: TryAgain at the deadline, no process left, and close may be called again."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    wandb_server.fail("file_stream", **fault)
    with pytest.raises(TryAgain):
        backend.close(0, 2)
    wandb_server.heal()
    backend.close(0, 2)


@pytest.mark.parametrize(("option", "num_samplers"), [(None, 1), ("off", 0)])
def test_system_metrics_can_be_switched_off(
    tmp_path: Path, option: str | None, num_samplers: int
) -> None:
    """`off` leaves no sampler of W&B's own running either."""
    backend = BackendProcess("wandb")
    options = {"wandb_mode": "offline", "tracking_system_metrics": option}
    backend.open(facts(tmp_path / "run", options), Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    deadline_s = time.monotonic() + (10 if num_samplers else 1)
    while (found := samplers()) != num_samplers and time.monotonic() < deadline_s:
        time.sleep(0.05)
    backend.close(0, 30)
    assert found == num_samplers


def samplers() -> int:
    """W&B's own samplers below this process."""
    names = [
        process.name()
        for process in psutil.Process().children(recursive=True)
        if process.status() != psutil.STATUS_ZOMBIE
    ]
    return sum(name in ("wandb-symon", "gpu_stats", "wandb-xpu") for name in names)


def test_a_hanging_client_says_in_which_call(tmp_path: Path, wandb_server: WandbServer) -> None:
    """What a user needs to report it to those who made the client."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    wandb_server.fail("file_stream", action="hang")
    with pytest.raises(
        TryAgain, match=r"did not answer within \S+ s, in .+ < finish \(wandb_run\.py:\d+\)"
    ):
        backend.close(0, 2)
    wandb_server.heal()


def test_counts_that_lag_are_waited_for(tmp_path: Path, wandb_server: WandbServer) -> None:
    """A passing 500 on the way, and line counts that are two seconds old at the resume: nothing doubled or lost."""
    wandb_server.behave(lag_s=1.0)
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    wandb_server.fail("file_stream", 500, times=1)
    backend.close(None, 30)
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 5, 9))
    backend.close(0, 30)
    assert stored(wandb_server, run) == points(backend, rows("a", 0, 9))


def test_a_killed_server_comes_back_with_what_it_had(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """kill -9 of the server between two writes: the client repeats what was not taken."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    wandb_server.restart()
    backend.write(rows("a", 5, 9))
    backend.close(0, 30)
    assert stored(wandb_server, run) == points(backend, rows("a", 0, 9))


def test_an_inherited_service_does_not_matter(
    tmp_path: Path, wandb_server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WANDB_SERVICE and WANDB_RUN_ID of a parent are neither used nor changed."""
    monkeypatch.setenv("WANDB_SERVICE", "3-1-unix-/nowhere/socket")
    monkeypatch.setenv("WANDB_RUN_ID", "somebody-elses")
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    backend.close(0, 30)
    assert len(wandb_server.rows(run.run_id)) == 5
    assert os.environ["WANDB_SERVICE"] == "3-1-unix-/nowhere/socket"


def test_rows_lost_by_the_server_are_missing_from_the_points(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """As early rows vanish after a late secondary logs, read_points shows exactly which are gone."""
    wandb_server.behave(lose_early=11)
    run = facts(tmp_path / "run", wandb_server.options)
    primary, late = BackendProcess("wandb"), BackendProcess("wandb")
    primary.open(run, PRIMARY)
    primary.write(rows("a", 0, 30))
    deadline_s = time.monotonic() + 20
    while len(wandb_server.rows(run.run_id)) < 30 and time.monotonic() < deadline_s:
        time.sleep(0.1)
    late.open(run, secondary(1))
    late.write(rows("b", 0, 3))
    late.close(None, 30)
    primary.close(0, 30)
    expected = points(primary, [*rows("a", 0, 30), *rows("b", 0, 3)])
    missing = expected - held(run)
    assert missing == points(primary, rows("a", 0, 11))


def test_reading_a_run_that_the_server_does_not_know_finds_nothing(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """A run whose first delivery never got through is empty, not an error."""
    run = facts(tmp_path / "run", wandb_server.options, run_id="unknown")
    assert not held(run)


def test_reading_from_a_server_that_is_down_is_try_again(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """Not knowing is not the same as nothing there."""
    run = facts(tmp_path / "run", wandb_server.options)
    wandb_server.fail("*", 500)
    with pytest.raises(TryAgain):
        next(iter(BackendProcess("wandb", read_timeout_s=3).read_points(run)))
    wandb_server.heal()


def test_a_killed_job_is_continued_on_the_server(tmp_path: Path, wandb_server: WandbServer) -> None:
    """SIGKILL before anything was confirmed: what the server got is found, the rest delivered, nothing twice."""
    run = facts(tmp_path / "run", wandb_server.options)
    script = f"""
        import os, signal, time
        from pathlib import Path
        from slime_logging.backends.base import Writer
        from slime_logging.backends.process import BackendProcess
        from tests.backends.wandb_rows import facts, rows
        backend = BackendProcess("wandb")
        backend.open(facts(Path({str(tmp_path / "run")!r}), {wandb_server.options!r}), Writer(label="primary"))
        backend.write(rows("a", 0, 100))
        time.sleep(6)
        backend.write(rows("a", 100, 200))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    backend, written = BackendProcess("wandb"), rows("a", 0, 200)
    time.sleep(backend.settle_s(run))
    before = held(run)
    missing = [row for row in written if not all(before[point] for point in backend.points(row))]
    assert 0 < len(missing) < 200
    backend.open(run, Writer(label="primary"))
    backend.write(missing)
    backend.close(0, 30)
    assert held(run) == points(backend, written)


def test_a_server_that_lets_nobody_read_is_taken_at_its_word(
    tmp_path: Path, wandb_server: WandbServer
) -> None:
    """Where the read API is refused, rows that the stream took count as delivered."""
    run = facts(tmp_path / "run", wandb_server.options)
    backend = BackendProcess("wandb")
    backend.open(run, Writer(label="primary"))
    backend.write(rows("a", 0, 5))
    for operation in ("Run", "GetDefaultEntity", "RunHistoryKeys"):
        wandb_server.fail(operation, 403)
    backend.close(0, 20)
    assert len(wandb_server.rows(run.run_id)) == 5
