"""Secrets in plain JSON: under their names at any depth, beside them, in tables, pairs and command
lists.

Policy: the structure stays; values are replaced where they stand. Everything below a secret's name
is hidden with it, item by item. What a text holds is not decided here, but by who hides texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from slime_logging.redaction.marks import MARK
from slime_logging.redaction.secret_forms import looks_random
from slime_logging.redaction.secret_names import Verdict
from slime_logging.redaction.secret_text import NAME_LIKE
from slime_logging.values.json_value import Json

_NAMED_BESIDE = frozenset({"name", "key", "env", "option", "variable", "header", "field", "dest"})
_VALUE_BESIDE = frozenset({"value", "val", "default", "current", "base", "old", "new", "content"})
"""The keys that stand for a name and for its value, in any case, in mappings such as `{"name":
"API_KEY", "value": ...}`.
"""
_TABLE_ROWS = frozenset({"rows", "data"})
"""The keys of a table's rows beside `columns`, in a logged table and in a data frame's split
form.
"""
_MAX_BESIDE = 20
"""Mappings with more keys are configurations, not one named value."""


class Hider(Protocol):
    """What judges names, hides values and looks through texts: `config.redact.Redactor`."""

    def judge(self, name: str) -> Verdict:
        """How a value under this name is treated."""

    def text(self, s: str) -> str:
        """A text without secrets."""

    def key(self, name: str) -> str:
        """A key without secrets."""

    def is_known(self, text: str) -> bool:
        """Whether the whole text is a known secret."""

    def hide(self, name: str, text: str, *, is_own: bool) -> str:
        """The mark for a value, which is remembered."""

    def shown(self, name: str) -> str:
        """The mark for a value of this name."""

    def learn(self, name: str, value: object) -> None:
        """Hide this value from now on."""


class JsonWalk:
    """Goes through JSON values. With `is_row` numbers are measurements and are never hidden by
    name.
    """

    def __init__(self, hider: Hider, *, is_row: bool) -> None:
        self._hider = hider
        self._is_row = is_row

    def any(self, value: Json, verdict: Verdict, name: str, *, is_own: bool = True) -> Json:
        """A value under a name's verdict; `is_own` is False where the verdict comes from a mapping
        or list around it.
        """
        if value is None or isinstance(value, bool):
            return (
                self._hider.shown(name)
                if verdict is Verdict.FORCED and value is not None
                else value
            )
        if isinstance(value, str):
            return self._string(value, verdict, name, is_own=is_own)
        if isinstance(value, dict):
            return self.mapping(value, verdict, name)
        if isinstance(value, list):
            return self._list(value, verdict, name)
        if (verdict >= Verdict.IN_DATA and not self._is_row) or self._hider.is_known(str(value)):
            return self._hider.hide(name, str(value), is_own=is_own)
        return value

    def _string(self, value: str, verdict: Verdict, name: str, *, is_own: bool) -> str:
        if verdict is Verdict.SHOWN:
            return self._hider.text(value)
        if not value or MARK.fullmatch(value):
            return value
        if verdict >= Verdict.IN_DATA or looks_random(value):
            return self._hider.hide(name, value, is_own=is_own)
        return self._hider.text(value)

    def mapping(
        self, values: Mapping[str, Json], verdict: Verdict = Verdict.SHOWN, name: str = ""
    ) -> dict[str, Json]:
        """The mapping with everything hidden that is a secret under its names, or under the name
        around it.
        """
        out: dict[str, Json] = {}
        beside = self._named_beside(values)
        columns = values.get("columns")
        columns = columns if isinstance(columns, list) else []
        for key, value in values.items():
            own = self._hider.judge(key)
            is_own = own >= verdict
            inner, inner_name = (own, key) if is_own else (verdict, name)
            if columns and key in _TABLE_ROWS and isinstance(value, list):
                out[key] = [self._table_row(row, columns, verdict, name) for row in value]
                continue
            if beside and key.lower() in _VALUE_BESIDE:
                inner, inner_name, is_own = Verdict.HIDDEN, beside, True
            shown = self._hider.key(key)
            if verdict >= Verdict.IN_DATA and looks_random(shown):
                self._hider.learn(name, key)
                shown = self._hider.shown(name)
            if shown in out:
                shown = next(
                    f"{shown} ({n})" for n in range(2, len(out) + 3) if f"{shown} ({n})" not in out
                )
            out[shown] = self.any(value, inner, inner_name, is_own=is_own)
        return out

    def _table_row(self, row: Json, columns: list[Json], verdict: Verdict, name: str) -> Json:
        """A row of a table under the names of its columns."""
        if not isinstance(row, list) or len(row) != len(columns):
            return self.any(row, verdict, name)
        own = [
            max((self._hider.judge(str(column)), str(column)), (verdict, name))
            for column in columns
        ]
        return [self.any(cell, *by) for cell, by in zip(row, own, strict=True)]

    def _named_beside(self, values: Mapping[str, Json]) -> str:
        """The secret's name in a mapping such as `{"name": "API_KEY", "value": ...}`; empty if
        there is none.
        """
        if len(values) > _MAX_BESIDE:
            return ""
        for key, name in values.items():
            if (
                key.lower() in _NAMED_BESIDE
                and isinstance(name, str)
                and self._hider.judge(name) >= Verdict.IN_DATA
            ):
                return name
        return ""

    def _list(self, values: list[Json], verdict: Verdict, name: str) -> list[Json]:
        if verdict >= Verdict.IN_DATA:
            return [self.any(value, verdict, name) for value in values]
        out: list[Json] = []
        pending = ""
        for index, value in enumerate(values):
            if pending and not (isinstance(value, str) and re.match(r"--?[A-Za-z]", value)):
                out.append(self.any(value, Verdict.HIDDEN, pending))
                pending = pending if pending.endswith("s") else ""
                continue
            pending = self._flag(value)
            if not pending and len(values) == 2 and index == 0:
                pending = self._pair(value, values[1])
            out.append(self.any(value, verdict, name))
        return out

    def _flag(self, value: Json) -> str:
        """The name of a secret's flag that stands alone in a command line, so that the next item is
        its value.
        """
        if isinstance(value, str) and re.fullmatch(r"--?[A-Za-z][\w./-]*", value):
            name = value.lstrip("-").replace("-", "_")
            if self._hider.judge(name) >= Verdict.IN_DATA:
                return name
        return ""

    def _pair(self, first: Json, second: Json) -> str:
        """The name in a `[name, value]` pair whose name is a secret's; two names beside each other
        are no pair.
        """
        if (
            not isinstance(first, str)
            or not re.fullmatch(r"\w[\w./-]*", first)
            or self._hider.judge(first) < Verdict.HIDDEN
        ):
            return ""
        return "" if isinstance(second, str) and NAME_LIKE.fullmatch(second) else first
