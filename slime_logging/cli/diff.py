"""`slime-logging diff RUN`: what differs between the roles of a run, as the run logged them."""

from __future__ import annotations

from typing import Annotated

import typer

from slime_logging.cli.runs import DirectoryOption, RunArgument, open_run, print_json, told_plainly


def diff(
    run: RunArgument,
    tracking_dir: DirectoryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Show what differs between the roles of a run: what each really used."""
    from slime_logging.config.diff import Difference, role_differences
    from slime_logging.record.status import journal_config

    with told_plainly():
        config = journal_config(open_run(run, tracking_dir), ("actor", "critic"))
    roles = tuple(role for role, values in config.roles.items() if values)
    sources: dict[str, dict[str, str]] = {role: {} for role in roles}
    bases: dict[str, object] = {}
    for name, value in config.values.items():
        owner, _, key = name.removeprefix("overrides/").partition("/")
        if name.startswith("overrides/") and owner in sources and isinstance(value, dict):
            sources[owner][key] = str(value.get("source", ""))
            bases[key] = value.get("base")
    found = role_differences({role: config.roles[role] for role in roles}, None, sources)
    found = [
        Difference(key=item.key, base=bases.get(item.key, item.base), values=item.values, sources=item.sources)
        for item in found
    ]
    if as_json:
        rows = [
            {"argument": item.key, "base": item.base, "roles": dict(item.values), "sources": dict(item.sources)}
            for item in found
        ]
        print_json(rows)
        return
    from rich.console import Console

    from slime_logging.cli.tables import differences_table

    title = f"{run}: what differs between {', '.join(roles)}"
    Console(highlight=False).print(differences_table(found, roles, title))
