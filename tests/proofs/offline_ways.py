"""A job without internet, delivered by W&B's own offline way and by `sync --follow`, while both sides are killed.

`python -m tests.proofs.offline_ways [ROUNDS]` prints the table of docs/clusters.md. In each round a job logs rows to one
run id, is killed three times by kill -9 and started again; beside it what brings the rows to a server is started again
and again and killed four times; in the end both are left to finish. Counted are acknowledged rows (`log` had returned)
that the server lacks, and rows that it holds more than once.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.wandb_server.control import ROOT, WandbServer

NUM_KILLS = 3
NUM_SYNC_KILLS = 4
PATIENCE_S = 90.0

JOB = """
import os, sys, time
from pathlib import Path
way, run_id, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if way == "wandb":
    import wandb
    run = wandb.init(mode="offline", id=run_id, resume="allow", project="offline")
    log, finish = run.log, run.finish
else:
    from argparse import Namespace
    import slime_logging as sl
    args = Namespace(use_wandb=True, wandb_mode="online", wandb_project="offline", wandb_run_id=run_id)
    args.tracking_delivery, args.tracking_system_metrics, args.tracking_dir = "off", "off", "tracking"
    sl.init_tracking(args)
    log = lambda row: sl.log(args, row, "train/step")
    finish = lambda: sl.finish_tracking(args)
acks = os.open("acks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for step in range(first, last):
    log({"train/step": step, "train/x": 0.5})
    os.write(acks, b"%d\\n" % step)
    time.sleep(0.005)
finish()
"""

WAYS: dict[str, list[str]] = {
    "wandb sync": ["wandb", "sync", "--yes", "wandb"],
    "wandb beta sync --live": ["wandb", "beta", "sync", "--live", "--yes", "wandb"],
    "sync --follow": ["slime-logging", "sync", "--follow", "tracking"],
}


def main() -> None:
    """Run the rounds and print what they lost and doubled."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for way in WAYS:
        total: Counter[str] = Counter()
        for number in range(rounds):
            with tempfile.TemporaryDirectory(prefix="offline-", ignore_cleanup_errors=True) as name:
                total.update(_round(way, Path(name), random.Random(number)))
        print(f"{way}: {dict(total)}", flush=True)


def _round(way: str, place: Path, chance: random.Random) -> dict[str, int]:
    server = WandbServer(place / "server").start()
    server.behave(offsets="honour")
    try:
        return _killed(way, place, chance, server)
    finally:
        server.stop()


def _killed(way: str, place: Path, chance: random.Random, server: WandbServer) -> dict[str, int]:
    bringer = _Bringer(way, place, server)
    first, kind = 0, "wandb" if way.startswith("wandb") else "ours"
    for number in range(NUM_KILLS + 1):
        last = first + 400 if number == NUM_KILLS else 10**6
        command = [sys.executable, "-c", JOB, kind, "job", str(first), str(last)]
        job = subprocess.Popen(
            command, cwd=place, env=_environment(place, server), stderr=subprocess.DEVNULL
        )
        _wait(lambda first=first: len(_acknowledged(place)) > first + 50)
        if number == NUM_KILLS:
            job.wait()
            break
        for _ in range(2 if number == 0 else 1):
            time.sleep(1.0 + chance.random())
            bringer.kill()
            bringer.begin()
        job.kill()
        job.wait()
        first = max(_acknowledged(place)) + 1
    acknowledged = _acknowledged(place)
    bringer.finish(lambda: _steps(server) >= acknowledged)
    held = Counter(row["train/step"] for row in server.rows("job") if "train/step" in row)
    return {
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - set(held)),
        "doubled": sum(number - 1 for number in held.values()),
        "restarts": bringer.num_begun,
    }


class _Bringer:
    """What brings the rows to the server: started again whenever it has ended, as by a cron job."""

    def __init__(self, way: str, place: Path, server: WandbServer) -> None:
        self._command = [str(Path(sys.executable).with_name(WAYS[way][0])), *WAYS[way][1:]]
        self._place, self._server, self._log = place, server, place / "bringer.log"
        self._is_live = way == "sync --follow"
        self._process: subprocess.Popen[bytes] | None = None
        self.num_begun = 0
        (place / "tracking").mkdir()
        (place / "wandb").mkdir()
        self.begin()

    def begin(self) -> None:
        self.num_begun += 1
        self._process = subprocess.Popen(
            self._command,
            cwd=self._place,
            env=_environment(self._place, self._server),
            stdout=self._log.open("ab"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill(self) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self, is_complete: Callable[[], bool]) -> None:
        """Left alone it has time until all is there; W&B's way is called twice more, to its end."""
        assert self._process is not None
        deadline_s = time.monotonic() + PATIENCE_S
        if self._is_live:
            while not is_complete() and time.monotonic() < deadline_s:
                time.sleep(0.5)
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=60)
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=PATIENCE_S)
        self.kill()  # with --live it may wait for a job that is gone
        self._command = [word for word in self._command if word != "--live"]
        for _ in range(2):
            self.begin()
            assert self._process.wait(timeout=600) == 0, self._log.read_text()[-2000:]


def _environment(place: Path, server: WandbServer) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(place),
        "WANDB_BASE_URL": server.url,
        "WANDB_API_KEY": server.key,
        "WANDB_SILENT": "true",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _acknowledged(place: Path) -> set[int]:
    path = place / "acks"
    return {int(line) for line in path.read_bytes().split(b"\n")[:-1]} if path.exists() else set()


def _steps(server: WandbServer) -> set[int]:
    return {int(row["train/step"]) for row in server.rows("job") if "train/step" in row}


def _wait(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline_s:
            raise RuntimeError("the job does not log")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
