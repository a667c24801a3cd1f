"""What the page shows, out of a run's directory: read once from start to end, in bounded memory.

Policy: the directory is hostile input, like for every reader of it. Of more metrics than
`MAX_COURSES`, and of longer texts than `MAX_TEXT_CHARS`, the page says that there are more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slime_logging.backends.forms import JOB, as_double, as_text, by_role, flatten, is_number
from slime_logging.delivery.status import RunStatus, journal_config, run_status
from slime_logging.layout.diff import MISSING, Difference, logged_differences
from slime_logging.record.reading import read_opening, read_rows
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.safe_text import escape_terminal
from slime_logging.report.chart import Chart, chart
from slime_logging.report.course import Course
from slime_logging.values.json_value import Json
from slime_logging.values.row import Row

MAX_COURSES = 600
"""Metrics times roles that are drawn: a course takes up to 50 kB of memory, and a chart up to 10 kB
of the page.
"""

MAX_TEXT_CHARS = 2_000

SYSTEM = "system"

JOB_NAME = "job"
"""Stands for the role of processes that have none."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The metrics of one prefix: charts of numbers, and (metric, role, last value) of everything
    else.
    """

    name: str
    charts: tuple[Chart, ...]
    texts: tuple[tuple[str, str, str], ...]
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class ConfigTable:
    """One configuration key a line, a column for each role; `differs` where its values are not all
    the same.
    """

    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...], bool], ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything on the page; all texts are plain, and still to be escaped for HTML.

    `made_s` is Unix seconds. `config` is the roles' own, `facts` (key, value) what belongs to the
    job or a process.
    """

    status: RunStatus
    made_s: float
    roles: tuple[str, ...]
    differences: tuple[Difference, ...]
    groups: tuple[Group, ...]
    num_not_drawn: int
    config: ConfigTable
    facts: tuple[tuple[str, str], ...]
    num_rows_read: int


def gather(directory: RunDirectory, advance: Callable[[int], None]) -> Report:
    """Read a run.

    Args:
        directory: the run's.
        advance: called now and then with how many more rows were read.

    Raises:
        RunNotFoundError: it is no run.
    """
    status = run_status(directory)
    config = journal_config(directory, status.run.roles)
    roles, differences = logged_differences(config)
    metrics = Metrics()
    for path in _in_order(directory):
        metrics.add_all(read_rows(path), advance)
    return Report(
        status=status,
        made_s=time.time(),
        roles=roles,
        differences=tuple(differences),
        groups=metrics.groups(status.run.axes),
        num_not_drawn=len(metrics.not_drawn),
        config=_config_table(config.roles),
        facts=tuple(
            (shortened(key), shown(value)) for key, value in sorted(by_role(config)[JOB].items())
        ),
        num_rows_read=metrics.num_rows,
    )


def _in_order(directory: RunDirectory) -> list[Path]:
    """The journals by the start of the run that they are of, and their own time."""
    openings = ((path, read_opening(path)) for path in directory.journal_paths())
    known = [
        (opening.start, opening.time_s, path) for path, opening in openings if opening is not None
    ]
    return [path for _, _, path in sorted(known)]


class Metrics:
    """The metrics of all rows by name and role."""

    def __init__(self) -> None:
        self.num_rows = 0
        self.not_drawn: set[str] = set()
        self._courses: dict[str, dict[str, Course]] = {}
        self._axis_of: dict[str, str] = {}
        self._texts: dict[str, dict[str, str]] = {}
        self._num_courses = 0

    def add_all(self, rows: Iterable[Row], advance: Callable[[int], None]) -> None:
        """Take in the rows of one process."""
        for courses in self._courses.values():
            for course in courses.values():
                course.begin_line()
        for row in rows:
            self._add(row)
            self.num_rows += 1
            if self.num_rows % 1000 == 0:
                advance(1000)

    def _add(self, row: Row) -> None:
        role = row.role or JOB_NAME
        step = as_double(row.step)
        for name, value in flatten(row.metrics).items():
            if isinstance(value, bool) or is_number(value):
                course = self._courses.get(name, {}).get(role) or self._new_course(
                    name, role, row.step_key
                )
                if course is not None:
                    course.add(step, as_double(value))  # type: ignore[arg-type]
            elif name in self._texts or len(self._texts) < MAX_COURSES:
                self._texts.setdefault(name, {})[role] = shown(value)
            else:
                self._leave_out(name)

    def _new_course(self, name: str, role: str, axis: str) -> Course | None:
        if self._num_courses >= MAX_COURSES:
            self._leave_out(name)
            return None
        self._num_courses += 1
        self._axis_of.setdefault(name, axis)
        return self._courses.setdefault(name, {}).setdefault(role, Course())

    def _leave_out(self, name: str) -> None:
        if len(self.not_drawn) < 100 * MAX_COURSES:
            self.not_drawn.add(name)

    def groups(self, axes: Mapping[str, str]) -> tuple[Group, ...]:
        """The metrics by prefix: those of the run's table of axes first, hosts' system metrics last
        and closed.
        """
        roles = sorted({role for courses in self._courses.values() for role in courses})
        numbers = {role: number for number, role in enumerate(roles)}
        names = sorted(self._courses.keys() | self._texts.keys())
        prefixes = sorted(
            {_prefix(name) for name in names}, key=lambda prefix: _group_order(prefix, axes)
        )
        return tuple(
            Group(
                name=prefix,
                charts=tuple(
                    chart(
                        shortened(name),
                        shortened(self._axis_of[name]),
                        self._courses[name],
                        numbers,
                    )
                    for name in names
                    if _prefix(name) == prefix
                    and any(c.last is not None for c in self._courses.get(name, {}).values())
                ),
                texts=tuple(
                    (shortened(name), role, text)
                    for name in names
                    if _prefix(name) == prefix
                    for role, text in self._texts.get(name, {}).items()
                ),
                is_open=not prefix.startswith(SYSTEM),
            )
            for prefix in prefixes
        )


def shown(value: Json) -> str:
    """A value as people write it, as `shortened` shows texts."""
    return shortened(as_text(value))


def shortened(text: str) -> str:
    """A text with its control characters made visible, and its middle left out where it is very
    long.
    """
    if len(text) > MAX_TEXT_CHARS:
        text = f"{text[: MAX_TEXT_CHARS - 100]} ... ({len(text):,} characters) ... {text[-50:]}"
    return escape_terminal(text)


def _prefix(name: str) -> str:
    parts = name.split("/")
    return (
        "/".join(parts[:2])
        if parts[0] == SYSTEM and len(parts) > 2
        else parts[0]
        if len(parts) > 1
        else ""
    )


def _group_order(prefix: str, axes: Mapping[str, str]) -> tuple[bool, int, str]:
    known = list(axes)
    return prefix.startswith(SYSTEM), known.index(prefix) if prefix in known else len(known), prefix


def _config_table(roles: Mapping[str, Mapping[str, Json]]) -> ConfigTable:
    keys = sorted({key for values in roles.values() for key in values})
    lines = []
    for key in keys:
        cells = tuple(shown(values[key]) if key in values else MISSING for values in roles.values())
        lines.append((shortened(key), cells, len(set(cells)) > 1))
    return ConfigTable(columns=tuple(roles), lines=tuple(lines))
