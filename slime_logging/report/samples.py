"""The samples that a page shows: the first step's, the last one's, and steps evenly between them.

Policy: their texts are data. The files lie in the run's own folder or are not read, and the page
says how many steps and samples it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slime_logging.backends.storable import as_text
from slime_logging.report.scale import number_text
from slime_logging.report.sources import Source
from slime_logging.report.texts import shortened
from slime_logging.values.json_value import Json
from slime_logging.values.samples import as_table, read_samples

MAX_TABLES = 20
MAX_SAMPLES = 16
"""Steps of a run, and samples of a step, on the page."""

MAX_CHARS = 20_000
"""Of a text on the page."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Where a row says that samples are."""

    name: str
    step: float
    file: str
    source: Source


@dataclass(frozen=True, kw_only=True)
class SampleTable:
    """The samples of one step: of each, its short values and its texts, as (column, text)."""

    name: str
    role: str
    step: str
    num_samples: int
    samples: tuple[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]], ...]


def sample_tables(references: Sequence[Reference], directory: Path) -> tuple[SampleTable, ...]:
    """Read the samples of `MAX_TABLES` steps at the most; files that cannot be read are passed
    over.

    Args:
        references: all of a run, in their order.
        directory: the run's.
    """
    last = len(references) - 1
    chosen = {round(n * last / (MAX_TABLES - 1)) for n in range(MAX_TABLES)} if last > 0 else {0}
    found = (_table(references[place], directory) for place in sorted(chosen) if place <= last)
    return tuple(table for table in found if table is not None)


def _table(reference: Reference, directory: Path) -> SampleTable | None:
    try:
        samples = read_samples(directory, reference.file)
    except (OSError, ValueError):
        return None
    columns, rows = as_table(samples[:MAX_SAMPLES])
    return SampleTable(
        name=shortened(reference.name),
        role=shortened(reference.source.role),
        step=number_text(reference.step),
        num_samples=len(samples),
        samples=tuple((_cells(columns, row, str), _cells(columns, row, object)) for row in rows),
    )


def _cells(columns: Sequence[str], row: Sequence[Json], kind: type) -> tuple[tuple[str, str], ...]:
    """The texts of a sample, or everything else of it; what it lacks is left out."""
    return tuple(
        (shortened(column), shortened(as_text(value), MAX_CHARS))
        for column, value in zip(columns, row, strict=True)
        if value is not None and isinstance(value, str) is (kind is str)
    )
