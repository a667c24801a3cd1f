"""`slime-logging check ROLES.yaml`: is the role file right, and what does it change? Before the job
is queued.

Exit code 0: the file is right. 1: it has mistakes, which are printed. 2: the command itself was
wrong.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slime_logging.cli.options import JsonOption, RolesOption

if TYPE_CHECKING:
    from slime_logging.roles.problems import Problem
    from slime_logging.roles.roles import RoleSet

DTYPE_WORDS = ("dtype", "bf16", "fp16")
"""torch is imported only for a role file that names one of them."""


Flags = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- FLAGS", help="The job's own flags, after `--`."),
]
ArgsJson = Annotated[
    Path | None,
    typer.Option("--args-json", metavar="FILE", help="The job's validated arguments, as JSON."),
]
Parser = Annotated[
    str | None,
    typer.Option("--parser", metavar="MODULE:NAME", help="The job's own parser, for its types."),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Ask the slime and Megatron-LM that are installed here.")
]


def check(
    path: Annotated[str, typer.Argument(metavar="ROLES.yaml", help="The role file.")],
    flags: Flags = None,
    args_json: ArgsJson = None,
    role: RolesOption = None,
    parser: Parser = None,
    as_json: JsonOption = False,
    is_exact: Exact = False,
) -> None:
    """Check a role file as the job would, and show what each role gets.

    Without the job's flags or arguments, the options' defaults are what the file is checked
    against.
    """
    from slime_logging.roles.roles import ROLES, check_role_file

    asked = _exact_base if is_exact else functools.partial(_base, path)
    base, unknown = asked(flags or [], args_json)
    roles = tuple(dict.fromkeys((*ROLES, *role))) if role else None
    with _command_line(flags or []):
        found, problems = check_role_file(base, path, _parser(parser), roles)
    problems = _without_secrets(problems, base)
    if parser is None:
        problems = tuple(map(_with_parser_hint, problems))
    if as_json:
        _print_json(path, base, found, problems, unknown)
    else:
        _print(path, base, found, problems, unknown)
    raise typer.Exit(0 if found is not None else 1)


def _without_secrets(problems: tuple[Problem, ...], base: Namespace) -> tuple[Problem, ...]:
    """The mistakes without the secrets that this process knows by value."""
    import os
    from dataclasses import replace

    from slime_logging.redaction.redact import Redactor

    if not problems:
        return ()
    safe = Redactor.of(base, os.environ, argv=sys.argv).message
    return tuple(
        replace(one, text=safe(one.text), reason=safe(one.reason), fix=safe(one.fix))
        for one in problems
    )


def _with_parser_hint(problem: Problem) -> Problem:
    """An unknown argument can be one of the job's own, which only its parser knows."""
    from dataclasses import replace

    if not problem.reason.startswith("there is no argument"):
        return problem
    hint = "if it is an argument of your own job, check with --parser MODULE:NAME"
    return replace(problem, fix=f"{problem.fix.rstrip('.')}; {hint}")


def _base(path: str, flags: list[str], args_json: Path | None) -> tuple[Namespace, list[str]]:
    from slime_logging.roles.flags import arguments_of_flags, arguments_of_json

    if flags and args_json is not None:
        raise typer.BadParameter("give --args-json or flags after --, not both")
    has_dtypes = _names_dtype(path)
    try:
        if args_json is not None:
            return arguments_of_json(args_json.read_bytes(), has_dtypes=has_dtypes), []
        return arguments_of_flags(flags, has_dtypes=has_dtypes)
    except (OSError, ValueError) as error:
        from slime_logging.redaction.redact import safe_error

        raise typer.BadParameter(str(safe_error(ValueError(str(error)), None))) from None


@contextlib.contextmanager
def _command_line(flags: list[str]) -> Iterator[None]:
    """While the file is checked, the process's command line is the job's."""
    own = sys.argv
    sys.argv = ["train.py", *flags]
    try:
        yield
    finally:
        sys.argv = own


def _exact_base(flags: list[str], args_json: Path | None) -> tuple[Namespace, list[str]]:
    from slime_logging.redaction.redact import safe_error
    from slime_logging.roles.exact import slimes_arguments

    if args_json is not None:
        raise typer.BadParameter("--exact parses the job's flags: give them after --")
    try:
        with _command_line(flags):
            return slimes_arguments(flags), []
    except ImportError as error:
        raise typer.BadParameter(
            f"--exact asks slime and Megatron-LM, which cannot be imported here: {error}"
        ) from None
    except (OSError, ValueError, LookupError) as error:
        told = str(safe_error(ValueError(str(error)), None))
        raise typer.BadParameter(f"the job's own parser refuses the flags: {told}") from None


def _names_dtype(path: str) -> bool:
    try:
        text = Path(path).read_bytes()[: 1 << 20]
    except (OSError, ValueError):
        return False
    return any(word.encode() in text for word in DTYPE_WORDS)


def _parser(source: str | None) -> ArgumentParser | None:
    from slime_logging.roles.megatron.options import parser_from

    if source is None:
        return None
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` and the job's own script find it
        sys.path.insert(0, here)
    try:
        return parser_from(source)
    except (ImportError, AttributeError, ValueError) as error:
        raise typer.BadParameter(f"--parser {source}: {error}") from None


def _print(
    path: str,
    base: Namespace,
    found: RoleSet | None,
    problems: tuple[Problem, ...],
    unknown: list[str],
) -> None:
    from rich.console import Console

    from slime_logging.cli.tables import differences_table, problems_text
    from slime_logging.layout.diff import set_differences

    console = Console(highlight=False, soft_wrap=True)
    if unknown:
        console.print(
            f"not an option of Megatron-LM or slime, so not looked at: {' '.join(_names(unknown))}",
            markup=False,
        )
    if found is None:
        console.print(problems_text(path, problems))
        return
    for warning in found.warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False)
    differences = set_differences(found, vars(base))
    if differences:
        table = differences_table(
            differences, tuple(found.args), f"{path}: what differs between the roles"
        )
        Console(highlight=False).print(table)
    console.print(
        f"{path} is right, by {found.basis}: {len(differences)} arguments differ.", markup=False
    )


def _print_json(
    path: str,
    base: Namespace,
    found: RoleSet | None,
    problems: tuple[Problem, ...],
    unknown: list[str],
) -> None:
    from dataclasses import asdict

    import orjson

    from slime_logging.layout.diff import set_differences

    report: dict[str, Any] = {
        "path": path,
        "ok": found is not None,
        "basis": None if found is None else found.basis,
        "mistakes": [asdict(problem) for problem in problems],
        "warnings": list(found.warnings) if found else [],
        "unknown_flags": _names(unknown),
        "differences": [],
    }
    if found is not None:
        report["differences"] = [_row(item) for item in set_differences(found, vars(base))]
    typer.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


def _row(item: Any) -> dict[str, Any]:
    from slime_logging.redaction.redact import Redactor
    from slime_logging.roles.problems import HIDDEN, looks_secret
    from slime_logging.values.serialize import to_json

    row = {
        "base": to_json(item.base),
        **{role: to_json(value) for role, value in item.values.items()},
    }
    if looks_secret(item.key):
        row = dict.fromkeys(row, HIDDEN)
    safe = Redactor().config(row)
    base = safe.pop("base")
    return {"argument": item.key, "base": base, "roles": safe, "sources": dict(item.sources)}


def _names(words: list[str]) -> list[str]:
    """The flags among unknown words, without their values, which may be secret."""
    return [word.partition("=")[0] for word in words if word.startswith("--")]
