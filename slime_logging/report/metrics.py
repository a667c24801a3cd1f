"""The metrics of all rows, by name and source, and the sections of the page that they make.

Policy: memory is bounded: of more lines than `MAX_COURSES` the page says that there are more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from slime_logging.backends.storable import as_double, clean_text, is_number
from slime_logging.record.columns import Rows
from slime_logging.report.chart import Chart, chart
from slime_logging.report.course import Course
from slime_logging.report.sources import SYSTEM, Source
from slime_logging.report.texts import natural, shortened, shown
from slime_logging.values.json_value import Json

MAX_COURSES = 1_000
"""Metrics times processes that are drawn: a course takes up to 60 kB of memory."""

NUM_STRETCHES = 16_800
"""Into how many stretches all lines together are cut, between these bounds for each of them."""

FEWEST_STRETCHES, MOST_STRETCHES = 21, 160

_Order = tuple[bool, int, int, int]
_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class Group:
    """The metrics of one prefix: charts of numbers, and (metric, source, last value) of everything
    else.
    """

    name: str
    charts: tuple[Chart, ...]
    texts: tuple[tuple[str, str, str], ...]
    is_open: bool


class Metrics:
    """What the rows of all sources hold."""

    def __init__(self) -> None:
        self.not_drawn: set[str] = set()
        self._sources: dict[_Order, Source] = {}
        self._courses: dict[str, dict[_Order, Course]] = {}
        self._axis_of: dict[str, str] = {}
        self._texts: dict[str, dict[_Order, str]] = {}
        self._num_courses = 0

    def begin(self, source: Source) -> None:
        """The next values are of this source, and do not follow from those that it has."""
        self._sources[source.order] = source
        for courses in self._courses.values():
            if source.order in courses:
                courses[source.order].begin_line()

    def take(self, source: Source, rows: Rows) -> None:
        """Rows of one process, in their order."""
        are_rising, at_most = rows.are_rising, self._num_stretches()
        for name, steps, values, total in rows.columns:
            name = clean_text(name)
            numbers: Sequence[float] = values  # type: ignore[assignment]
            if total is None:
                texts = [v for v in values if not (isinstance(v, bool) or is_number(v))]
                if texts:
                    self._take_text(source.order, name, texts[-1])
                pairs = [
                    (step, as_double(v))  # type: ignore[arg-type]
                    for step, v in zip(steps, values, strict=True)
                    if isinstance(v, bool) or is_number(v)
                ]
                steps, numbers = [s for s, _ in pairs], [v for _, v in pairs]
            if numbers and (course := self._course(source.order, name, rows.step_key)) is not None:
                is_smooth = are_rising and total is not None and math.isfinite(total)
                course.add_all(steps, numbers, at_most, is_smooth=is_smooth)

    def groups(self, axes: Mapping[str, str]) -> tuple[Group, ...]:
        """The metrics by prefix: those of the run's table of axes first, hosts' system metrics last
        and closed.
        """
        names = sorted(self._courses.keys() | self._texts.keys(), key=natural)
        prefixes = sorted(
            {_prefix(name) for name in names}, key=lambda prefix: _group_order(prefix, axes)
        )
        return tuple(
            self._group(prefix, [name for name in names if _prefix(name) == prefix])
            for prefix in prefixes
        )

    def _course(self, order: _Order, name: str, axis: str) -> Course | None:
        if found := self._courses.get(name, {}).get(order):
            return found
        if self._num_courses >= MAX_COURSES:
            self._leave_out(name)
            return None
        self._num_courses += 1
        self._axis_of.setdefault(name, axis)
        return self._courses.setdefault(name, {}).setdefault(order, Course())

    def _num_stretches(self) -> int:
        """Into how many a line is cut, among as many lines as there are by now."""
        num_stretches = NUM_STRETCHES // max(1, self._num_courses)
        return min(MOST_STRETCHES, max(FEWEST_STRETCHES, num_stretches))

    def _take_text(self, order: _Order, name: str, value: Json) -> None:
        if name in self._texts or len(self._texts) < MAX_COURSES:
            self._texts.setdefault(name, {})[order] = shown(value)
        else:
            self._leave_out(name)

    def _leave_out(self, name: str) -> None:
        if len(self.not_drawn) < 100 * MAX_COURSES:
            self.not_drawn.add(name)

    def _group(self, prefix: str, names: Sequence[str]) -> Group:
        drawn = [
            name
            for name in names
            if any(c.last is not None for c in self._courses.get(name, {}).values())
        ]
        ends: dict[str, tuple[float, float]] = {}
        for axis, of_axis in groupby(
            sorted(drawn, key=self._axis_of.__getitem__), self._axis_of.get
        ):
            found = [course for name in of_axis for course in self._courses[name].values()]
            ends[axis or ""] = min(c.step_from for c in found), max(c.step_to for c in found)
        texts = [
            (shortened(name), label, text)
            for name in names
            for _, label, text in self._labelled(self._texts.get(name, {}))
        ]
        return Group(
            name=prefix,
            charts=tuple(
                chart(
                    shortened(name),
                    shortened(self._axis_of[name]),
                    self._labelled(self._courses[name]),
                    ends[self._axis_of[name]],
                    self._num_stretches(),
                )
                for name in drawn
            ),
            texts=tuple(texts),
            is_open=not prefix.startswith(SYSTEM),
        )

    def _labelled(self, by_order: Mapping[_Order, _Value]) -> list[tuple[int, str, _Value]]:
        """What each source has, with the number of its colour, and its name among the others."""
        numbers = {order: number for number, order in enumerate(sorted(self._sources))}
        sources = [self._sources[order] for order in sorted(by_order)]
        return [(numbers[s.order], shortened(s.label(sources)), by_order[s.order]) for s in sources]


def _prefix(name: str) -> str:
    first, *others = name.split("/")
    if first == SYSTEM and len(others) > 1:
        return f"{first}/{others[0]}"
    return first if others else ""


def _group_order(prefix: str, axes: Mapping[str, str]) -> tuple[bool, int, str]:
    known = list(axes)
    return prefix.startswith(SYSTEM), known.index(prefix) if prefix in known else len(known), prefix
