"""`slime-logging merge A B ... --into RUN`: one directory out of those of several hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.cli.options import DirectoryOption, RunsArgument
from slime_logging.cli.runs import open_run, plain, told_plainly

if TYPE_CHECKING:
    from slime_logging.hosts.merge import Merged


def merge(
    run: RunsArgument,
    into: Annotated[
        Path, typer.Option("--into", help="The run's own directory, or a new one to make.")
    ],
    tracking_dir: DirectoryOption = None,
) -> None:
    """Bring the journals of several hosts into one directory of the run.

    For hosts that share no disk: copy their directories to one place, merge them, and `sync`. May
    be repeated and interrupted at will: what is there already is not taken twice. A journal that
    goes on differently in two directories is refused, and named.

    Examples:

        slime-logging merge tracking/abc12345 from-host2/abc12345 --into tracking/abc12345
    """
    from slime_logging.hosts.merge import merge as bring
    from slime_logging.record.run import RunDirectory

    with told_plainly():
        sources = [open_run(each, tracking_dir) for each in run]
        results = bring(sources, RunDirectory(into))
    report(results)
    if not all(result.is_complete for result in results):
        raise typer.Exit(1)
    typer.echo(f"now: slime-logging sync {plain(into)} && slime-logging verify {plain(into)}")


def report(results: list[Merged]) -> None:
    """Say what came from each directory, and what did not."""
    from rich.console import Console

    console = Console(soft_wrap=True)
    for result in results:
        head = f"{result.source}: {result.num_bytes:,} bytes taken, {result.num_files:,} files here"
        console.print(plain(head))
        for name, reason in result.refused.items():
            console.print(plain(f"  refused: {name}: {reason}"))
        if result.problem:
            console.print(plain(f"  not now: {result.num_bytes_left:,} bytes: {result.problem}"))
