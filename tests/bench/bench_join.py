"""Joining a run as a role, against `wandb.init`: time and memory, each in a fresh process, in turn."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from statistics import median

import slime_logging
from slime_logging.demo.namespace import ppo_namespace
from tests.bench import Figure, environment, figure, ratios
from tests.bench.runs import join

NUM_ROUNDS = 7
SHARE = 0.05
OTHER = "wandb.init, offline"


def run(quick: bool = False) -> list[Figure]:
    """The call itself and the memory that it adds, in a process whose arguments have loaded what a trainer loads."""
    with tempfile.TemporaryDirectory(prefix="bench-join-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        primary = join(directory / "tracking")
        arguments = _arguments(primary, directory, Namespace() if quick else ppo_namespace())
        answers: dict[str, list[dict[str, float]]] = {"ours": [], "wandb": []}
        for number in range(1 if quick else NUM_ROUNDS):
            for joiner in ("ours", "wandb")[:: 1 if number % 2 == 0 else -1]:
                if not (quick and joiner == "wandb"):
                    answers[joiner].append(_ask(joiner, arguments, directory))
        slime_logging.finish_tracking(primary)
    return [
        _figure("join a run as a role, 873 arguments", answers, "join_s", "ms", 1e3),
        _figure(
            "memory that joining adds, services started included",
            answers,
            "join_bytes",
            "MiB",
            2**-20,
        ),
        _figure("memory of import and joining", answers, "bytes", "MiB", 2**-20, is_promised=False),
    ]


def _arguments(made: Namespace, directory: Path, args: Namespace) -> Path:
    args.use_wandb = False
    args.tracking_dir, args.tracking_system_metrics = made.tracking_dir, "off"
    args.wandb_run_id, args.tracking_run_dir = made.wandb_run_id, made.tracking_run_dir
    path = directory / "arguments.pickle"
    path.write_bytes(pickle.dumps(args))
    return path


def _ask(joiner: str, arguments: Path, directory: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.joiners", joiner, str(arguments), str(directory)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(directory),
        check=True,
        timeout=300,
    )
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _figure(
    name: str,
    answers: dict[str, list[dict[str, float]]],
    key: str,
    unit: str,
    scale: float,
    *,
    is_promised: bool = True,
) -> Figure:
    values = {
        joiner: [answer[key] * scale for answer in given]
        for joiner, given in answers.items()
        if given
    }
    ratio = {OTHER: ratios(values, "ours")["wandb"]} if "wandb" in values else {}
    return figure(
        name,
        median(values["ours"]),
        unit,
        n=len(values["ours"]),
        others={OTHER: median(values["wandb"])} if "wandb" in values else {},
        ratio=ratio,
        target=f"<= {SHARE:g}x wandb.init" if is_promised else "",
        is_met=all(value <= SHARE for value in ratio.values()) if is_promised else None,
    )
