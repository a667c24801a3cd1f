"""Many processes in one run, by the public calls: joining, delivery to TensorBoard, and the commands on what they left.

Each secondary has a PPO job's 873 arguments; they join one after the other (on a cluster each has a processor of its
own), and what is promised of that is the time that their processor takes. Then all log a row at once, a few times, far enough apart for
their journals to count as idle. The lag is that of the last row of each time, until the tracker's cursor has confirmed
it. Commands are timed by the processor, their start included. The 10,000 are journals as such secondaries leave them, written without the processes.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from copy import copy
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from statistics import median

import orjson

from slime_logging.delivery.cursor import read_cursors
from slime_logging.demo.namespace import ppo_namespace
from slime_logging.record.journal import SUFFIX
from slime_logging.record.run import RunDirectory
from tests.bench import Figure, environment, figure
from tests.bench.runs import apart

NUMBERS = (64, 256, 1_000)
NUM_SIMULATED = 10_000
NUM_TIMES = 3
IDLE_S = 8.0
JOIN_S, LAG_S, COMMAND_S = 0.2, 5.0, 5.0
COMMANDS = ("show", "verify", "report")

PRIMARY = """
import pickle, sys, time
from pathlib import Path
import slime_logging
place = Path(sys.argv[1])
args = pickle.loads((place / "arguments.pickle").read_bytes())
slime_logging.init_tracking(args)
(place / "joined.tmp").write_bytes(pickle.dumps(args))
(place / "joined.tmp").rename(place / "joined.pickle")
while not (place / "stop").exists():
    time.sleep(0.1)
slime_logging.finish_tracking(args)
"""


def run(quick: bool = False) -> list[Figure]:
    """Seconds of each, by the number of processes."""
    figures: list[Figure] = []
    for number in (4,) if quick else NUMBERS:
        with tempfile.TemporaryDirectory(prefix="bench-scale-", ignore_cleanup_errors=True) as name:
            directory = Path(name)
            answer = apart(_crowd, directory, number, IDLE_S / 40 if quick else IDLE_S)
            figures += _figures(number, answer)
            if number == NUMBERS[-1] or quick:
                simulated = _simulated(directory, 20 if quick else NUM_SIMULATED)
                figures += _commands(20 if quick else NUM_SIMULATED, simulated, is_promised=False)
    return figures


def _figures(number: int, answer: dict[str, list[float]]) -> list[Figure]:
    joins, lags = answer["joins"], answer["lags"]
    return [
        figure(
            f"{number:,} secondaries: the slowest join",
            1e3 * max(joins),
            "ms",
            n=number,
            others={
                "the median join": 1e3 * median(joins),
                "of 99 in 100": 1e3 * sorted(joins)[(99 * number) // 100],
                "by the clock, median": 1e3 * median(answer["walls"]),
            },
            ratio={},
            target=f"<= {1e3 * JOIN_S:g} ms",
            is_met=max(joins) <= JOIN_S,
        ),
        figure(
            f"{number:,} secondaries: memory of the one that joined last",
            answer["bytes"][-1] / 2**20,
            "MiB",
            n=1,
            ratio={},
            others={"of the one that joined first": answer["bytes"][0] / 2**20},
            target="<= 1.2x the first",
            is_met=answer["bytes"][-1] <= 1.2 * answer["bytes"][0],
        ),
        figure(
            f"{number:,} secondaries: the longest delivery lag",
            max(lags),
            "s",
            n=len(lags),
            target=f"<= {LAG_S:g} s",
            is_met=max(lags) <= LAG_S,
        ),
        *_commands(
            number, dict(zip((*COMMANDS, "verify while it lives"), answer["commands"], strict=True))
        ),
    ]


def _commands(number: int, seconds: dict[str, float], *, is_promised: bool = True) -> list[Figure]:
    return [
        figure(
            f"{number:,} secondaries: {name}",
            value,
            "s",
            n=1,
            target=f"< {COMMAND_S:g} s" if is_promised else "",
            is_met=value < COMMAND_S if is_promised else None,
        )
        for name, value in seconds.items()
    ]


def _crowd(directory: Path, number: int, idle_s: float) -> dict[str, list[float]]:
    """Have so many processes join and log; what that took."""
    args = _job(directory)
    primary = _primary(directory, args)
    board = RawArray("d", 1 + 4 * number)
    pids: list[int] = []
    gc.freeze()  # a fork that touches its parent's objects pays for copies; processes of a job do not
    try:
        joined = pickle.loads((directory / "joined.pickle").read_bytes())
        for each in range(number):
            pids.append(_fork(each, joined, board))
            while not board[1 + 4 * each]:
                if os.waitpid(pids[-1], os.WNOHANG)[0]:
                    raise RuntimeError(f"secondary {pids.pop()} ended")
                time.sleep(0.002)
        run = RunDirectory(Path(joined.tracking_run_dir))
        lags = [_lag(run, board, number, each, idle_s) for each in range(1, NUM_TIMES + 1)]
        living = _command(run, "verify")
    finally:
        board[0] = -1
        for pid in pids:
            os.waitpid(pid, 0)
        (directory / "stop").touch()
        primary.wait(timeout=120)
    commands = [*(_command(run, name) for name in COMMANDS), living]
    return {
        "joins": list(board[4::4]),
        "walls": list(board[1::4]),
        "bytes": list(board[2::4]),
        "lags": lags,
        "commands": commands,
    }


def _job(directory: Path) -> Namespace:
    args = ppo_namespace()
    args.use_wandb, args.use_tensorboard = False, True
    args.tracking_dir, args.tracking_system_metrics = str(directory / "tracking"), "off"
    return args


def _primary(directory: Path, args: Namespace) -> subprocess.Popen[bytes]:
    (directory / "arguments.pickle").write_bytes(pickle.dumps(args))
    command = [sys.executable, "-c", PRIMARY, str(directory)]
    environ = environment(directory)
    process = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
    while not (directory / "joined.pickle").exists():
        if process.poll() is not None:
            raise RuntimeError("the primary ended")
        time.sleep(0.01)
    return process


def _fork(number: int, joined: Namespace, board: Sequence[float]) -> int:
    import slime_logging.session.session  # noqa: F401 - loaded once, before the fork

    pid = os.fork()
    if pid == 0:
        try:
            _take_part(number, joined, board)
        finally:
            os._exit(0)
    return pid


def _take_part(number: int, joined: Namespace, board: Sequence[float]) -> None:
    import slime_logging

    args = copy(joined)
    args.rank = number
    role = ("actor", "critic")[number % 2]
    begun_s, computed_s = time.perf_counter(), time.process_time()
    slime_logging.init_tracking(args, primary=False, role=role)
    seconds, cpu_s = time.perf_counter() - begun_s, time.process_time() - computed_s
    board[4 + 4 * number] = cpu_s
    board[2 + 4 * number] = _private_bytes()
    board[1 + 4 * number] = seconds
    seen = 0.0
    while board[0] >= 0:
        if board[0] != seen:
            seen = board[0]
            row = {"train/step": seen, "train/loss": 0.5, "train/grad_norm": 1.0}
            slime_logging.log(args, row, "train/step")
            board[3 + 4 * number] = time.time()
        time.sleep(0.5)


def _private_bytes() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024.0 * sum(int(line.split()[1]) for line in lines if line.startswith("Private"))


def _lag(
    run: RunDirectory, board: Sequence[float], number: int, time_number: int, idle_s: float
) -> float:
    """Have all log a row; seconds from the last of them to the tracker's word that it has all."""
    time.sleep(idle_s)
    begun_s = time.time()
    board[0] = time_number
    expected = number * time_number
    while min(board[3::4]) < begun_s:
        time.sleep(0.01)
    while sum(place.num_confirmed for place in read_cursors(run)[0].places.values()) < expected:
        time.sleep(0.05)
    return time.time() - max(board[3::4])


def _command(run: RunDirectory, name: str) -> float:
    """Seconds of the processor that a command takes, in a process of its own."""
    words = ["-o", str(run.path / "page.html")] if name == "report" else []
    main = "from slime_logging.cli import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", main, name, str(run.path), *words], check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _simulated(directory: Path, number: int) -> dict[str, float]:
    """The commands on a run with more journals than processes can be started; verify is not: it reads a tracker."""
    (path,) = (directory / "tracking").glob("*/run.json")
    run = RunDirectory(path.parent)
    models = [each for each in run.journal_paths() if "primary" not in each.name][:2]
    for each in range(number - len(run.journal_paths()) + 1):
        _copy(models[each % len(models)], f"simulated-{each}", run)
    return {name: _command(run, name) for name in ("show", "report")}


def _copy(model: Path, name: str, run: RunDirectory) -> None:
    lines = model.read_bytes().splitlines(keepends=True)
    opening = json.loads(lines[0])
    opening["journal"], opening["pid"] = name, 10_000_000 + hash(name) % 1_000_000
    (run.journals / f"{name}{SUFFIX}").write_bytes(
        orjson.dumps(opening) + b"\n" + b"".join(lines[1:])
    )
