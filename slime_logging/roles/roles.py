"""What each role trains with: the base arguments with the role's entry of the role file, meant as
its flags would be.

Policy: a file that is not right in every part gives a `RoleConfigError` that lists all its
mistakes, and no arguments. The base is never changed, and a result shares no mutable value with it.
A file is read once for a base namespace in a process, so that what is logged is what is used even
if the file changes in between. Where the job's parser is at hand it decides what an entry comes to
(`exact.py`), else the tables do (`megatron/`); `RoleSet.basis` says which.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from argparse import Namespace
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slime_logging.errors import RoleConfigError
from slime_logging.redaction.redact import safe_error
from slime_logging.roles.asked import Asked, Known
from slime_logging.roles.documents import Documents
from slime_logging.roles.entries import RoleEntry, entries_of
from slime_logging.roles.exact import CommandLine, slimes_parser
from slime_logging.roles.megatron import READ_FROM
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.problems import Problem, message, shown
from slime_logging.roles.resolution import Override, Resolution
from slime_logging.roles.rules import RoleValues, topology_differences
from slime_logging.roles.slimes import ROLES
from slime_logging.roles.targets import as_yaml
from slime_logging.roles.tree import Unreadable
from slime_logging.roles.trial import Reparse

__all__ = [
    "ROLES",
    "Override",
    "RoleSet",
    "check_role_file",
    "parse_megatron_role_args",
    "parse_role_file",
]

TABLES = f"the tables of {READ_FROM}"
EXACT = "the job's own parser and validation"

_log = logging.getLogger("slime_logging")
_documents = Documents()


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleSet:
    """The resolved arguments of all roles, what was decided for each, what was warned about, and
    by what it was decided (`basis`: `EXACT` or `TABLES`).
    """

    args: Mapping[str, Namespace]
    overrides: Mapping[str, tuple[Override, ...]]
    warnings: tuple[str, ...] = ()
    path: str | None = None
    basis: str = TABLES


def parse_megatron_role_args(
    base_args: Namespace,
    megatron_config_path: str | os.PathLike[str] | None,
    role: str,
    parser: argparse.ArgumentParser | None = None,
    roles: Sequence[str] | None = None,
    reparse: Reparse | None = None,
) -> Namespace:
    """The arguments that a role trains with.

    Args:
        base_args: The job's validated arguments; never changed.
        megatron_config_path: The role file, or None for a job without one: the base with the role's
            own values then.
        role: One of `roles`.
        parser: The parser of the job; its options go before the shipped table's.
        roles: The roles that the file may have entries for; by default actor, critic and those
            that the file names.
        reparse: What made the base from the words of the command line (`sys.argv[1:]`): a list of
            words in, the validated namespace out. By default slime's, where slime is loaded. It
            runs in a process of its own.

    Raises:
        RoleConfigError: The file has mistakes (in any role's entry), or `role` is not one of
            `roles`.
    """
    found = parse_role_file(base_args, megatron_config_path, parser, roles, reparse)
    if role not in found.args:
        raise RoleConfigError(
            f"Unsupported Megatron config role: {shown(str(role))!r} is not one of"
            f" {', '.join(found.args)}. Pass roles={(*found.args, role)!r} if the job has this"
            " role."
        )
    return found.args[role]


def parse_role_file(
    base_args: Namespace,
    megatron_config_path: str | os.PathLike[str] | None,
    parser: argparse.ArgumentParser | None = None,
    roles: Sequence[str] | None = None,
    reparse: Reparse | None = None,
) -> RoleSet:
    """The arguments of all roles, for logging and for training. Arguments as
    `parse_megatron_role_args`.

    Each warning is logged once for a base namespace and file, and is in the result each time.

    Raises:
        RoleConfigError: The file has mistakes; the message lists all of them.
    """
    found, problems = check_role_file(base_args, megatron_config_path, parser, roles, reparse)
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
    roles: Sequence[str] | None = None,
    reparse: Reparse | None = None,
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
        entries, problems = entries_of(document, roles or ROLES, is_open=roles is None)
        problems.extend(document.problems)
    line = _command_line(base_args, path, entries, reparse or slimes_parser())
    named = [entry.role for entry in entries]
    known = tuple(dict.fromkeys((*(roles or ROLES), *named)))
    work, warnings = _resolved(base_args, entries, known, line, parser)
    problems += [problem for resolution in work for problem in resolution.problems]
    problems = problems or _topology_problems(work)
    if problems:
        if path is not None:
            _documents.forget(base_args, path)
        return None, tuple(problems)
    found = RoleSet(
        args={resolution.role: resolution.args for resolution in work},
        overrides={resolution.role: tuple(resolution.overrides) for resolution in work},
        warnings=(*warnings, *(text for resolution in work for text in resolution.warnings)),
        path=path,
        basis=EXACT if line is not None and not line.doubt else TABLES,
    )
    return found, ()


def _command_line(
    base: Namespace, path: str | None, entries: Sequence[RoleEntry], reparse: Reparse | None
) -> CommandLine | None:
    """The command line to ask, where there is something to ask, and something that parses it."""
    if reparse is None or not hasattr(os, "fork") or not any(entry.written for entry in entries):
        return None
    return CommandLine(reparse, sys.argv[1:], vars(base), _documents.parses(base, path or ""))


def _resolved(
    base: Namespace,
    entries: Sequence[RoleEntry],
    roles: Sequence[str],
    line: CommandLine | None,
    parser: argparse.ArgumentParser | None,
) -> tuple[list[Resolution], list[str]]:
    """All roles' resolutions, in the order of `roles`, and what is to be said of how they were
    made.
    """
    warnings: list[str] = []
    if line is not None and line.doubt:
        warnings.append(
            f"overrides follow {TABLES}, not {EXACT}: asked with this process's command line,"
            f" {line.doubt}"
        )
        line = None
    parsed: dict[str, Option] = {} if line is None else dict(line.options)
    parsed.update({} if parser is None else OptionTable.of_parser(parser))
    known = Known(
        options=ChainMap(parsed, OptionTable.shipped()),  # type: ignore[arg-type]  # not written to
        parsed=parsed,
        is_exact=line is not None,
    )
    done: list[Resolution] = []
    for role in roles:
        of_role: list[RoleEntry | None] = [one for one in entries if one.role == role]
        own = RoleValues.of(role, vars(base))
        for entry in of_role or [None]:
            asked = Asked(base, role, entry, known)
            try:
                outcome = None if line is None else line.outcome(asked)
            except OSError as error:
                outcome = None
                warnings.append(f"{role}: its overrides follow {TABLES}: {error}")
            done.append(Resolution(base, asked, own, outcome))
    return done, warnings


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
