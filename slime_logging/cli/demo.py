"""`slime-logging demo`: run a small but real job that tracks itself.

Policy: exits with 0 only when the job ended well, 130 on Ctrl-C, 1 when a process of the job
failed, 2 for a mistake in the call. W&B stays offline unless `--online` is given.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slime_logging.cli.interrupts import noted_interrupts
from slime_logging.cli.options import DirectoryOption

if TYPE_CHECKING:
    from slime_logging.demo.job import JobResult
    from slime_logging.demo.screen import Screen

HELP = r"""Run a small but real RL job on this machine's CPU, tracked as one run.

It needs torch and megatron-core, no GPU, no account, no network: pip install '.\[demo]' in a clone.

Begin with [bold]demo ppo[/] (about 10 seconds): actor and critic in processes of their own.

Then copy configs/ppo_roles.yaml, change a value, and give the copy as [bold]--role-file[/].
"""

app = typer.Typer(
    name="demo",
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
)
TRACKERS = ("wandb", "trackio", "tensorboard", "mlflow", "swanlab")


class OneRole(str, Enum):
    """The role that is started alone."""

    explorer = "explorer"
    trainer = "trainer"


Rollouts = Annotated[
    int, typer.Option(min=1, help="How many rollouts; the actor begins to learn at the second.")
]
Ranks = Annotated[
    int, typer.Option(min=1, max=2, help="Tensor-parallel ranks a role; only the main one logs.")
]
Trackers = Annotated[
    str, typer.Option(metavar="NAME,...", help=f"Where to, of {', '.join(TRACKERS)}; or none.")
]
Online = Annotated[
    bool, typer.Option("--online", help="Let W&B go to its server; needs WANDB_API_KEY.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same rewards.")]
RoleFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="A role file in place of the demo's own."),
]
Steps = Annotated[
    int, typer.Option(min=1, help="How many steps the trainer takes (or the role alone).")
]
Only = Annotated[
    OneRole | None, typer.Option(help="Start one role alone: it makes a run of its own.")
]


@app.command()
def ppo(
    rollouts: Rollouts = 25,
    tp: Ranks = 1,
    trackers: Trackers = "wandb,trackio",
    tracking_dir: DirectoryOption = None,
    role_file: RoleFile = None,
    online: Online = False,
    seed: Seed = 1234,
) -> None:
    """PPO: a Megatron-core GPT as actor and one as critic, each with arguments of its own, in one
    run.

    The task is to write tokens with an id below 16. The reward goes from 0.13, chance, to 0.9 in 25
    rollouts.
    """
    where = {"directory": tracking_dir, "role_file": role_file, "seed": seed}
    _run_training("ppo", trackers, online, num_rollouts=rollouts, tensor_parallel_size=tp, **where)


@app.command()
def grpo(
    rollouts: Rollouts = 25,
    tp: Ranks = 1,
    trackers: Trackers = "wandb,trackio",
    tracking_dir: DirectoryOption = None,
    role_file: RoleFile = None,
    online: Online = False,
    seed: Seed = 1234,
) -> None:
    """GRPO: the same job without a critic, so that no critic/ key is anywhere."""
    where = {"directory": tracking_dir, "role_file": role_file, "seed": seed}
    _run_training("grpo", trackers, online, num_rollouts=rollouts, tensor_parallel_size=tp, **where)


@app.command("explorer-trainer")
def explorer_trainer(
    steps: Steps = 400,
    only: Only = None,
    trackers: Trackers = "wandb,trackio",
    tracking_dir: DirectoryOption = None,
    online: Online = False,
    seed: Seed = 1234,
) -> None:
    """Two roles with independent steps in one run: explorer/* on explorer/step, trainer/* on
    trainer/step.
    """

    def run(screen: Screen) -> JobResult:
        from slime_logging.demo.pair_job import PairOptions, run_pair

        options = PairOptions(
            only=only.value if only else None,
            num_steps=steps,
            trackers=_chosen(trackers),
            directory=tracking_dir,
            is_online=_checked_online(online),
            seed=seed,
        )
        return run_pair(options, screen)

    _show(run, {"torch": "torch"})


def _run_training(algorithm: str, trackers: str, online: bool, **options: Any) -> None:
    def run(screen: Screen) -> JobResult:
        from slime_logging.demo.job import JobOptions, run_job

        chosen = JobOptions(
            algorithm=algorithm,
            trackers=_chosen(trackers),
            is_online=_checked_online(online),
            **options,
        )
        return run_job(chosen, screen)

    _show(run, {"torch": "torch", "megatron-core": "megatron"})


def _show(run: Callable[[Screen], JobResult], needed: Mapping[str, str]) -> None:
    from rich.console import Console

    from slime_logging.demo.crew import JobFailed
    from slime_logging.demo.report import show_report
    from slime_logging.demo.screen import Screen
    from slime_logging.errors import TrackingError

    console, errors = Console(), Console(stderr=True, soft_wrap=True, highlight=False)
    _require_packages(needed)
    screen = Screen(console)
    interrupts = noted_interrupts()
    try:
        with screen:
            result = run(screen)
        if interrupts:  # a vendor's code took it for something else
            raise KeyboardInterrupt
    except (KeyboardInterrupt, Exception) as error:
        # A child that the same Ctrl-C ended, or an import that it broke, may be seen first.
        if interrupts or isinstance(error, KeyboardInterrupt):
            errors.print(f"\nInterrupted: {_what_is_left(screen)}")
            raise typer.Exit(130) from None
        if not isinstance(error, (JobFailed, TrackingError)):
            raise
        errors.print(f"[bold red]{type(error).__name__}[/]:", end=" ")
        errors.print(_without_secrets(str(error)), markup=False)
        errors.print(_what_is_left(screen), markup=False)
        raise typer.Exit(1) from None
    show_report(result, console)


def _what_is_left(screen: Screen) -> str:
    """What a job that did not end well leaves behind, and how to look at it."""
    from slime_logging.record.reading import count_rows
    from slime_logging.record.run import RunDirectory

    if screen.run is None:
        return "no run had begun, and nothing was logged."
    num_rows = sum(map(count_rows, RunDirectory(screen.run).journal_paths()))
    return (
        f"all processes have ended; run {screen.run.name} has {num_rows:,} rows. Look at it with:"
        f" slime-logging show {shlex.quote(str(screen.run))}"
    )


def _without_secrets(text: str) -> str:
    """The traceback of a process of the job, fit for a terminal and for a log that others read."""
    from slime_logging.cli.runs import redactor_of
    from slime_logging.redaction.redact import escape_terminal

    return escape_terminal(redactor_of({}).text(text))


def _require_packages(needed: Mapping[str, str]) -> None:
    from importlib.util import find_spec

    missing = [package for package, module in needed.items() if find_spec(module) is None]
    if missing:
        typer.echo(
            f"The demo needs {' and '.join(missing)}, not installed here. Install: pip install"
            " '.[demo]' (in a clone of slime_logging)",
            err=True,
        )
        raise typer.Exit(2)


def _chosen(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.replace(",", " ").split() if name != "none")
    unknown = [name for name in names if name not in TRACKERS]
    if unknown:
        raise typer.BadParameter(
            f"{', '.join(unknown)}: choose of {', '.join(TRACKERS)}, or none.",
            param_hint="--trackers",
        )
    return names


def _checked_online(online: bool) -> bool:
    if online and not os.environ.get("WANDB_API_KEY"):
        raise typer.BadParameter(
            "needs the environment variable WANDB_API_KEY.", param_hint="--online"
        )
    return online
