"""What tracking costs the training process itself, beside the call of `log`: processor time, memory, threads, descriptors.

Three processes run the same loop of pauses and rows: without tracking, with ours (W&B offline and TensorBoard, whose
delivery is busy meanwhile in processes of its own), and with `wandb.log`. What the loop itself costs is taken off.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import Figure, environment, figure

NUM_ROWS = 3_000
PAUSE_S = 0.002

CODE = """
import json, os, sys, threading, time
import psutil
kind, num_rows, pause_s, place = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
row = {f"train/metric_{number}": number * 0.1 for number in range(30)}
me = psutil.Process()
if kind == "ours":
    from argparse import Namespace
    import slime_logging
    slime_logging.init_tracking(Namespace())
    import slime_logging.session.session
elif kind == "wandb":
    import wandb
def cost():
    cpu = me.cpu_times()
    return {"cpu_ms": 1e3 * (cpu.user + cpu.system), "mib": me.memory_info().rss / 2**20,
            "threads": me.num_threads(), "descriptors": me.num_fds()}
before = cost()
if kind == "ours":
    args = Namespace(use_wandb=True, wandb_mode="offline", use_tensorboard=True, tracking_dir=place)
    slime_logging.init_tracking(args)
elif kind == "wandb":
    settings = wandb.Settings(silent=True, console="off")
    run = wandb.init(mode="offline", dir=place, project="bench", settings=settings)
begun = me.cpu_times()
for step in range(num_rows):
    if kind == "ours":
        slime_logging.log(args, {**row, "train/step": step}, "train/step")
    elif kind == "wandb":
        run.log({**row, "train/step": step})
    else:
        {**row, "train/step": step}
    time.sleep(pause_s)
after = cost()
ended = me.cpu_times()
found = {name: after[name] - before[name] for name in after}
found["cpu_us"] = 1e6 * (ended.user + ended.system - begun.user - begun.system) / num_rows
print(json.dumps(found), flush=True)
if kind == "ours":
    slime_logging.finish_tracking(args)
elif kind == "wandb":
    run.finish()
"""


def run(quick: bool = False) -> list[Figure]:
    """One row a kind of cost."""
    num_rows = 50 if quick else NUM_ROWS
    kinds = ("none", "ours") if quick else ("none", "ours", "wandb")
    found = {kind: _cost(kind, num_rows) for kind in kinds}
    rows = (
        ("processor time a row, all threads", "cpu_us", "us", None),
        ("memory", "mib", "MiB", 5.0),
        ("threads", "threads", "", 0.0),
        ("descriptors", "descriptors", "", 2.0),
    )
    return [_figure(found, num_rows, *row) for row in rows]


def _figure(
    found: dict[str, dict[str, float]],
    num_rows: int,
    title: str,
    key: str,
    unit: str,
    most: float | None,
) -> Figure:
    net = {kind: max(0.0, values[key] - found["none"][key]) for kind, values in found.items()}
    others = {"wandb.log": net["wandb"]} if "wandb" in net else {}
    ratio = {name: net["ours"] / value for name, value in others.items() if value}
    return figure(
        f"the training process's own cost: {title}",
        net["ours"],
        unit,
        n=num_rows,
        others=others,
        ratio=ratio,
        target="" if most is None else f"<= {most:g} {unit}".strip(),
        is_met=None if most is None else net["ours"] <= most,
    )


def _cost(kind: str, num_rows: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-cost-", ignore_cleanup_errors=True) as place:
        done = subprocess.run(
            [sys.executable, "-c", CODE, kind, str(num_rows), str(PAUSE_S), place],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(Path(place)),
            check=True,
            timeout=300,
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[0])
    return found
