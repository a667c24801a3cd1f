"""What differs between two runs: in the configuration of each role, as each run logged it.

Policy: a key that differs for every role in the same way is told once, for the job. What is of a
process or of the run itself (host, pid, its id and place) is no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slime_logging.layout.diff import OF_THE_RUN, Difference, role_differences
from slime_logging.values.run import RunConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class RunDifference:
    """A key of one role in which the runs differ: `difference.values` has a value a run,
    `difference.sources` says which run's role file (or rule) set it. `role` is "" for the job.
    """

    role: str
    difference: Difference


def run_differences(configs: Mapping[str, RunConfig]) -> list[RunDifference]:
    """What differs, role by role.

    Args:
        configs: the runs, by the names that stand above their columns.
    """
    scopes = {name: _scopes(config) for name, config in configs.items()}
    roles = list(dict.fromkeys(role for of_run in scopes.values() for role in of_run if role))
    found: list[RunDifference] = []
    by_key: dict[str, list[RunDifference]] = {}
    for role in ("", *roles):
        values = {name: of_run.get(role, {}) for name, of_run in scopes.items()}
        sources = {name: _sources(config, role) for name, config in configs.items()}
        for item in role_differences(values, None, sources):
            by_key.setdefault(item.key, []).append(RunDifference(role=role, difference=item))
    for _, items in sorted(by_key.items()):
        first = items[0].difference
        is_alike = len(items) == len(roles) > 1 and all(
            not item.difference.sources and item.difference.values == first.values for item in items
        )
        found += [RunDifference(role="", difference=first)] if is_alike else items
    return found


def _scopes(config: RunConfig) -> dict[str, dict[str, Any]]:
    """Each role's own values; under "" those that belong to no role."""
    roles = {role: values for role, values in config.roles.items() if values}
    ours = ("overrides/", "process/", "resume/")
    elsewhere = (*(f"{role}/" for role in roles), *ours)
    owned = {key for values in roles.values() for key in values}
    job = {k: v for k, v in config.values.items() if k not in owned and not k.startswith(elsewhere)}
    return {
        scope: {k: v for k, v in values.items() if not k.startswith(ours) and k not in OF_THE_RUN}
        for scope, values in {"": job, **roles}.items()
    }


def _sources(config: RunConfig, role: str) -> dict[str, str]:
    prefix = f"overrides/{role}/"
    return {
        key.removeprefix(prefix): str(value.get("source", ""))
        for key, value in config.values.items()
        if role and key.startswith(prefix) and isinstance(value, dict)
    }
