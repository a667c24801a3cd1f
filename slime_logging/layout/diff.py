"""What differs between the roles of a job: pure computation, from resolved arguments or from a
logged configuration.

Policy: a key is listed where two roles differ in it, or a role differs from the base; equal keys
never are. True and 1 are different, NaN is equal to NaN. Nothing is redacted here: give it redacted
values where they are to be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slime_logging.roles.equality import same
from slime_logging.values.run import RunConfig

if TYPE_CHECKING:
    from slime_logging.roles.roles import RoleSet

MISSING = "-"
"""Stands for the value of a role or base that does not have the key."""


OF_THE_RUN = frozenset(
    {"wandb_run_id", "tracking_run_dir", "tracking_dir", "redacted_keys", "rank", "tracking_name"}
)
"""What says which run this is, and which process; no difference between roles or runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One key: the base's value, each role's, and why a role's is what it is (`file`, `forced`,
    `derived`, ...).
    """

    key: str
    base: Any
    values: Mapping[str, Any]
    sources: Mapping[str, str]


def role_differences(
    roles: Mapping[str, Mapping[str, Any]],
    base: Mapping[str, Any] | None = None,
    sources: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Difference]:
    """The keys in which roles differ from each other or from the base, sorted.

    Args:
        roles: role -> its arguments. base: the arguments before any override; None where they are
        not known.
        sources: role -> key -> why the role has this value.
    """
    keys = sorted({key for values in roles.values() for key in values} | set(base or ()))
    found = []
    for key in keys:
        values = {role: arguments.get(key, MISSING) for role, arguments in roles.items()}
        compared = (
            list(values.values()) if base is None else [base.get(key, MISSING), *values.values()]
        )
        if _all_same(compared):
            continue
        why = {role: of_role[key] for role, of_role in (sources or {}).items() if key in of_role}
        found.append(
            Difference(key=key, base=(base or {}).get(key, MISSING), values=values, sources=why)
        )
    return found


def set_differences(found: RoleSet, base: Mapping[str, Any]) -> list[Difference]:
    """The differences of a role set, with what decided each of them; `base` are the arguments that
    it was made from.
    """
    sources = {
        role: {item.key: item.source for item in items} for role, items in found.overrides.items()
    }
    return role_differences({role: vars(args) for role, args in found.args.items()}, base, sources)


def logged_differences(config: RunConfig) -> tuple[tuple[str, ...], list[Difference]]:
    """The roles of a run that logged a configuration, and what differs between them, with the bases
    and sources that stand under `overrides/`.
    """
    roles = tuple(role for role, values in config.roles.items() if values)
    sources: dict[str, dict[str, str]] = {role: {} for role in roles}
    bases: dict[str, Any] = {}
    for name, value in config.values.items():
        owner, _, key = name.removeprefix("overrides/").partition("/")
        if name.startswith("overrides/") and owner in sources and isinstance(value, dict):
            sources[owner][key] = str(value.get("source", ""))
            bases[key] = value.get("base")
    own = {
        role: {key: value for key, value in config.roles[role].items() if key not in OF_THE_RUN}
        for role in roles
    }
    found = role_differences(own, None, sources)
    return roles, [replace(item, base=bases.get(item.key, item.base)) for item in found]


def _all_same(values: Iterable[Any]) -> bool:
    first, *others = values
    return all(same(first, other) or (first != first and other != other) for other in others)
