"""What a role that joined says of itself, where that is not what the primary expected of it.

Policy: a role's own word stands, for its arguments as for `overrides/<role>/`. What slime sets
while the job runs is no difference, and neither is what is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping

from slime_logging.roles.equality import same
from slime_logging.roles.slimes import ROLES, is_set_at_run_time
from slime_logging.values.json_value import Json
from slime_logging.values.run import RunConfig

OWN = "own"
"""The source of an override that the role itself tells, against what was expected."""

SLIMES_ROLES = ROLES
"""Expected where slime would start them; others where a role file names them."""

MAX_TOLD = 5


def own_overrides(
    role: str,
    own: Mapping[str, Json],
    expected: Mapping[str, Json],
    recorded: Mapping[str, Json],
) -> dict[str, Json]:
    """`overrides/<role>/<key>` for each key that a role has otherwise than was expected.

    Args:
        role: the role.
        own: what it says of itself.
        expected: what the primary said of it.
        recorded: the un-prefixed configuration; its overrides have the bases.
    """
    found: dict[str, Json] = {}
    for key, value in own.items():
        if key not in expected or is_set_at_run_time(key) or _is_hidden(value, expected[key]):
            continue
        if same(value, expected[key]):
            continue
        name = f"overrides/{role}/{key}"
        before = recorded.get(name)
        base = before.get("base") if isinstance(before, dict) else expected[key]
        found[name] = {"base": base, "value": value, "source": OWN, "asked": expected[key]}
    return found


def surprises(config: RunConfig) -> dict[str, list[str]]:
    """Role -> what it has otherwise than was expected, a short text a key."""
    found: dict[str, list[str]] = {}
    for name, value in config.values.items():
        if name.startswith("overrides/") and isinstance(value, dict) and value.get("source") == OWN:
            _, role, key = name.split("/", 2)
            text = f"{key} is {value.get('value')!r:.60}, not {value.get('asked')!r:.60}"
            found.setdefault(role, []).append(text)
    return found


def told(texts: list[str]) -> str:
    """The first of these texts, and how many more there are."""
    more = f", and {len(texts) - MAX_TOLD} more" if len(texts) > MAX_TOLD else ""
    return ", ".join(texts[:MAX_TOLD]) + more


def _is_hidden(*values: Json) -> bool:
    return any("<hidden" in str(value) for value in values)
