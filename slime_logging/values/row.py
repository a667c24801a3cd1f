"""One call of `log`, as it travels from a journal to a tracker."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from slime_logging.values.json_value import Json

Point: TypeAlias = Hashable
"""One thing a tracker holds for a row, in the precision and naming of that tracker; equal points
are the same thing.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One call of `log`: metrics of one process at one step.

    `journal` and `seq` identify the row in its run, for ever. `time_s` is Unix seconds when `log`
    was called. `metrics` does not hold the step key; `step` is its value. Values: numbers (NaN and
    infinities are real floats), text, bools, None, and lists or mappings of those. `start` is the
    run's start that it is of; `is_replacing`: trackers are to drop what earlier starts logged from
    its step on.
    """

    journal: str
    seq: int
    time_s: float
    role: str | None
    step_key: str
    step: int | float
    metrics: Mapping[str, Json]
    start: int = 1
    is_replacing: bool = False

    @property
    def row_id(self) -> str:
        """`<journal>:<seq>`, unique in the run."""
        return f"{self.journal}:{self.seq}"
