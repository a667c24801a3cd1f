"""What each role trains with: the base arguments with the role's entry of the role file, meant as
its flags would be.

Policy: a file that is not right in every part gives a `RoleConfigError` that lists all its
mistakes, and no arguments. The base is never changed, and a result shares no mutable value with it.
A file is read once for a base namespace in a process, so that what is logged is what is used even
if the file changes in between.
"""

from __future__ import annotations

import argparse
import logging
import os
from argparse import Namespace
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slime_logging.errors import RoleConfigError
from slime_logging.redaction.redact import safe_error
from slime_logging.roles.documents import Documents
from slime_logging.roles.entries import RoleEntry, entries_of
from slime_logging.roles.megatron.options import Option, OptionTable
from slime_logging.roles.problems import Problem, message, shown
from slime_logging.roles.resolution import Override, Resolution
from slime_logging.roles.role_file import Unreadable
from slime_logging.roles.rules import topology_differences
from slime_logging.roles.targets import as_yaml

__all__ = [
    "ROLES",
    "Override",
    "RoleSet",
    "check_role_file",
    "parse_megatron_role_args",
    "parse_role_file",
]

ROLES = ("actor", "critic")
"""The roles that slime has; others (reward, reference, teacher, explorer, trainer) by `roles=`."""

_log = logging.getLogger("slime_logging")
_documents = Documents()


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleSet:
    """The resolved arguments of all roles, what was decided for each, and what was warned about."""

    args: Mapping[str, Namespace]
    overrides: Mapping[str, tuple[Override, ...]]
    warnings: tuple[str, ...] = ()
    path: str | None = None


def parse_megatron_role_args(
    base_args: Namespace,
    megatron_config_path: str | os.PathLike[str] | None,
    role: str,
    parser: argparse.ArgumentParser | None = None,
    roles: Sequence[str] = ROLES,
) -> Namespace:
    """The arguments that a role trains with.

    Args:
        base_args: The job's validated arguments; never changed.
        megatron_config_path: The role file, or None for a job without one: the base with the role's
        own values then.
        role: One of `roles`.
        parser: The parser of the job; its options go before the shipped table's.
        roles: The roles that the file may have entries for.

    Raises:
        RoleConfigError: The file has mistakes (in any role's entry), or `role` is not one of
        `roles`.
    """
    known = tuple(roles)
    if role not in known:
        raise RoleConfigError(
            f"Unsupported Megatron config role: {shown(str(role))!r} is not one of"
            f" {', '.join(known)}. Pass roles={(*known, role)!r} if the job has this role."
        )
    return parse_role_file(base_args, megatron_config_path, parser, known).args[role]


def parse_role_file(
    base_args: Namespace,
    megatron_config_path: str | os.PathLike[str] | None,
    parser: argparse.ArgumentParser | None = None,
    roles: Sequence[str] = ROLES,
) -> RoleSet:
    """The arguments of all roles, for logging and for training. Arguments as
    `parse_megatron_role_args`.

    Each warning is logged once for a base namespace and file, and is in the result each time.

    Raises:
        RoleConfigError: The file has mistakes; the message lists all of them.
    """
    found, problems = check_role_file(base_args, megatron_config_path, parser, roles)
    if found is None:
        raise safe_error(
            RoleConfigError(message(os.fsdecode(megatron_config_path or ""), problems)), base_args
        )
    for warning in _documents.unsaid(base_args, found.path, found.warnings):
        _log.warning("%s%s", f"{found.path}: " if found.path else "", warning)
    return found


def check_role_file(
    base_args: Namespace,
    megatron_config_path: str | os.PathLike[str] | None,
    parser: argparse.ArgumentParser | None = None,
    roles: Sequence[str] = ROLES,
) -> tuple[RoleSet | None, tuple[Problem, ...]]:
    """As `parse_role_file`, but gives the mistakes as they are, instead of a role set, and logs
    nothing.
    """
    path = None if megatron_config_path is None else os.fsdecode(megatron_config_path)
    entries: list[RoleEntry] = []
    problems: list[Problem] = []
    if path is not None:
        try:
            document = _documents.document(base_args, path)
        except Unreadable as error:
            return None, error.problems
        entries, problems = entries_of(document, roles)
        problems.extend(document.problems)
    parsed: Mapping[str, Option] = {} if parser is None else OptionTable.of_parser(parser)
    options = ChainMap(dict(parsed), OptionTable.shipped())  # type: ignore[arg-type]  # never written to
    present = {entry.role for entry in entries}
    work = [Resolution(base_args, entry.role, entry, options, parsed) for entry in entries]
    work += [
        Resolution(base_args, role, None, options, parsed) for role in roles if role not in present
    ]
    work.sort(key=lambda resolution: tuple(roles).index(resolution.role))
    problems += [problem for resolution in work for problem in resolution.problems]
    problems = problems or _topology_problems(work)
    if problems:
        if path is not None:
            _documents.forget(base_args, path)
        return None, tuple(problems)
    found = RoleSet(
        args={resolution.role: resolution.args for resolution in work},
        overrides={resolution.role: tuple(resolution.overrides) for resolution in work},
        warnings=tuple(warning for resolution in work for warning in resolution.warnings),
        path=path,
    )
    return found, ()


def _topology_problems(work: Sequence[Resolution]) -> list[Problem]:
    """Topology that differs between the roles as resolved, whatever the base says."""
    return [
        Problem(
            line=0,
            column=0,
            text=", ".join(f"{role}: {as_yaml(value)}" for role, value in values.items()),
            reason=f"`{key}` is parallel topology and differs between the roles",
            fix="set it on the command line, for all roles, and take it out of the role file",
        )
        for key, values in topology_differences({one.role: vars(one.args) for one in work}).items()
    ]
