"""Somebody who logs rows of 30 floats, in a process of its own: `python -m tests.bench.contestants NAME DIRECTORY`.

Policy: it obeys JSON lines on its input, `[number of rows, seconds between two]`, and answers each with the nanoseconds
that every single call took. Rows are made before the clock starts. Each tracker is called as its own manual says, in
the form in which it is fastest.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

NUM_METRICS = 30
STEP = "train/step"

Log = Callable[[dict[str, float]], object]
Close = Callable[[], object]


def floor(directory: Path) -> tuple[Log, Close]:
    """The least that surviving `kill -9` takes: JSON, and one write."""
    import orjson

    fd = os.open(directory / "floor.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return lambda row: os.write(fd, orjson.dumps(row) + b"\n"), lambda: os.close(fd)


def ours(directory: Path, **trackers: object) -> tuple[Log, Close]:
    """`slime_logging.log` in a process whose rows another one delivers, as in every process but the primary."""
    import slime_logging

    args = Namespace(tracking_dir=str(directory), tracking_system_metrics="off", **trackers)
    slime_logging.init_tracking(args)
    log = slime_logging.log
    return lambda row: log(args, row, STEP), lambda: slime_logging.finish_tracking(args)


def ours_delivering(directory: Path) -> tuple[Log, Close]:
    """`slime_logging.log` in a primary that delivers to W&B offline meanwhile."""
    return ours(directory, use_wandb=True, wandb_mode="offline")


def wandb(directory: Path) -> tuple[Log, Close]:
    """`wandb.log`, offline."""
    import wandb as client

    run = client.init(
        mode="offline",
        dir=str(directory),
        project="bench",
        settings=client.Settings(silent=True, console="off"),
    )
    return run.log, run.finish


def tensorboard(directory: Path) -> tuple[Log, Close]:
    """tensorboard's own writer, all metrics in one event."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(directory / "tensorboard"))

    def log(row: dict[str, float]) -> None:
        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in row.items()
            if name != STEP
        ]
        writer.add_event(
            Event(wall_time=time.time(), step=int(row[STEP]), summary=Summary(value=values))
        )

    return log, writer.close


def tensorboardx(directory: Path) -> tuple[Log, Close]:
    """tensorboardX, a call for each metric: it has no other."""
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(str(directory / "tensorboardx"))

    def log(row: dict[str, float]) -> None:
        step = int(row[STEP])
        for name, value in row.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def trackio(directory: Path) -> tuple[Log, Close]:
    """`trackio.log`, local."""
    os.environ["TRACKIO_DIR"] = str(directory / "trackio")
    import trackio as client

    client.init(project="bench", name="bench", embed=False, auto_log_gpu=False)
    return lambda row: client.log(row, step=int(row[STEP])), client.finish


def mlflow(directory: Path) -> tuple[Log, Close]:
    """`MlflowClient.log_batch` on SQLite: MLflow's fastest call that has written when it returns."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(f"sqlite:///{directory / 'mlflow.db'}")
    run_id = client.create_run(client.create_experiment("bench")).info.run_id

    def log(row: dict[str, float]) -> None:
        now_ms, step = int(time.time() * 1000), int(row[STEP])
        client.log_batch(
            run_id, metrics=[Metric(name, value, now_ms, step) for name, value in row.items()]
        )

    return log, lambda: client.set_terminated(run_id)


CONTESTANTS: dict[str, Callable[[Path], tuple[Log, Close]]] = {
    "floor": floor,
    "ours": ours,
    "ours_delivering": ours_delivering,
    "wandb": wandb,
    "tensorboard": tensorboard,
    "tensorboardx": tensorboardx,
    "trackio": trackio,
    "mlflow": mlflow,
}


def rows(num_rows: int, first_step: int) -> list[dict[str, float]]:
    """Rows of 30 random floats and a step, each an object of its own."""
    rng = random.Random(first_step)
    names = [f"train/metric_{number:02d}" for number in range(NUM_METRICS)]
    return [
        {STEP: step, **{name: rng.random() for name in names}}
        for step in range(first_step, first_step + num_rows)
    ]


def _measure(log: Log, batch: list[dict[str, float]], pause_s: float) -> list[int]:
    clock, nanoseconds = time.perf_counter_ns, []
    for row in batch:
        start = clock()
        log(row)
        nanoseconds.append(clock() - start)
        if pause_s:
            time.sleep(pause_s)
    return nanoseconds


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a tracker prints must not look like an answer
    log, close = CONTESTANTS[sys.argv[1]](Path(sys.argv[2]))
    step = 0
    print("ready", file=answers, flush=True)
    for request in sys.stdin:
        num_rows, pause_s = json.loads(request)
        print(json.dumps(_measure(log, rows(num_rows, step), pause_s)), file=answers, flush=True)
        step += num_rows
    close()


if __name__ == "__main__":
    main()
