"""What the tests of the W&B backend write, and how they compare."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slime_logging.backends.process import BackendProcess
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts

AXES = {"train": "train/step", "rollout": "rollout/step", "eval": "eval/step"}


def facts(directory: Path, options: dict[str, Any], run_id: str = "run-1") -> RunFacts:
    directory.mkdir(exist_ok=True)
    return RunFacts(
        run_id=run_id,
        project="project",
        name="name",
        group="group",
        directory=directory,
        created_s=1.0,
        axes=AXES,
        options=options,
    )


def rows(journal: str, start: int, stop: int, **extra: Any) -> list[Row]:
    return [
        Row(
            journal=journal,
            seq=number,
            time_s=1_700_000_000.25 + number,
            role="actor",
            step_key="train/step",
            step=number,
            metrics={f"train/{journal}": number / 7, "train/loss": 1 / (number + 1), **extra},
        )
        for number in range(start, stop)
    ]


def odd_rows(journal: str) -> list[Row]:
    odd: dict[str, Any] = {
        "nan": math.nan,
        "inf": -math.inf,
        "a.b": 1,
        "d": {"x": {"y": 1}, "e": {}},
        "text": "grün\n",
        "yes": True,
        "none": None,
        "list": [1, 2.5, "x"],
        "": 1,
        "_step": 4,
        "long" * 100: 1,
        "a*": 2,
        "é/ñ x": 3,
        "big": 2**70,
    }
    return rows(journal, 0, 1, **odd)


CONFIG = RunConfig(
    values={
        "lr": 1e-6,
        "--lr": 3,
        "betas": [0.9, 0.98],
        "whole": 2.0,
        "empty": {},
        "nested": {"a": {"b": None}, "c.d": "x"},
        "critic/lr": 1e-5,
        "overrides/critic/lr": {"base": 1e-6, "value": 1e-5},
        "seed": 2**60,
        "": "nameless",
    },
    roles={},
)


def points(backend: BackendProcess, written: Iterable[Row]) -> Counter[Any]:
    return Counter(point for row in written for point in backend.points(row))


def held(run: RunFacts) -> Counter[Any]:
    return Counter(BackendProcess("wandb").read_points(run))
