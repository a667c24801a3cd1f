"""What plain JSON is, as a type."""

from __future__ import annotations

from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
"""A plain JSON value; floats are finite in configurations, and may be NaN or infinite in the
metrics of a row.
"""
