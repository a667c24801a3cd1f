"""Secrets in plain JSON: under their names at any depth, beside them, in tables, pairs and command
lists.

Policy: the structure stays; values are replaced where they stand. Everything below a secret's name
is hidden with it, item by item. What a text holds is not decided here, but by who hides texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from slime_logging.redaction.placeholder import PLACEHOLDER
from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.search import Found
from slime_logging.redaction.secret_names import Judge, Verdict
from slime_logging.redaction.secret_text import NAME_LIKE
from slime_logging.values.json_value import Json

_NAMED_BESIDE = frozenset({"name", "key", "env", "option", "variable", "header", "field", "dest"})
_VALUE_BESIDE = frozenset({"value", "val", "default", "current", "base", "old", "new", "content"})
"""The keys of a name and of its value, in any case: `{"name": "API_KEY", "value": ...}`."""
_TABLE_ROWS = frozenset({"rows", "data"})
"""The keys of a table's rows beside `columns`, in a logged table and in a data frame's form."""
_MAX_BESIDE = 20
"""Mappings with more keys are configurations, not one named value."""
_FLAG = re.compile(r"--?[A-Za-z]")

_By: TypeAlias = tuple[Verdict, str]
"""The verdict on a value, and the name that it comes from."""
_SHOWN: _By = (Verdict.SHOWN, "")


@dataclass(frozen=True, slots=True)
class JsonWalk:
    """Goes through JSON values and replaces what has to be."""

    judge: Judge
    text: Callable[[str], str]
    """A text without secrets."""
    key: Callable[[str], str]
    """A key without secrets."""
    hide: Found
    is_known: Callable[[str], bool]
    """Whether a whole text is a known secret."""
    in_row: bool = False
    """Numbers are measurements, and texts are hidden by name only where they look random."""

    def any(self, value: Json, by: _By = _SHOWN) -> Json:
        """A value under a name's verdict."""
        verdict, name = by
        if isinstance(value, str):
            return self._string(value, by)
        if isinstance(value, dict):
            return self.mapping(value, by)
        if isinstance(value, list):
            return self._list(value, by)
        if verdict is Verdict.FORCED and value is not None:
            return self.hide(name, str(value))
        if value is None or isinstance(value, bool):
            return value
        is_hidden = verdict >= Verdict.IN_DATA and not self.in_row
        if is_hidden or (type(value) is int and value > 10**9 and self.is_known(str(value))):
            return self.hide(name, str(value))
        return value

    def _string(self, value: str, by: _By) -> str:
        verdict, name = by
        if verdict is Verdict.SHOWN or not value or PLACEHOLDER.fullmatch(value):
            return self.text(value)
        at_once = Verdict.FORCED if self.in_row else Verdict.IN_DATA
        if verdict < at_once and not looks_random(value):
            return self.text(value)
        return self.hide(name, value)

    def mapping(self, values: Mapping[str, Json], by: _By = _SHOWN) -> dict[str, Json]:
        """The mapping with everything hidden that is a secret under its names, or under the name
        around it.
        """
        out: dict[str, Json] = {}
        beside = self._named_beside(values)
        columns = values.get("columns")
        for key, value in values.items():
            own = self.judge(key)
            inner = (own, key) if own >= by[0] else by
            if beside and key.lower() in _VALUE_BESIDE:
                inner = (Verdict.HIDDEN, beside)
            shown = self.key(key)
            if by[0] >= Verdict.IN_DATA and looks_random(shown):
                shown = self.hide(by[1], key)
            number = 1
            while (new := shown if number == 1 else f"{shown} ({number})") in out:
                number += 1
            if isinstance(columns, list) and key in _TABLE_ROWS and isinstance(value, list):
                out[new] = [self._table_row(row, columns, by) for row in value]
            else:
                out[new] = self.any(value, inner)
        return out

    def _table_row(self, row: Json, columns: list[Json], by: _By) -> Json:
        """A row of a table under the names of its columns."""
        if not isinstance(row, list) or len(row) != len(columns):
            return self.any(row, by)
        own = [max((self.judge(str(column)), str(column)), by) for column in columns]
        return [self.any(cell, each) for cell, each in zip(row, own, strict=True)]

    def _named_beside(self, values: Mapping[str, Json]) -> str:
        """The secret's name in a mapping such as `{"name": "API_KEY", "value": ...}`; empty if
        there is none.
        """
        if len(values) > _MAX_BESIDE:
            return ""
        for key, name in values.items():
            is_name = isinstance(name, str) and key.lower() in _NAMED_BESIDE
            if is_name and self.judge(str(name)) >= Verdict.IN_DATA:
                return str(name)
        return ""

    def _list(self, values: list[Json], by: _By) -> list[Json]:
        kinds = set(map(type, values))
        if by[0] is Verdict.SHOWN and kinds <= {float, bool, type(None)}:
            return values
        if by[0] is Verdict.SHOWN and kinds == {str} and len(values) > _MAX_BESIDE:
            texts = [str(value) for value in values]
            if not any(text.startswith("-") for text in texts):
                return [self.text(text) for text in texts]
        if by[0] >= Verdict.IN_DATA:
            return [self.any(value, by) for value in values]
        out: list[Json] = []
        pending = self._pair(values)
        for value in values:
            if pending and out and not (isinstance(value, str) and _FLAG.match(value)):
                out.append(self.any(value, (Verdict.HIDDEN, pending)))
                pending = pending if pending.endswith("s") else ""
                continue
            pending = pending if pending and not out else self._flag(value)
            out.append(self.any(value, by))
        return out

    def _flag(self, value: Json) -> str:
        """The name of a secret's flag that stands alone in a command line, so that the next item is
        its value.
        """
        if isinstance(value, str) and re.fullmatch(r"--?[A-Za-z][\w./-]*", value[:256]):
            name = value.lstrip("-").replace("-", "_")
            return name if self.judge(name) >= Verdict.IN_DATA else ""
        return ""

    def _pair(self, values: list[Json]) -> str:
        """The name in a `[name, value]` pair whose name is a secret's; two names beside each other
        are no pair.
        """
        first, second = values if len(values) == 2 else ("", "")
        if not isinstance(first, str) or not re.fullmatch(r"\w[\w./-]*", first[:256]):
            return ""
        is_names = isinstance(second, str) and NAME_LIKE.fullmatch(second)
        return "" if is_names or self.judge(first) < Verdict.HIDDEN else first


def texts_in(value: Json) -> list[str]:
    """Every text and number in a value, but its keys."""
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return [text for item in inner for text in texts_in(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
