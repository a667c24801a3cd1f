"""`slime-logging push DIR`: bring what waits on this host to the run, over Ray."""

from __future__ import annotations

from typing import Annotated

import typer

from slime_logging.cli.merge import report
from slime_logging.cli.options import DirectoryOption, RunArgument
from slime_logging.cli.runs import open_run, told_plainly


def push(
    run: RunArgument,
    ray_address: Annotated[
        str, typer.Option("--ray-address", help="The Ray cluster. Default: the one of this host.")
    ] = "auto",
    tracking_dir: DirectoryOption = None,
) -> None:
    """Bring journals that wait on this host to the run's own directory, over a Ray cluster.

    For a host that does not see the run's directory, when its relay could not bring everything. May
    be repeated and interrupted at will. Where the cluster is gone, copy the directory and use
    `merge`.
    """
    from slime_logging.hosts.push import push as bring

    with told_plainly():
        result = bring(open_run(run, tracking_dir), ray_address)
    report([result])
    if not result.is_complete:
        raise typer.Exit(1)
