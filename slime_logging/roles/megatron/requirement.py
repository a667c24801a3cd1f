"""A combination of arguments that validation refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Requirement:
    """`is_broken(values)` is a mistake, for the reason and with the fix given; `keys` are the
    arguments it looks at. `is_late` where validation lets it pass, and the scheduler refuses it;
    `is_of_flags` where the flag itself is refused, so that null, which leaves it out, is not.
    """

    keys: tuple[str, ...]
    is_broken: Callable[[Values], Any]
    reason: str
    fix: str
    is_late: bool = False
    is_of_flags: bool = False
