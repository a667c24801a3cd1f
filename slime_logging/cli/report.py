"""`slime-logging report RUN`: one HTML page of a run, from its journals alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.cli.runs import DirectoryOption, RunArgument, open_run, plain, told_plainly

if TYPE_CHECKING:
    from slime_logging.record.run import RunDirectory
    from slime_logging.report.gather import Report

REPORT_FILE = "report.html"


def report(
    run: RunArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help=f"The page. Default: {REPORT_FILE} in the run's directory."
        ),
    ] = None,
    tracking_dir: DirectoryOption = None,
) -> None:
    """Write one HTML page of a run: what differs between its roles, a chart for each metric, the
    whole configuration.

    It needs no tracker and no server, works while the job runs, and can be mailed: one file,
    without scripts.

    Examples:

        slime-logging report tracking/abc12345

        slime-logging report abc12345 -o ppo.html
    """
    from rich.console import Console

    from slime_logging.record.run import write_whole
    from slime_logging.report.page import page

    with told_plainly():
        directory = open_run(run, tracking_dir)
        path = output or directory.path / REPORT_FILE
        data = page(_gather(directory)).encode()
        write_whole(path, data)
    Console().print(
        plain(f"{path}: {len(data) / 2**20:.1f} MiB. Open it in a browser."), soft_wrap=True
    )


def _gather(directory: RunDirectory) -> Report:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from slime_logging.report.gather import gather

    columns = [
        TextColumn("reading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        return gather(directory, lambda rows: progress.advance(task, rows))
