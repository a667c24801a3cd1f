"""What can be the step of a row, and which integers a line of the journal holds."""

from __future__ import annotations

from typing import Any

from slime_logging.values.metric import metric_to_json

LARGEST_INT = 2**64 - 1
SMALLEST_INT = -(2**63)


def fits(number: int) -> bool:
    """Whether JSON as we write it holds the integer exactly."""
    return SMALLEST_INT <= number <= LARGEST_INT


def as_step(given: Any) -> int | float | None:
    """The step as a finite number; None where it is none."""
    if type(given) is int and fits(given):
        return given
    try:
        number = metric_to_json(given)
        if type(number) is int and fits(number):
            return number
        real = float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return real if real - real == 0 else None
