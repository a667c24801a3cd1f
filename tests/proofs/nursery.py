"""Starts writers fast: a process that has imported everything, and forks a writer for each line on its input.

A writer joins the run and logs rows for ever; the number of each row goes into a file of its own when `log` has
returned: these are the acknowledged rows. It ends well when a file named `stop` appears, and badly whenever a test
kills it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections import deque
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Nursery:
    """The parent's end. Writers are named by numbers that the test chooses, each used once.

    Args:
        place: a directory of its own; acknowledgements go to `place / "acks" / <number>`.
        environ: variables set for the writers.
    """

    def __init__(self, place: Path, environ: dict[str, str] | None = None) -> None:
        self.place = place
        self.acks = place / "acks"
        self.acks.mkdir(parents=True, exist_ok=True)
        self._pids: dict[int, int] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.proofs.nursery"],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(place / "nursery.log").open("ab"),
            text=True,
        )

    def start(self, number: int, args: dict[str, Any], **options: Any) -> None:
        """Fork a writer; the options are those of `write`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"number": number, "args": args, **options}) + "\n")
        self._process.stdin.flush()
        self._pids[number] = int(self._process.stdout.readline())

    def kill(self, number: int) -> None:
        """`kill -9` a writer and wait until it is gone."""
        pid = self._pids.pop(number)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._wait(pid)

    def finish(self, number: int, timeout_s: float = 60.0) -> None:
        """Wait until a writer has ended by itself."""
        self._wait(self._pids.pop(number), timeout_s)

    def finish_all(self) -> None:
        """Tell every writer to end well, and wait for it; primaries are told last."""
        (self.place / "stop").touch()
        for number in list(self._pids):
            self.finish(number)

    @property
    def living(self) -> list[int]:
        """The numbers of the writers that were started and not killed."""
        return sorted(self._pids)

    def acknowledged(self) -> set[tuple[int, int]]:
        """(writer's number, row's number) of every acknowledged row."""
        return {
            (int(path.name), int(line))
            for path in self.acks.iterdir()
            for line in path.read_bytes().split(b"\n")[:-1]
        }

    def log(self) -> str:
        """What the writers printed."""
        return (self.place / "nursery.log").read_text()

    def close(self) -> None:
        """Kill whoever is left."""
        for number in self.living:
            self.kill(number)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)

    @staticmethod
    def _wait(pid: int, timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.002)
        raise TimeoutError(f"writer {pid} did not end")


def main() -> None:
    """Fork a writer for each line."""
    from tensorboard.plugins.hparams import summary_v2  # noqa: F401
    from tensorboard.summary.writer import record_writer  # noqa: F401

    from slime_logging.backends import wandb  # noqa: F401 - what writers need is loaded once

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while line := sys.stdin.readline():
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(2, 1)
            code = 1
            try:
                write(**order)
                code = 0
            except BaseException as error:
                print(
                    f"writer {order['number']}: {type(error).__name__}: {error}",
                    file=sys.stderr,
                    flush=True,
                )
            os._exit(code)
        print(pid, flush=True)


def write(
    number: int,
    args: dict[str, Any],
    primary: bool = False,
    role: str | None = None,
    pause_s: float = 0.002,
    num_rows: int | None = None,
    wants_client: bool = False,
    is_timed: bool = False,
) -> None:
    """Join and log rows until told to stop.

    `pause_s` is the mean pause between rows; `num_rows` None means until told to stop; with `wants_client` a secondary
    opens its own W&B client. With `is_timed`, the file `times` gets when each `log` ended and how many microseconds it
    took, and `sockets` every network call of this process.
    """
    import slime_logging as sl

    if is_timed:
        sys.addaudithook(_note_sockets)

    given = Namespace(**args)
    if wants_client:
        sl.init_wandb_secondary(given, role)
    else:
        sl.init_tracking(given, primary=primary, role=role)
    random.seed(number)
    acks = os.open(f"acks/{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    step = 0
    times: deque[tuple[float, float]] = deque(maxlen=100_000)
    while step != num_rows and not (step % 16 == 0 and Path("stop").exists()):
        row = {"train/step": step, "train/who": number, "train/x": random.random()}
        begun = time.perf_counter_ns()
        sl.log(given, row, "train/step")
        times.append((time.time(), (time.perf_counter_ns() - begun) / 1000))
        os.write(acks, b"%d\n" % step)
        step += 1
        time.sleep(random.random() * 2 * pause_s)
    if primary:
        time.sleep(0.3)  # the others are told at the same time, and have less to do
    if is_timed:
        Path("times").write_text(json.dumps(list(times)))
    sl.finish_tracking(given)


def _note_sockets(event: str, details: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        with Path("sockets").open("a") as file:
            file.write(f"{threading.current_thread().name}: {event} {details[1:]}\n")


if __name__ == "__main__":
    main()
