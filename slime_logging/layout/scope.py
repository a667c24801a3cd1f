"""Arguments and roles -> the run's configuration, one owner per key.

Policy: the un-prefixed keys are the global arguments with the actor's overrides applied; every
other role's complete arguments stand under `<role>/`. So the primary knows the whole of it before
any role has joined, and the order of joining, finishing and uploading cannot change what the run
ends with. Nothing of the arguments is copied or changed.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from slime_logging.layout.leaves import leaves
from slime_logging.redaction.redact import Redactor
from slime_logging.values.json_value import Json
from slime_logging.values.run import RunConfig
from slime_logging.values.serialize import arguments_to_json, to_json

if TYPE_CHECKING:
    from slime_logging.roles.roles import Override, RoleSet

UNPREFIXED_ROLES = ("actor",)
"""Roles whose arguments ARE the un-prefixed ones; slime's rollout manager logs the globals too."""

PROCESS_KEYS = frozenset({"rank", "local_rank", "wandb_run_id", "tracking_run_dir"})
"""Arguments that differ between the processes of one role: the primary alone logs them, so that
they have one owner.
"""


class RoleConfig(Namespace):
    """What a process outside of slime tells of itself: `config`, its configuration as nested plain
    JSON, all of it under the prefix of its role; beside it the arguments that say how it is
    tracked.
    """

    config: dict[str, Json]
    role: str | None


def scope_of(role: str | None, args: object = None) -> str:
    """The scope of a role: "" for slime's actor and for processes without a configuration of their
    own, else the role.
    """
    is_prefixed = isinstance(args, RoleConfig) or role not in UNPREFIXED_ROLES
    return role if role is not None and is_prefixed else ""


def has_own_values(role: str | None, args: object) -> bool:
    """Whether a process that joins has a configuration to record; one of slime's without a role has
    the primary's.
    """
    return role is not None or isinstance(args, RoleConfig)


def run_roles(args: object) -> tuple[str, ...]:
    """The roles that the primary expects to have arguments of their own: slime's actor, and the
    critic where `use_critic` holds and the estimator does not say otherwise.
    """
    if isinstance(args, RoleConfig):
        return ()
    has_critic = getattr(args, "use_critic", False)
    has_critic = has_critic and getattr(args, "advantage_estimator", None) in (None, "ppo")
    return ("actor", "critic") if has_critic else ("actor",)


def primary_scopes(
    args: Namespace, redactor: Redactor, env_vars: Mapping[str, str]
) -> dict[str, dict[str, Json]]:
    """Everything that the primary logs at its start, by scope: a role whose keys are prefixed, or
    "" for the others.

    Args:
        args: the global arguments; `megatron_config_path` and `use_critic` decide which roles there
        are.
        redactor: hides the secrets.
        env_vars: the environment variables to log, already chosen.

    Raises:
        RoleConfigError: the role file has mistakes.
    """
    if isinstance(args, RoleConfig):
        return {"": {"env_vars": dict(redactor.config(to_json_mapping(env_vars)))}}
    from slime_logging.roles.roles import parse_role_file

    role_set = parse_role_file(args, getattr(args, "megatron_config_path", None) or None)
    roles = run_roles(args)
    values = role_values(role_set.args.get("actor", args), redactor)
    values["env_vars"] = dict(redactor.config(to_json_mapping(env_vars)))
    for role in roles:
        values.update(override_values(role_set, role, redactor))
    prefixed = [role for role in roles if role not in UNPREFIXED_ROLES]
    return {"": values, **{role: role_values(role_set.args[role], redactor) for role in prefixed}}


def possible_scopes(args: Namespace, redactor: Redactor) -> dict[str, dict[str, Json]]:
    """What the primary knows of roles that it does not expect, in the form of `primary_scopes`: the
    critic, and those that the role file names. It is of the run once such a role joins.
    """
    if isinstance(args, RoleConfig):
        return {}
    from slime_logging.roles.roles import parse_role_file

    role_set = parse_role_file(args, getattr(args, "megatron_config_path", None) or None)
    found: dict[str, dict[str, Json]] = {"": {}}
    for role in set(role_set.args) - set(run_roles(args)):
        found[""].update(override_values(role_set, role, redactor))
        found[role] = role_values(role_set.args[role], redactor)
    return found


def role_values(args: object, redactor: Redactor) -> dict[str, Json]:
    """The arguments of one role as plain, redacted JSON, un-prefixed."""
    if isinstance(args, RoleConfig):
        return leaves(redactor.config(args.config))
    return redactor.config(
        arguments_to_json(args if isinstance(args, (Namespace, Mapping)) else vars(args))
    )


def own_values(args: object, redactor: Redactor) -> dict[str, Json]:
    """What a role's process says of its role: `role_values` without what differs between the
    processes of the role.
    """
    values = role_values(args, redactor)
    if isinstance(args, RoleConfig):
        return values
    return {key: value for key, value in values.items() if key not in PROCESS_KEYS}


def late_values(args: object, values: Mapping[str, object], redactor: Redactor) -> dict[str, Json]:
    """Values that became known late, in the same form as those of these arguments."""
    hidden = redactor.config(to_json_mapping(values))
    return leaves(hidden) if isinstance(args, RoleConfig) else hidden


def override_values(role_set: RoleSet, role: str, redactor: Redactor) -> dict[str, Json]:
    """`overrides/<role>/<key>`: what the role file, a rule or a derivation decided for the role,
    and from which base.

    `source` is that of `roles.Override`; `asked` is there where the role file wanted something
    else.
    """
    changed = {override.key: _as_json(override) for override in role_set.overrides.get(role, ())}
    hidden = redactor.config(to_json_mapping(changed))
    return {f"overrides/{role}/{key}": value for key, value in hidden.items()}


def _as_json(override: Override) -> dict[str, Json]:
    said = {
        "base": to_json(override.base),
        "value": to_json(override.value),
        "source": override.source,
    }
    return said if override.asked is None else said | {"asked": to_json(override.asked)}


def to_json_mapping(values: Mapping[str, object]) -> dict[str, Json]:
    """A mapping with text keys as plain JSON."""
    return {str(key): to_json(value) for key, value in values.items()}


def process_label(facts: Mapping[str, Json], journal: str) -> str:
    """What a process is called among those of its run: its host and pid, to be read, and the end of
    its journal's name, because two hosts may have one name.
    """
    return f"{facts.get('host')}-{facts.get('pid')}-{journal[-6:]}".replace("/", "-")[:120]


def flatten(scopes: Mapping[str, Mapping[str, Json]], roles: Sequence[str]) -> RunConfig:
    """The scopes as one run configuration: the flat view that most trackers show, and the view by
    role.
    """
    values = dict(scopes.get("", {}))
    by_role: dict[str, Mapping[str, Json]] = {}
    for role in roles:
        own = scopes.get(role, scopes.get(scope_of(role)))
        if own is not None:
            by_role[role] = {key: value for key, value in own.items() if not _is_of_the_run(key)}
    for scope, own in scopes.items():
        if scope:
            values.update({f"{scope}/{key}": value for key, value in own.items()})
    return RunConfig(values=values, roles=by_role)


def _is_of_the_run(key: str) -> bool:
    return (
        key in ("env_vars", "redacted_keys")
        or key.startswith(("overrides/", "process/", "resume/"))
        or "/process/" in key
    )
