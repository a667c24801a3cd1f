"""What the metrics of a role are called, and the step that they are drawn over.

Policy: `<role>/<axis>/<name>` over `<role>/<axis>/step`; a name that has the prefix already keeps
it. Nothing is dropped: a metric that would take the step's own name gets another one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from slime_logging.errors import SettingsError

MAX_CACHED_NAMES = 10_000
MAX_ROLE_CHARS = 100
RESERVED_ROLES = frozenset(
    {"env_vars", "overrides", "process", "redacted_keys", "resume", "system"}
)
"""First parts of keys that belong to the run itself."""


class Axis:
    """One step counter: the names of its metrics, and where it is."""

    def __init__(self, role: str | None, axis: str | None) -> None:
        named = [] if axis is None else [str(axis).strip("/")]
        parts = [part for part in (role, *named) if part]
        self._prefixes = ["/".join(parts[start:]) + "/" for start in range(len(parts))]
        self.step_key = "/".join([*parts, "step"])
        self._whole = self._prefixes[0] if parts else ""
        self._names: dict[str, str] = {}
        self._last: float = -1

    def row(self, metrics: Mapping[str, Any], step: float | None) -> tuple[dict[str, Any], str]:
        """The metrics by their full names, with the step among them, and the step's name."""
        names = self._names
        row: dict[str, Any] = {}
        for key, value in metrics.items():
            row[names.get(key) or self._name(key)] = value
        own = row.pop(self.step_key, None)
        number = _number(own if step is None else step)
        if number is None:
            number = math.floor(self._last) + 1
        if own is not None and _number(own) != number:
            row[f"{self.step_key}~2"] = own
        self._last = number
        row[self.step_key] = number
        return row, self.step_key

    def _name(self, key: object) -> str:
        text = str(key)
        for prefix in self._prefixes:
            if text.startswith(prefix):
                text = text[len(prefix) :]
                break
        name = self._whole + text
        if len(self._names) < MAX_CACHED_NAMES and isinstance(key, str):
            self._names[key] = name
        return name


def _number(step: object) -> float | None:
    """A step as a finite number; None where it is none."""
    if type(step) is int:
        return step
    try:
        number = float(step)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def check_role(role: str | None) -> None:
    """Return where this can be the prefix of keys; else raise `SettingsError`."""
    if role is None:
        return
    if not isinstance(role, str) or not role.strip() or "/" in role or len(role) > MAX_ROLE_CHARS:
        raise SettingsError(
            f"role {str(role)[:MAX_ROLE_CHARS]!r}: a role is a short word without '/', such as"
            " 'explorer'; it becomes the prefix of keys."
        )
    if role in RESERVED_ROLES:
        raise SettingsError(
            f"role {role!r}: the run itself has keys of this name; choose another one, such as"
            f" '{role}_worker'."
        )
