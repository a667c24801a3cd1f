"""One role's arguments, made from the base's and what the role's entry asks for.

Policy, in this order: the entry's values as its flags would give them, with what follows from them
(by the job's own parser where it is at hand, for what it cannot say by the tables); what the role
always has. Everything that is wrong is collected; everything that does not simply mean what the
entry says is warned about and recorded.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.asked import Asked
from slime_logging.roles.copying import copy_namespace
from slime_logging.roles.equality import identical, same
from slime_logging.roles.exact import Outcome
from slime_logging.roles.megatron.derive import derive
from slime_logging.roles.megatron.requirements import advice, broken, late
from slime_logging.roles.problems import HIDDEN, looks_secret, shown
from slime_logging.roles.rules import RoleValues
from slime_logging.roles.targets import as_yaml

MAX_FOLLOWING = 20
"""Arguments that follow from an entry and are told one by one."""

MAX_SOURCES = 5
"""Of what each follows from, those that are named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """One argument of a role that the role file, or the role itself, decides.

    `source` is `file` (the entry says so), `forced` (always so for the role; `asked` is what the
    entry wanted instead), `preset` (so for the role unless the entry says otherwise), `derived`
    (computed from others) or `ignored` (the entry says so, without effect). `base` is None where
    the base has no such argument, `value` where the role has none.
    """

    key: str
    base: Any
    value: Any
    source: str
    asked: Any = None


class Resolution:
    """The work on what one role asks for, and its results: `args`, `overrides`, `warnings`,
    `problems`.
    """

    def __init__(
        self, base: Namespace, asked: Asked, own: RoleValues, outcome: Outcome | None
    ) -> None:
        """Resolve. `own` are the role's own values; `outcome` is what the job's parser makes of the
        entry, or None where the tables stand in.
        """
        self.role = asked.role
        self.args = copy_namespace(base)
        self.overrides: list[Override] = []
        self.warnings = asked.warnings
        self.problems = asked.problems
        self._asked = asked
        self._base = vars(base)
        self._values = vars(self.args)
        self._sources: dict[str, str] = {}
        set_by_tables = list(asked.values) if outcome is None else outcome.unsayable
        if outcome is not None:
            self._take_exact(outcome)
        exact = dict(self._values)
        self._values.update({key: asked.values[key] for key in set_by_tables})
        if outcome is None:
            self._force(own)
        self._derive(exact, set_by_tables)
        self._force(own)
        self._check(set_by_tables, outcome is not None)
        self._record()

    def _take_exact(self, outcome: Outcome) -> None:
        for key, words in outcome.refused.items():
            fix = "give another value: the command line takes this one no more than the role file"
            self._asked.report(key, f"the job's own parser refuses it: {words}", fix)
        self._values.update(outcome.changed)
        for key in outcome.removed:
            self._values.pop(key, None)
        followed = [key for key in outcome.changed if key not in self._asked.values] + sorted(
            outcome.removed
        )
        sayable = [key for key in self._asked.values if key not in outcome.unsayable]
        self._sources.update(dict.fromkeys(followed, "derived"))
        for key in followed[:MAX_FOLLOWING]:
            self._tell_derived(key, sayable)
        if len(followed) > MAX_FOLLOWING:
            self.warnings.append(f"{self.role}: so do {len(followed) - MAX_FOLLOWING} more")
        for key in sayable:
            is_used = same(self._values.get(key), self._asked.values[key])
            option = self._asked.options.get(key)
            if is_used or key in outcome.refused or (option and option.kind in ("other", "json")):
                continue
            self._sources[key] = "derived"
            if key in self._values:
                self._asked.warn(
                    key,
                    f"`{key}` is {self._shown(key)}: validation sets it, whatever its flag says",
                )

    def _tell_derived(self, key: str, sources: Collection[str]) -> None:
        self._sources[key] = "derived"
        told = HIDDEN
        if not looks_secret(key):
            told = f"{as_yaml(self._base.get(key))} -> {self._shown(key)}"
        named = list(sources)[:MAX_SOURCES]
        rest = [f"{len(sources) - len(named)} more"] if len(sources) > len(named) else []
        origin = ", ".join([*named, *rest])
        verb = f"follows {origin}" if origin else "is computed"
        self.warnings.append(f"{self.role}: `{key}` {verb}: {shown(told)}")

    def _shown(self, key: str) -> str:
        if looks_secret(key):
            return HIDDEN
        return shown(as_yaml(self._values[key])) if key in self._values else "none"

    def _force(self, own: RoleValues) -> None:
        for key, value in own.preset.items():
            if key not in self._asked.values:
                self._values[key] = value
                self._sources[key] = "preset"
        for key, value in own.forced.items():
            asked = self._asked.values.get(key, value)
            if not same(asked, value) and self._sources.get(key) != "forced":
                text = f"`{key}` is always {as_yaml(value)} for the {self.role}"
                self._asked.warn(key, f"{text}, so the entry's value is not used")
            self._values[key] = value
            self._sources[key] = "forced"

    def _derive(self, before: Mapping[str, Any], set_by_tables: Collection[str]) -> None:
        written = {
            key: self._asked.values[key]
            for key in set_by_tables
            if self._sources.get(key) != "forced"
        }
        changed = {key for key, source in self._sources.items() if source in ("forced", "preset")}
        for derived in derive(before, self._values, written.keys() | changed, written):
            self._tell_derived(derived.key, derived.sources)

    def _check(self, set_by_tables: Collection[str], is_exact: bool) -> None:
        written = {key: self._asked.values[key] for key in set_by_tables}
        for key, rule in broken(self._values, written):
            self._asked.report(key, rule.reason, rule.fix)
        for text in advice(self._values, written):
            self.warnings.append(f"{self.role}: {text}")
        if is_exact:
            for rule in late(self._values, self._asked.values):
                self.warnings.append(f"{self.role}: {rule.reason}; the job will stop later")

    def _record(self) -> None:
        """What differs from the base, or was asked for in vain."""
        asked = self._asked.values
        for key, text in self._asked.ignored.items():
            value = self._base.get(key)
            self.overrides.append(
                Override(key=key, base=value, value=value, source="ignored", asked=text)
            )
        for key in dict.fromkeys((*asked, *self._sources)):
            base, value = self._base.get(key), self._values.get(key)
            source = self._sources.get(key, "file" if key in asked else "derived")
            wanted = asked.get(key) if source in ("forced", "derived") and key in asked else value
            is_in_vain = key in asked and not same(wanted, value)
            is_there = (key in self._base) is (key in self._values)
            if is_in_vain or not is_there or not identical(base, value):
                self.overrides.append(
                    Override(
                        key=key,
                        base=base,
                        value=value,
                        source=source,
                        asked=wanted if is_in_vain else None,
                    )
                )
