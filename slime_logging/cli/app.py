"""The table of commands of `slime-logging`."""

from __future__ import annotations

import typer

from slime_logging.cli import demo
from slime_logging.cli.check import check
from slime_logging.cli.diff import diff
from slime_logging.cli.report import report
from slime_logging.cli.show import show
from slime_logging.cli.sync import sync
from slime_logging.cli.verify import verify

app = typer.Typer(
    name="slime-logging",
    help=(
        "One tracked run for a whole RL job: check its role file, show, sync and verify its run, or"
        " run a demo job."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(demo.app)
app.command("check")(check)
app.command("diff")(diff)
app.command("report")(report)
app.command("show")(show)
app.command("sync")(sync)
app.command("verify")(verify)
