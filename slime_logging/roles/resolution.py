"""One role's arguments, made from the base's and the role's entry.

Policy, in this order: the entry's values as its flags would give them; what the role always has
(`rules.FORCED`); what validation would have derived (`derive.py`); what validation would have
refused (`requirements.py`). Everything that is wrong is collected; everything that does not simply
mean what the entry says is warned about and recorded.
"""

from __future__ import annotations

import functools
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.coerce import coerce
from slime_logging.roles.copying import copy_namespace
from slime_logging.roles.entries import RoleEntry, Written
from slime_logging.roles.megatron.derive import derive
from slime_logging.roles.megatron.options import Option
from slime_logging.roles.megatron.requirements import advice, broken
from slime_logging.roles.nodes import Items, Scalar
from slime_logging.roles.problems import HIDDEN, Problem, looks_secret, shown, shown_value
from slime_logging.roles.rules import FORCED, IGNORED, PRESET, ROLLOUT_PREFIXES, TOPOLOGY, rejection
from slime_logging.roles.suggest import nearest
from slime_logging.roles.targets import Mistake, Target, as_yaml


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """One argument of a role that the role file, or the role itself, decides.

    `source` is `file` (the entry says so), `forced` (always so for the role; `asked` is what the
    entry wanted instead), `preset` (so for the role unless the entry says otherwise), `derived`
    (computed from others) or `ignored` (the entry says so, without effect). `base` is None where
    the base has no such argument.
    """

    key: str
    base: Any
    value: Any
    source: str
    asked: Any = None


MAX_SUGGESTED = 100
"""Mistakes of a role for which suggestions are looked up, at some milliseconds each."""


class Resolution:
    """The work on one entry, and its results: `args`, `overrides`, `warnings`, `problems`."""

    def __init__(
        self,
        base: Namespace,
        role: str,
        entry: RoleEntry | None,
        options: Mapping[str, Option],
        parsed: Mapping[str, Option],
    ) -> None:
        """Resolve; `options` are all known ones, `parsed` those of the job's parser, which the base
        may lack.
        """
        self.role = role
        self._label = role if entry is None else entry.label
        self.args = copy_namespace(base)
        self.overrides: list[Override] = []
        self.warnings: list[str] = []
        self.problems: list[Problem] = []
        self.places: dict[str, Written] = {} if entry is None else dict(entry.written)
        self._base = vars(base)
        self._values = vars(self.args)
        self._options = options
        self._parsed = parsed
        self._set: dict[str, Any] = {}
        for written in self.places.values():
            self._take(written)
        self._force()
        self._derive()
        self._check()

    def _take(self, written: Written) -> None:
        key = written.key
        if key in IGNORED:
            self._warn(written, f"`{key}` is ignored: {IGNORED[key]}")
            value = self._base.get(key)
            self.overrides.append(
                Override(key=key, base=value, value=value, source="ignored", asked=_text(written))
            )
            return
        refused = rejection(key)
        if refused is not None:
            fix = "take it out of the role file" + self._flag_hint(key)
            self._report(
                written, f"`{shown(key)}` cannot differ between roles: {refused}", fix, written.name
            )
            return
        if key not in self._base and key not in self._parsed:
            self._report(written, *self._unknown(written), written.name)
            return
        try:
            value = coerce(
                Target(name=key, option=self._options.get(key), base=self._base.get(key)),
                written.node,
            )
        except Mistake as mistake:
            self._report(written, mistake.reason, mistake.fix, mistake.node)
            return
        if key in TOPOLOGY and not same(value, self._base.get(key)):
            is_shown = shown_value(key, as_yaml(self._base.get(key)))
            reason = (
                f"`{key}` is parallel topology, which is the same for all roles; on the command"
                f" line it is {is_shown}"
            )
            self._report(written, reason, "take it out of the role file" + self._flag_hint(key))
            return
        self._advise_on_text(written, value)
        self._set[key] = self._values[key] = value

    @functools.cached_property
    def _by_flag(self) -> dict[str, Option]:
        return {flag: option for option in self._options.values() for flag in option.flags}

    def _unknown(self, written: Written) -> tuple[str, str]:
        key = written.key
        flag = "--" + key.replace("_", "-")
        option = self._by_flag.get(flag)
        if option is not None and option.name in self._base:
            value = {"store_false": ": false", "store_true": ": true"}.get(option.action, "")
            if option.action == "boolean_optional":
                value = ": false" if flag.startswith("--no-") else ": true"
            return (
                f"`{key}` is the name of a flag, not of its argument",
                f"write `{option.name}{value}`",
            )
        is_looked_up = len(self.problems) < MAX_SUGGESTED
        near = (
            nearest(written.name.text, self._base.keys() | self._parsed.keys())
            if is_looked_up
            else []
        )
        fix = (
            f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else "take it out"
        )
        known = " in this version of Megatron-LM or slime" if key in self._options else ""
        return f"there is no argument `{shown(written.name.text)}`{known}", fix

    def _advise_on_text(self, written: Written, value: Any) -> None:
        key, node = written.key, written.node
        if (
            isinstance(value, str)
            and isinstance(node, Scalar)
            and node.is_plain
            and node.text in ("None", "none")
        ):
            self._warn(written, f"`{key}` is the text '{node.text}'; to unset it write null")
        if isinstance(value, list) and isinstance(node, Scalar) and " " in node.text.strip():
            self._warn(
                written,
                f"`{key}` is a list of one text with a space in it; several are written [a, b]",
            )
        if key.startswith(ROLLOUT_PREFIXES):
            self._warn(
                written,
                f"`{key}` is read by the rollout, from the command line: set for the {self.role},"
                " without effect",
            )

    def _force(self) -> None:
        for key, value in PRESET.get(self.role, {}).items():
            if key not in self._set:
                self._put(key, value, "preset")
        for key, value in FORCED.get(self.role, {}).items():
            asked = self._set.get(key, value)
            if not same(asked, value):
                self._warn(
                    self.places[key],
                    f"`{key}` is always {as_yaml(value)} for the {self.role}, so the entry's value"
                    " is not used",
                )
                self._set.pop(key)
            self._put(key, value, "forced", None if same(asked, value) else asked)

    def _put(self, key: str, value: Any, source: str, asked: Any = None) -> None:
        base = self._base.get(key)
        self._values[key] = value
        if asked is not None or key not in self._base or not same(base, value):
            self.overrides.append(
                Override(key=key, base=base, value=value, source=source, asked=asked)
            )

    def _derive(self) -> None:
        decided = {
            override.key for override in self.overrides if override.source in ("forced", "preset")
        }
        for derived in derive(self._base, self._values, self._set.keys() | decided, self._set):
            base = self._base.get(derived.key)
            asked = self._set.get(derived.key)
            self.overrides.append(
                Override(
                    key=derived.key, base=base, value=derived.value, source="derived", asked=asked
                )
            )
            told = (
                HIDDEN
                if looks_secret(derived.key)
                else f"{as_yaml(base)} -> {as_yaml(derived.value)}"
            )
            self.warnings.append(
                f"{self.role}: `{derived.key}` follows {', '.join(derived.sources)}: {shown(told)}"
            )
        self._record_file()

    def _record_file(self) -> None:
        decided = {override.key for override in self.overrides}
        self.overrides[:0] = [
            Override(key=key, base=self._base.get(key), value=self._values[key], source="file")
            for key in self._set
            if key not in decided
            and not (key in self._base and same(self._values[key], self._base[key]))
        ]

    def _check(self) -> None:
        for key, rule in broken(self._values, self._set):
            self._report(self.places[key], rule.reason, rule.fix)
        self.warnings.extend(f"{self.role}: {text}" for text in advice(self._values, self._set))

    def _flag_hint(self, key: str) -> str:
        option = self._options.get(key)
        return (
            f"; {option.flags[0]} sets it for the job"
            if option is not None and option.flags
            else ""
        )

    def _warn(self, written: Written, text: str) -> None:
        self.warnings.append(f"{self.role}, line {written.name.line}: {text}")

    def _report(self, written: Written, reason: str, fix: str, node: Any = None) -> None:
        place = written.node if node is None else node
        text = f"{shown(written.name.text)}: {shown_value(written.name.text, _text(written))}"
        at = written.name if place is written.node and not isinstance(place, Scalar) else place
        self.problems.append(
            Problem(
                line=at.line, column=at.column, text=text, reason=reason, fix=fix, role=self._label
            )
        )


def _text(written: Written) -> str:
    """An override's value as written, near enough to show."""
    node = written.node
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Items):
        texts = (item.text if isinstance(item, Scalar) else "..." for item in node.nodes)
        return f"[{', '.join(texts)}]"
    return "{...}"


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, True and 1 not counted as equal; what cannot be compared is
    not.
    """
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    try:
        return bool(left == right)
    except Exception:  # a foreign __eq__ (arrays) may raise anything
        return left is right
