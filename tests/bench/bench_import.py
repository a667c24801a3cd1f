"""Importing the package against importing the trackers that it speaks to, each in a fresh interpreter, in turn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.bench import Figure, environment, figure, ratios

NUM_ROUNDS = 7
OURS = "slime_logging"
OTHERS = ("wandb", "trackio", "mlflow", "tensorboardX")
CODE = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def run(quick: bool = False) -> list[Figure]:
    """Milliseconds of the `import` statement alone."""
    modules = (OURS,) if quick else (OURS, *OTHERS)
    taken: dict[str, list[float]] = {module: [] for module in modules}
    with tempfile.TemporaryDirectory(
        prefix="bench-import-", ignore_cleanup_errors=True
    ) as directory:
        for number in range(1 if quick else NUM_ROUNDS):
            for module in modules[:: 1 if number % 2 == 0 else -1]:
                taken[module].append(_milliseconds(module, Path(directory)))
    return [
        figure(
            "import slime_logging",
            median(taken[OURS]),
            "ms",
            n=len(taken[OURS]),
            others={
                f"import {name}": median(values) for name, values in taken.items() if name != OURS
            },
            ratio={f"import {name}": value for name, value in ratios(taken, OURS).items()},
        )
    ]


def _milliseconds(module: str, directory: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(module)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(directory),
        check=True,
        timeout=300,
    )
    return float(done.stdout) * 1000
