"""`slime-logging doctor`: what a job that starts here would do, before it is queued.

Policy: nothing is started, imported from slime, or asked over the network. Keys are said to be
there or not, never shown.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slime_logging.errors import SettingsError

if TYPE_CHECKING:
    from slime_logging.settings.settings import Settings

FlagsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- FLAGS", help="The job's own flags; others than ours are ignored."),
]
NO_SLIME = "none on this Python's path; a job of one's own needs none"


def doctor(flags: FlagsArgument = None) -> None:
    """Say which slime, Megatron-LM and W&B a job that starts here sees, where slime's calls of
    tracking go, which trackers are on, and what is wrong, with the fix.

    Run it where the job runs: in its container, with its environment. Exit code 1 where something
    is wrong.
    """
    from slime_logging.cli.runs import console, plain

    findings = _Findings()
    args, words = _parsed(flags or [])
    findings.say("Python", f"{sys.version.split()[0]} {sys.executable}")
    _look_at_slime(findings)
    findings.say("Megatron-LM", _megatron())
    _look_at_settings(findings, args)
    from slime_logging.settings.flags import unheard

    findings.wrong += unheard(Namespace(), words, os.environ)
    out = console()
    width = max(len(name) for name, _ in findings.said)
    for name, text in findings.said:
        out.print(plain(f"{name:<{width}}  {text}"), soft_wrap=True)
    for text in findings.wrong:
        out.print(plain(f"wrong: {text}"), soft_wrap=True)
    if findings.wrong:
        raise typer.Exit(1)


@dataclass
class _Findings:
    said: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def say(self, name: str, text: str) -> None:
        self.said.append((name, text))


def _parsed(words: list[str]) -> tuple[Namespace, list[str]]:
    """The flags as slime's parser and ours take them."""
    from slime_logging.settings.flags import add_tracking_arguments

    parser = add_tracking_arguments(ArgumentParser(add_help=False, allow_abbrev=False))
    return parser.parse_known_args(words)[0], words


def _look_at_slime(findings: _Findings) -> None:
    from slime_logging.slime.patch import VARIABLE, is_installed, is_wanted
    from slime_logging.slime.seen import see_slime

    slime = see_slime()
    if slime is None:
        findings.say("slime", NO_SLIME)
        return
    findings.say("slime", f"{_version('slime')} {slime.folder}".strip())
    is_patched = is_wanted(os.environ.get(VARIABLE))
    if slime.module is None:
        findings.wrong.append(
            f"{slime.folder} has no module of tracking that is known here. Import init_tracking,"
            " log and finish_tracking from slime_logging where this slime takes them from."
        )
    elif is_patched and is_installed():
        findings.say("its calls", f"come here, by {VARIABLE}: {', '.join(slime.calls)}")
    elif slime.is_by_line:
        findings.say(
            "its calls", f"come here, by a line in {slime.module}: {', '.join(slime.ours)}"
        )
        if slime.left_out:
            findings.wrong.append(
                f"{', '.join(slime.left_out)} in {slime.module} stays slime's. Make the line at its"
                f" end: {slime.line}"
            )
    else:
        findings.say("its calls", f"stay in {slime.module}")
        if is_patched:
            findings.wrong.append(
                f"{VARIABLE} is set, but this Python did not read slime_logging_patch.pth at its"
                " start. Install slime-logging with pip into it (a folder on PYTHONPATH is not"
                " enough), and start it without -S and -I."
            )
        else:
            findings.wrong.append(
                f"slime's calls do not come here. Set {VARIABLE}=1 in the environment of the job"
                f" and of its Ray workers, or write at the end of {slime.module}: {slime.line}"
            )


def _look_at_settings(findings: _Findings, args: Namespace) -> None:
    from slime_logging.settings.settings import Settings

    try:
        settings = Settings.of(args)
    except SettingsError as error:
        findings.wrong.append(str(error))
        return
    state = f"mode {settings.options['wandb_mode']}" if "wandb" in settings.trackers else "off"
    findings.say("W&B", f"{_version('wandb') or 'not installed'}, {state}")
    _look_at_trackers(findings, args, settings)
    findings.say("runs", f"in {settings.directory}")
    parent = next(
        path for path in (settings.directory, *settings.directory.parents) if path.exists()
    )
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        findings.wrong.append(
            f"{parent} cannot be written. Name another folder with --tracking-dir or"
            " SLIME_LOGGING_DIR; all hosts should see it."
        )


def _look_at_trackers(findings: _Findings, args: Namespace, settings: Settings) -> None:
    from slime_logging.backends.table import BACKENDS
    from slime_logging.session.description import describe_run, redactor_of

    packaged = [name for name, tracker in BACKENDS.items() if tracker.package]
    if not settings.is_on:
        findings.wrong.append(
            "nothing is tracked: no tracker is switched on, and no directory is named. Set"
            " SLIME_LOGGING_TRACKERS=wandb,tensorboard (any of"
            f" {', '.join(packaged)}), or give --use-wandb."
        )
    addresses = describe_run("RUN", settings, (), redactor_of(args, settings)).addresses
    for name in packaged:
        problem = _lacks(name)
        is_on = name in settings.trackers
        where = f"on: {addresses.get(name, '')}".rstrip(": ") if is_on else "off"
        findings.say(name, f"{where} ({problem or 'can be used'})")
        if is_on and problem and settings.is_delivering:
            findings.wrong.append(problem)


def _lacks(tracker: str) -> str | None:
    from slime_logging.backends.table import require_packages
    from slime_logging.errors import MissingBackendError

    try:
        require_packages(tracker)
    except MissingBackendError as error:
        return str(error)
    return None


def _version(distribution: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _megatron() -> str:
    """Where Megatron-LM is, and its version as its own file says it."""
    from importlib.util import find_spec

    try:
        spec = find_spec("megatron.core")
    except Exception:  # the parent package's own code runs for this
        spec = None
    if spec is None or not spec.origin:
        return "none on this Python's path"
    folder = Path(spec.origin).parent
    return f"{'.'.join(_numbers(folder / 'package_info.py'))} {folder}".strip()


def _numbers(file: Path) -> Iterator[str]:
    import ast

    if file.is_file():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if (
                isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", None) in ("MAJOR", "MINOR", "PATCH")
                and isinstance(node.value, ast.Constant)
            ):
                yield str(node.value.value)
