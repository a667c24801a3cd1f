"""The value of a metric becomes plain JSON.

Policy: as `serialize`, but nothing is shortened, numbers stay numbers, and what cannot be kept is
counted. A metric's own value may be NaN, infinite, or an integer of thousands of digits; inside of
lists and mappings such numbers are text, where JSON has no others.
"""

from __future__ import annotations

import decimal
import enum
import fractions
from collections.abc import Callable
from typing import Any, TypeAlias

from slime_logging.values import describe
from slime_logging.values.json_scalars import (
    MAX_DECIMAL_BITS,
    digits,
    float_json,
    number_text,
    text_json,
)
from slime_logging.values.json_value import Json
from slime_logging.values.walk import Walk, enum_text

Special: TypeAlias = Callable[[Any], Json]


def metric_to_json(
    value: Any,
    special: Special = lambda _: None,
    on_lost: Callable[[], object] = lambda: None,
) -> Json:
    """The value of a metric: as `to_json`, but whole, and numbers stay numbers (a metric's own NaN,
    infinities and large integers too).

    Args:
        value: anything.
        special: asked first for every value that JSON does not know; None leaves it to us.
        on_lost: called for each part that is not kept: unreadable, a cycle, too deep, too much.
    """
    cls = type(value)
    if cls is float or cls is bool or value is None:
        return value  # type: ignore[no-any-return]
    if cls is int and -(2**63) <= value < 2**63:
        return value  # type: ignore[no-any-return]
    return _Metric(special, on_lost).any(value, 0)


class _Metric(Walk):
    """The walk of a value in a row."""

    largest = 2**63 - 1

    def __init__(self, special: Special, on_lost: Callable[[], object]) -> None:
        super().__init__()
        self._special = special
        self._on_lost = on_lost

    def simple(self, value: Any, depth: int) -> Json:
        cls = type(value)
        if cls is str:
            return text_json(value)
        if cls is bool or value is None:
            return value  # type: ignore[no-any-return]
        if cls is dict or cls is list:
            return None
        if issubclass(cls, (int, float, decimal.Decimal, fractions.Fraction)):
            return self._number(value, depth)
        special = self._special(value)
        return special if special is not None else super().simple(value, depth)

    def _number(self, value: Any, depth: int) -> Json:
        cls = type(value)
        if issubclass(cls, enum.Enum):
            return enum_text(value)
        if issubclass(cls, int):
            number = int.__int__(value)
            is_sayable = -(2**63) <= number < 2**64 or (
                depth == 0 and number.bit_length() < MAX_DECIMAL_BITS
            )
            return number if is_sayable else digits(number)
        try:
            real = float.__float__(value) if issubclass(cls, float) else float(value)
        except (ValueError, ArithmeticError):  # a Decimal's sNaN, a Fraction beyond doubles
            return number_text(value)
        return real if depth == 0 else float_json(real)

    def fitting(self, text: str) -> str:
        return text

    def lost(self, marker: str) -> str:
        self._on_lost()
        return marker

    def array(self, value: Any) -> Any:
        plain = super().array(value)
        is_tensor = describe.is_a(value, "torch", "Tensor")
        if type(plain) is str and not is_tensor and describe.has_attributes(value, "tolist"):
            kind = getattr(value.dtype, "kind", "O")  # of pandas' own types, categories and texts
            plain = value.tolist() if kind in "OSUMm" else plain
        is_described = type(plain) is str and plain == describe.array_text(value)
        return self.lost(plain) if is_described else plain
