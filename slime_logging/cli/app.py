"""The table of commands of `slime-logging`."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from slime_logging import __version__
from slime_logging.cli import demo
from slime_logging.cli.check import check
from slime_logging.cli.diff import diff
from slime_logging.cli.doctor import doctor
from slime_logging.cli.list import list_runs
from slime_logging.cli.merge import merge
from slime_logging.cli.push import push
from slime_logging.cli.report import report
from slime_logging.cli.schema import schema
from slime_logging.cli.show import show
from slime_logging.cli.sync import sync
from slime_logging.cli.verify import verify
from slime_logging.cli.watch import watch

app = typer.Typer(
    name="slime-logging",
    help=(
        "One tracked run for a whole RL job: check its role file; list, watch, show and compare"
        " runs; sync and verify them; or run a demo job."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(demo.app)
app.command("list")(list_runs)
for command in (check, diff, doctor, merge, push, report, schema, show, sync, verify, watch):
    app.command(command.__name__)(command)


def _as_paragraphs(text: str) -> str:
    """A docstring whose lines end where the terminal's do; its indented lines stay as they are."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else p.replace("\n", " ") for p in paragraphs)


for registered in (*app.registered_commands, *demo.app.registered_commands):
    registered.help = _as_paragraphs(getattr(registered.callback, "__doc__", None) or "")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"slime-logging {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    del version
