"""`python -m tests.bench [--only NAME] [--quick] [--output FILE]`: measure, print a table, rewrite docs/benchmarks.md.

With `--only` the table is printed and no file is written, unless one is named.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.bench import Figure

NAMES = (
    "log",
    "cost",
    "samples",
    "redaction",
    "join",
    "scale",
    "import",
    "drain",
    "flat",
    "roles",
    "config",
    "report",
)
DEFAULT_OUTPUT = Path(__file__).parents[2] / "docs" / "benchmarks.md"
PACKAGES = ("wandb", "tensorboard", "tensorboardX", "trackio", "mlflow", "orjson")

INTRODUCTION = """# Benchmarks

Written by `make bench`, which measures all of it anew on your machine: one run, ours and the others' side by side, in
rounds of turns. Times are medians unless the row says otherwise; a ratio is ours divided by theirs, the median over the
rounds (for a 99th percentile: that of all calls). What each row does is told at the top of
`tests/bench/bench_<name>.py`.
"""

READING = """
How to read it:

- *log* returns when the row is with the operating system, so it survives the death of the process. Of the others only
  `orjson + one write` (the floor) and MLflow promise that; the rest return when the row is in a queue of this process.
- *ours, in the primary* is the same call while the process also delivers to W&B.
- *join* is what each role's process pays; the primary delivers for it. A secondary that asks for a W&B client of its
  own pays for that client too, but in the background and in a process of its own.
- *delivery* goes to a tracker that does nothing, so that ours is all that is measured. Opening a journal costs about
  half a millisecond once, which shows where 256 journals share 51,200 rows; the cost of a row itself does not grow.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; 0 when every promise was kept."""
    options = _options(arguments)
    started = time.monotonic()
    figures: list[tuple[str, Figure]] = []
    for name in options.only or NAMES:
        print(f"bench: {name} ...", file=sys.stderr, flush=True)
        with _quiet():
            figures += [
                (name, row)
                for row in import_module(f"tests.bench.bench_{name}").run(quick=options.quick)
            ]
    text = table(figures)
    print(text)
    output = options.output or (None if options.only or options.quick else DEFAULT_OUTPUT)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(document(text, figures, time.monotonic() - started))
        print(f"bench: written to {output}", file=sys.stderr)
    return int(any(row["is_met"] is False for _, row in figures) and not options.quick)


def table(figures: Sequence[tuple[str, Figure]]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| | ours | the others | ratio | promised | kept | n |",
        "|---|---:|---|---|---|---|---:|",
    ]
    for bench, row in figures:
        cells = (
            f"**{bench}**: {row['name']}",
            f"{_number(row['ours'])} {row['unit']}",
            "<br>".join(
                f"{name}: {_number(value)} {row['unit']}" for name, value in row["others"].items()
            ),
            "<br>".join(f"{_number(value)}x" for value in row["ratio"].values()),
            row["target"],
            {True: "yes", False: "**no**", None: ""}[row["is_met"]],
            f"{row['n']:,}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def document(text: str, figures: Sequence[tuple[str, Figure]], duration_s: float) -> str:
    """The whole page: the table, the machine, and the promises that this run did not keep."""
    missed = [row["name"] for _, row in figures if row["is_met"] is False]
    verdict = (
        "Every promise was kept in this run."
        if not missed
        else "Not kept in this run: " + "; ".join(missed) + "."
    )
    return f"{INTRODUCTION}\n{machine(duration_s)}\n\n{verdict}\n\n{text}\n{READING}"


def machine(duration_s: float) -> str:
    """What it was measured on."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    packages = ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)))
    return "\n".join(
        (
            f"- {datetime.date.today()}, {duration_s / 60:.0f} minutes; load average at the end {load}",
            f"- {os.cpu_count()} cores ({_processor()}), {_memory_gib():.0f} GiB",
            f"- {platform.system()} {platform.release()}",
            f"- Python {platform.python_version()}; {packages}",
        )
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the lines that a job prints at its start: they are not what is measured, and would hide the progress."""
    logger = logging.getLogger("slime_logging")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=NAMES,
        help="measure this one; may be given more than once",
    )
    parser.add_argument(
        "--quick", action="store_true", help="see that it works; the figures mean nothing"
    )
    parser.add_argument("--output", type=Path, help=f"default: {DEFAULT_OUTPUT.name} in docs/")
    return parser.parse_args(arguments)


def _number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


if __name__ == "__main__":
    sys.exit(main())
