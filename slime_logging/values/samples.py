"""Samples of a job (prompts, completions, rewards): a table in a file of its own, and the value of
a row that refers to it.

    {"media": "samples", "file": "media/<journal>-samples-<n>.jsonl", "num_samples": 64,
     "columns": ["prompt", "completion", "reward"]}

Policy: a file is written once, before the row that refers to it, and never changed. It has a JSON
object a line and is hostile input when it is read: it lies in the run's own folder or is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from slime_logging.values.json_value import Json

KIND = "samples"
MAX_FILE_BYTES = 512 * 2**20
_FILE = re.compile(r"media/[\w.+-]+\.jsonl")


def samples_name(step_key: str) -> str:
    """The metric under which samples at this step key are referred to: `rollout/samples`."""
    prefix, slash, _ = step_key.rpartition("/")
    return f"{prefix}{slash}{KIND}"


def references(metrics: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Name and file of each table of samples that a row refers to."""
    for name, value in metrics.items():
        if isinstance(value, dict) and value.get("media") == KIND:
            yield name, str(value.get("file"))


def read_samples(directory: Path, file: str) -> list[dict[str, Json]]:
    """The samples in a file of the run in `directory`; lines that are damaged are passed over.

    Raises:
        ValueError: it is no file of samples of this run, or too large for one.
        OSError: it cannot be read.
    """
    path = directory / file
    if not _FILE.fullmatch(file) or path.is_symlink() or path.parent.is_symlink():
        raise ValueError(f"{file[:80]!r} is no file of samples of the run")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{file} is larger than {MAX_FILE_BYTES / 2**20:.0f} MiB")
    found: list[dict[str, Json]] = []
    with path.open("rb") as lines:
        for line in lines:
            try:
                sample = orjson.loads(line)
            except ValueError:
                continue
            if isinstance(sample, dict):
                found.append(sample)
    return found


def as_table(samples: list[dict[str, Json]]) -> tuple[list[str], list[list[Any]]]:
    """Columns in their first order, and the rows; a cell that a sample lacks is None."""
    columns = list(dict.fromkeys(name for sample in samples for name in sample))
    return columns, [[sample.get(name) for name in columns] for sample in samples]
