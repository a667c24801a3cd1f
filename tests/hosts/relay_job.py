"""A job on Ray whose actor is on host 1, beside the driver, and whose critic is on host 2, which sees nothing of the run's directory.

    python -m tests.hosts.relay_job DISK TRACKERS NUM_RESTARTS TIMEOUT_S

Both log until the file `stop` is on host 1's disk; the number of each row goes into a file on the host's disk when `log`
has returned. Ray starts a killed one again; it joins the run again then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from argparse import Namespace
from pathlib import Path

import ray

import slime_logging

PREFIX = {"actor": "train/", "critic": "train/critic-"}


class Trainer:
    """Joins with its role, and logs in a thread of its own."""

    def __init__(self, args: Namespace, role: str, disk: str, pause_s: float) -> None:
        self._args, self._role, self._disk, self._pause_s = args, role, Path(disk), pause_s
        self._is_stopped = threading.Event()
        slime_logging.init_tracking(args, primary=False, role=role)
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()

    def ready(self) -> bool:
        return True

    def finish(self) -> None:
        self._is_stopped.set()
        self._thread.join()
        slime_logging.finish_tracking(self._args)

    def _train(self) -> None:
        who = time.time_ns() // 1000 % 10**9
        (self._disk / "acks").mkdir(exist_ok=True)
        acks = os.open(self._disk / "acks" / str(who), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        step = 0
        while not self._is_stopped.wait(self._pause_s):
            row = {
                "train/step": step,
                "train/who": who,
                f"{PREFIX[self._role]}loss": 0.5 / (step + 1),
            }
            slime_logging.log(self._args, row, "train/step")
            os.write(acks, b"%d\n" % step)
            step += 1


def arguments(disk: str, trackers: str) -> Namespace:
    """The job's arguments, as its driver parses them."""
    return Namespace(
        **{f"use_{name}": True for name in trackers.split(",") if name},
        use_critic=True,
        lr=1e-6,
        wandb_mode="offline",
        wandb_run_id="job",
        tracking_dir=f"{disk}/tracking",
        tracking_system_metrics="off",
    )


def main() -> None:
    """Run the driver."""
    disk, trackers, num_restarts, timeout_s = sys.argv[1:5]
    ray.init(address="auto", log_to_driver=True)
    args = arguments(disk, trackers)
    args.tracking_finish_timeout = float(timeout_s)
    slime_logging.init_tracking(args)
    trainers = [
        ray.remote(num_cpus=0, max_restarts=int(num_restarts), max_task_retries=-1)(Trainer)
        .options(resources={f"host{number}": 1})
        .remote(args, role, disk, 0.005)
        for number, role in enumerate(("actor", "critic"), 1)
    ]
    ray.get([trainer.ready.remote() for trainer in trainers])
    (Path(disk) / "ready").touch()
    rollout = 0
    while not (Path(disk) / "stop").exists():
        slime_logging.log(args, {"rollout/step": rollout, "rollout/reward": 0.1}, "rollout/step")
        rollout += 1
        time.sleep(0.1)
    ray.get([trainer.finish.remote() for trainer in trainers])
    slime_logging.finish_tracking(args)


if __name__ == "__main__":
    main()
