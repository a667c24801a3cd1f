"""`slime-logging report RUN`: one HTML page of a run, from its journals alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.cli.options import DirectoryOption, RunsArgument
from slime_logging.cli.runs import console, open_run, plain, told_plainly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slime_logging.record.run import RunDirectory
    from slime_logging.report.gather import Report

REPORT_FILE = "report.html"
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help=f"The page; - for the standard output. Default: {REPORT_FILE} in the first run's"
        " directory.",
    ),
]


def report(
    runs: RunsArgument,
    output: Output = None,
    tracking_dir: DirectoryOption = None,
) -> None:
    """Write one HTML page of a run, or of several side by side: what differs, a chart for each
    metric, the whole configuration.

    It needs no tracker and no server, works while the job runs, and can be mailed: one file that
    loads nothing.

    Examples:

        slime-logging report tracking/abc12345

        slime-logging report abc12345 def67890 -o both.html
    """
    from slime_logging.record.run import write_whole
    from slime_logging.report.page import page

    with told_plainly():
        found = (open_run(run, tracking_dir) for run in runs)
        directories = list({directory.path.resolve(): directory for directory in found}.values())
        path = output or directories[0].path / REPORT_FILE
        is_printed = str(path) == "-"
        if not is_printed:
            _check_place(path)
        with _memory_for_millions():
            data = page(_gather(directories)).encode()
        if is_printed:
            typer.echo(data, nl=False)
            return
        write_whole(path, data)
    size = f"{len(data) / 2**20:.1f} MiB" if len(data) >= 2**20 else f"{len(data) >> 10} KiB"
    console().print(plain(f"{path}: {size}. Open it in a browser."), soft_wrap=True)


def _check_place(path: Path) -> None:
    """Raise where no page can be written, before a long run is read for it.

    Raises:
        SettingsError: it is a folder, or its folder is not there.
    """
    from slime_logging.errors import SettingsError

    if path.is_dir():
        raise SettingsError(f"-o {path} is a folder; name a file in it: {path / REPORT_FILE}.")
    if not path.parent.is_dir():
        raise SettingsError(
            f"-o {path}: there is no folder {path.parent}; make it first: mkdir -p {path.parent}"
        )


def _gather(directories: Sequence[RunDirectory]) -> Report:
    from slime_logging.cli.progress import rows_progress
    from slime_logging.report.gather import gather

    with rows_progress(is_transient=True) as progress:
        task = progress.add_task("reading", total=None)
        return gather(directories, lambda rows: progress.advance(task, rows))


@contextmanager
def _memory_for_millions() -> Iterator[None]:
    """Values without cycles, so that the collector of garbage would only look through them. And
    glibc gives freed memory back, and takes it anew for each piece of a journal, unless it has
    seen a larger block: a tenth of the time.
    """
    bytearray(16 << 20)
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
