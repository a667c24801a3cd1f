"""What the role file asks for one role: its entry's values in their types, and what is wrong with
them.

Policy: everything that is wrong is collected; everything that does not simply mean what the entry
says is warned about.
"""

from __future__ import annotations

import functools
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.coerce import coerce
from slime_logging.roles.entries import RoleEntry, Written
from slime_logging.roles.equality import same
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.nodes import Items, Scalar, core_value
from slime_logging.roles.problems import Problem, shown, shown_value
from slime_logging.roles.rules import IGNORED, ROLLOUT_PREFIXES, TOPOLOGY, rejection
from slime_logging.roles.suggest import nearest
from slime_logging.roles.targets import Mistake, Target, as_yaml

MAX_SUGGESTED = 100
"""Mistakes of a role for which suggestions are looked up, at some milliseconds each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """All options that are known; `parsed` are those of the job's parser, which the base may lack.
    `is_exact` where that parser decides what a value comes to.
    """

    options: Mapping[str, Option]
    parsed: Mapping[str, Option]
    is_exact: bool = False


class Asked:
    """The values that an entry sets (`values`, by key), those that it sets in vain (`ignored`), and
    the `problems` and `warnings` of it.
    """

    def __init__(self, base: Namespace, role: str, entry: RoleEntry | None, known: Known) -> None:
        """Read an entry."""
        self.role = role
        self.label = role if entry is None else entry.label
        self.values: dict[str, Any] = {}
        self.ignored: dict[str, str] = {}
        self.warnings: list[str] = []
        self.problems: list[Problem] = []
        self.places: dict[str, Written] = {} if entry is None else dict(entry.written)
        self.options = known.options
        self._base = vars(base)
        self._known = known
        for written in self.places.values():
            self._take(written)

    def warn(self, key: str, text: str) -> None:
        """Warn at the place where the entry sets `key`."""
        self.warnings.append(f"{self.role}, line {self.places[key].name.line}: {text}")

    def report(self, key: str, reason: str, fix: str, node: Any = None) -> None:
        """Tell a mistake at the place where the entry sets `key`, or at a node of it."""
        written = self.places[key]
        place = written.node if node is None else node
        text = f"{shown(written.name.text)}: {shown_value(written.name.text, as_written(written))}"
        at = written.name if place is written.node and not isinstance(place, Scalar) else place
        self.problems.append(
            Problem(
                line=at.line, column=at.column, text=text, reason=reason, fix=fix, role=self.label
            )
        )

    def _take(self, written: Written) -> None:
        key = written.key
        if key in IGNORED:
            self.warn(key, f"`{key}` is ignored: {IGNORED[key]}")
            self.ignored[key] = as_written(written)
            return
        refused = rejection(key)
        if refused is not None:
            fix = "take it out of the role file" + self._flag_hint(key)
            reason = f"`{shown(key)}` cannot differ between roles: {refused}"
            self.report(key, reason, fix, written.name)
            return
        if key not in self._base and key not in self._known.parsed:
            self.report(key, *self._unknown(written), written.name)
            return
        target = Target(name=key, option=self.options.get(key), base=self._base.get(key))
        try:
            value = coerce(target, written.node)
        except Mistake as mistake:
            is_json = target.kind == "json" and not (
                isinstance(written.node, Scalar) and written.node.is_null
            )
            if not (self._known.is_exact and is_json):
                self.report(key, mistake.reason, mistake.fix, mistake.node)
                return
            value = core_value(written.node)  # other JSON than mappings: the parser decides
        if key in TOPOLOGY and not same(value, self._base.get(key)):
            is_shown = shown_value(key, as_yaml(self._base.get(key)))
            reason = (
                f"`{key}` is parallel topology, which is the same for all roles; on the command"
                f" line it is {is_shown}"
            )
            self.report(key, reason, "take it out of the role file" + self._flag_hint(key))
            return
        self._advise_on_text(written, value)
        self.values[key] = value

    @functools.cached_property
    def _by_flag(self) -> dict[str, Option]:
        return {flag: option for option in self.options.values() for flag in option.flags}

    def _unknown(self, written: Written) -> tuple[str, str]:
        key = written.key
        flag = "--" + key.replace("_", "-")
        option = self._by_flag.get(flag)
        if option is not None and option.name in self._base:
            says = option.says.get(flag)
            value = "" if says is None else f": {as_yaml(says)}"
            return (
                f"`{key}` is the name of a flag, not of its argument",
                f"write `{option.name}{value}`",
            )
        is_looked_up = len(self.problems) < MAX_SUGGESTED
        names = self._base.keys() | self._known.parsed.keys()
        near = nearest(written.name.text, names) if is_looked_up else []
        fix = (
            f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else "take it out"
        )
        known = " in this version of Megatron-LM or slime" if key in self.options else ""
        return f"there is no argument `{shown(written.name.text)}`{known}", fix

    def _advise_on_text(self, written: Written, value: Any) -> None:
        key, node = written.key, written.node
        is_text = isinstance(value, str) and isinstance(node, Scalar) and node.is_plain
        if is_text and value in ("None", "none"):
            self.warn(key, f"`{key}` is the text '{value}'; to unset it write null")
        if isinstance(value, list) and isinstance(node, Scalar) and " " in node.text.strip():
            self.warn(
                key,
                f"`{key}` is a list of one text with a space in it; several are written [a, b]",
            )
        if key.startswith(ROLLOUT_PREFIXES):
            self.warn(
                key,
                f"`{key}` is read by the rollout, from the command line: set for the {self.role},"
                " without effect",
            )

    def _flag_hint(self, key: str) -> str:
        option = self.options.get(key)
        has_flag = option is not None and option.flags
        return f"; {option.flags[0]} sets it for the job" if option and has_flag else ""


def as_written(written: Written) -> str:
    """An override's value as written, near enough to show."""
    node = written.node
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Items):
        texts = (item.text if isinstance(item, Scalar) else "..." for item in node.nodes)
        return f"[{', '.join(texts)}]"
    return "{...}"
