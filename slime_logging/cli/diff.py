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
    from slime_logging.delivery.status import journal_config
    from slime_logging.layout.diff import logged_differences

    with told_plainly():
        config = journal_config(open_run(run, tracking_dir), ("actor", "critic"))
    roles, found = logged_differences(config)
    if as_json:
        rows = [
            {
                "argument": item.key,
                "base": item.base,
                "roles": dict(item.values),
                "sources": dict(item.sources),
            }
            for item in found
        ]
        print_json(rows)
        return
    from rich.console import Console

    from slime_logging.cli.tables import differences_table

    title = f"{run}: what differs between {', '.join(roles)}"
    Console(highlight=False).print(differences_table(found, roles, title))
