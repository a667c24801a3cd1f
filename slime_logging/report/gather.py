"""What the page shows, out of the directories of runs: each journal is read once from start to end,
in bounded memory.

Policy: the directories are hostile input, like for every reader of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from slime_logging.backends.storable import JOB, by_role
from slime_logging.delivery.fold import ConfigFold
from slime_logging.delivery.rewind import rewinds_of
from slime_logging.delivery.status import RunStatus, run_status
from slime_logging.layout.diff import MISSING, Difference, logged_differences, role_differences
from slime_logging.record.columns import RowBatch, Rows
from slime_logging.record.entries import Opening, decode_config
from slime_logging.record.run import RunDirectory, RunFile
from slime_logging.report.columns import columns_of
from slime_logging.report.metrics import Group, Metrics
from slime_logging.report.samples import Reference, SampleTable, sample_tables
from slime_logging.report.sources import Sources
from slime_logging.report.texts import natural, shortened, shown
from slime_logging.values.json_value import Json
from slime_logging.values.run import RunConfig


@dataclass(frozen=True, kw_only=True)
class ConfigTable:
    """One configuration key a line, a column for each role; `differs` where its values are not all
    the same.
    """

    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...], bool], ...]


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """One run on the page. `label` is its name, or its id where another run has the same name;
    `facts` (key, value) belong to the job or a process.
    """

    label: str
    status: RunStatus
    num_rows: int
    facts: tuple[tuple[str, str], ...]
    samples: tuple[SampleTable, ...]
    num_sample_tables: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything on the page; all texts are plain, and still to be escaped for HTML.

    `made_s` is Unix seconds. `columns` are the roles that are compared, with their run where there
    are several.
    """

    runs: tuple[RunPart, ...]
    made_s: float
    columns: tuple[str, ...]
    differences: tuple[Difference, ...]
    groups: tuple[Group, ...]
    num_not_drawn: int
    config: ConfigTable


def gather(directories: Sequence[RunDirectory], advance: Callable[[int], None]) -> Report:
    """Read runs.

    Args:
        directories: one run or several.
        advance: called now and then with how many more rows were read.

    Raises:
        RunNotFoundError: one is no run.
    """
    metrics = Metrics()
    readers: list[_Reader] = []
    runs = [directory.read() for directory in directories]
    for number, (label, run) in enumerate(zip(_labels(runs), runs, strict=True)):
        sources = Sources(label if len(runs) > 1 else "", number, run.roles)
        readers.append(_Reader(label, sources, metrics, advance))
        readers[-1].read(directories[number])
    roles = {
        " ".join(word for word in (reader.sources.run, role) if word): values
        for reader in readers
        for role, values in reader.config.roles.items()
    }
    axes = {prefix: axis for reader in readers for prefix, axis in reader.status.run.axes.items()}
    columns, differences = _differences(readers, roles)
    return Report(
        runs=tuple(reader.part() for reader in readers),
        made_s=time.time(),
        columns=columns,
        differences=tuple(differences),
        groups=metrics.groups(axes),
        num_not_drawn=len(metrics.not_drawn),
        config=_config_table(roles),
    )


class _Reader:
    """Reads one run."""

    def __init__(
        self, label: str, sources: Sources, metrics: Metrics, advance: Callable[[int], None]
    ) -> None:
        self.label = label
        self.sources = sources
        self.num_rows = 0
        self._metrics = metrics
        self._advance = advance
        self._fold = ConfigFold()
        self._opening: Opening | None = None
        self._references: list[Reference] = []

    def read(self, directory: RunDirectory) -> None:
        """From start to end."""
        self._rewinds = rewinds_of(directory)
        self.status = run_status(directory, self)
        self.config: RunConfig = self._fold.config(self.status.run.roles)

    def part(self) -> RunPart:
        """What the page says of the run itself."""
        facts = sorted(by_role(self.config)[JOB].items(), key=lambda item: natural(item[0]))
        return RunPart(
            label=self.label,
            status=self.status,
            num_rows=self.num_rows,
            facts=tuple((shortened(key), shown(value)) for key, value in facts),
            samples=sample_tables(self._references, self.status.path),
            num_sample_tables=len(self._references),
        )

    def see_records(self, opening: Opening, records: Sequence[dict[str, Any]]) -> None:
        """As an onlooker: records of any kind."""
        refer = partial(self._refer, opening)
        self._take(opening, columns_of(records, refer))
        for record in records:
            if record.get("kind") == "config":
                with suppress(ValueError):  # malformed: passed over, like by every reader
                    self._fold.add(decode_config(record, opening))

    def see_rows(self, opening: Opening, batch: RowBatch) -> None:
        """As an onlooker: rows that were read at once."""
        self._take(opening, batch.columns())

    def _take(self, opening: Opening, tables: Sequence[Rows]) -> None:
        if opening is not self._opening:
            self._opening = opening
            self._source = self.sources.of(opening)
            self._metrics.begin(self._source)
        for rows in tables:
            end = self._rewinds.end(rows.step_key, opening.start)
            self._metrics.take(self._source, rows.before(end))
        num_rows = sum(len(rows.steps) for rows in tables)
        self.num_rows += num_rows
        self._advance(num_rows)

    def _refer(self, opening: Opening, step_key: str, name: str, step: float, file: str) -> None:
        if step >= self._rewinds.end(step_key, opening.start):
            return
        source = self.sources.of(opening)
        self._references.append(Reference(name=name, step=step, file=file, source=source))


def _labels(runs: Sequence[RunFile]) -> list[str]:
    """The names of runs; their ids where two have the same."""
    names = [run.name for run in runs]
    return [
        name if names.count(name) == 1 else run.run_id
        for name, run in zip(names, runs, strict=True)
    ]


def _differences(
    readers: Sequence[_Reader], roles: Mapping[str, Mapping[str, Json]]
) -> tuple[tuple[str, ...], list[Difference]]:
    """What differs between the roles of a run, with base and source; or between those of several
    runs.
    """
    if len(readers) == 1:
        return logged_differences(readers[0].config)
    return tuple(roles), role_differences(roles)


def _config_table(roles: Mapping[str, Mapping[str, Json]]) -> ConfigTable:
    keys = sorted({key for values in roles.values() for key in values}, key=natural)
    lines = []
    for key in keys:
        cells = tuple(shown(values[key]) if key in values else MISSING for values in roles.values())
        lines.append((shortened(key), cells, len(set(cells)) > 1))
    return ConfigTable(columns=tuple(map(shortened, roles)), lines=tuple(lines))
