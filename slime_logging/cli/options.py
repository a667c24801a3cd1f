"""Arguments and options that several commands have, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="The run's directory, its id or the beginning of it, or @newest."
    ),
]
RunsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN", help="Each run's directory, its id or the beginning of it, or @newest."
    ),
]
DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "--tracking-dir", help="Where runs are kept. Default: SLIME_LOGGING_DIR, else ./tracking."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print it for programs.")]
OnlineOption = Annotated[
    bool, typer.Option("--online", help="W&B: its server, even if the job was offline.")
]
TrackerOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of a tracker, e.g. mlflow_tracking_uri=URI.",
    ),
]
RolesOption = Annotated[list[str] | None, typer.Option("--role", help="One more role; repeatable.")]
