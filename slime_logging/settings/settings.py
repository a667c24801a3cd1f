"""Flags and environment -> one frozen `Settings`.

Policy: a namespace that lacks any of the flags works: the environment fills what it leaves open,
and what is missing still has its default. A value that cannot work raises `SettingsError` with the
fix, at start, never later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any, cast

from slime_logging.errors import SettingsError
from slime_logging.settings.given import FALSE, TRUE, Given
from slime_logging.settings.option import TRACKERS_VARIABLE
from slime_logging.settings.options import (
    DEFAULT_DIRECTORY,
    TRACKER_OPTIONS,
    TRACKERS,
    WANDB_MODES,
    RewindPolicy,
    RunIdSource,
    WriterPolicy,
)

DEFAULT_FINISH_TIMEOUT_S = 60.0
DEFAULT_SYSTEM_METRICS_S = 15.0
DEFAULT_ENV_VARS = ("SLURM_JOB_ID",)

MAX_LABEL_CHARS = {"tracking_tags": 4_096, "tracking_notes": 16_384, "tracking_job_type": 64}
"""Of what a person calls a run; some of it may come from an environment that nobody looked at."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the flags and the environment of this process ask for. Times are in seconds.

    `trackers` holds the names of those switched on (W&B in mode `disabled` is not on). `options`
    holds the trackers' own options, the secret ones included; they are kept out of the repr.
    """

    trackers: tuple[str, ...]
    directory: Path
    has_directory: bool
    writer: WriterPolicy
    is_delivering: bool
    run_id: str | None
    run_id_from: RunIdSource
    is_resuming_newest: bool
    rewind: RewindPolicy
    finish_timeout_s: float
    project: str
    name: str | None
    group: str | None
    has_suffix: bool
    hide: tuple[str, ...]
    show: tuple[str, ...]
    env_vars: tuple[str, ...]
    system_metrics_s: float | None
    options: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, args: object, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings out of a namespace, the environment filling what it leaves open.

        Raises:
            SettingsError: a value cannot work; the message names the flag and the fix.
        """
        given = Given(args, environ)
        options = {option.name: given.value(option.name) for option in TRACKER_OPTIONS}
        options |= {name: given.label(name, most) for name, most in MAX_LABEL_CHARS.items()}
        system_metrics_s = _system_metrics(given)
        if options["tracking_system_metrics"] is not None:
            options["tracking_system_metrics"] = system_metrics_s or "off"
        trackers = _trackers(given)
        if "wandb" in trackers:
            options["wandb_mode"] = _wandb_mode(given)
            if options["wandb_mode"] == "disabled":
                trackers = tuple(name for name in trackers if name != "wandb")
        directory = given.value("tracking_dir")
        return cls(
            trackers=trackers,
            directory=Path(os.fspath(directory or DEFAULT_DIRECTORY)).expanduser().absolute(),
            has_directory=bool(directory),
            writer=cast(WriterPolicy, given.choice("tracking_writer") or "auto"),
            is_delivering=given.choice("tracking_delivery") != "off",
            run_id=given.text("wandb_run_id"),
            run_id_from=cast(RunIdSource, given.choice("tracking_run_id_from") or "auto"),
            is_resuming_newest=given.truth("tracking_resume"),
            rewind=cast(RewindPolicy, given.choice("tracking_rewind") or "keep"),
            finish_timeout_s=given.seconds("tracking_finish_timeout", DEFAULT_FINISH_TIMEOUT_S),
            project=given.label("wandb_project") or given.label("tb_project_name") or "slime",
            name=given.label("tracking_name"),
            group=given.label("wandb_group"),
            has_suffix=bool(getattr(args, "wandb_random_suffix", True)),
            hide=given.names("tracking_hide"),
            show=given.names("tracking_show"),
            env_vars=(*DEFAULT_ENV_VARS, *given.names("tracking_env")),
            system_metrics_s=system_metrics_s,
            options=options,
        )

    @property
    def is_on(self) -> bool:
        """Whether anything is to be tracked at all: a tracker is on, or a directory for journals
        was named.
        """
        return bool(self.trackers) or self.has_directory

    @property
    def delivers(self) -> tuple[str, ...]:
        """The trackers that the job itself delivers to."""
        return self.trackers if self.is_delivering else ()

    @property
    def is_wandb_online(self) -> bool:
        """Whether W&B is on and talks to a server."""
        return "wandb" in self.trackers and self.options["wandb_mode"] == "online"

    def logged_environment(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Those of the environment variables to log that are set."""
        return {name: environ[name] for name in self.env_vars if name in environ}

    def public_options(self) -> dict[str, Any]:
        """The trackers' options that are set, without the secret ones: safe to keep in
        `run.json`.
        """
        return {
            option.name: self.options[option.name]
            for option in TRACKER_OPTIONS
            if self.options[option.name] is not None and not option.is_secret
        }


def _trackers(given: Given) -> tuple[str, ...]:
    """Those that a flag or `SLIME_LOGGING_TRACKERS` switches on."""
    named = given.environ.get(TRACKERS_VARIABLE, "").replace(",", " ").split()
    unknown = [name for name in named if name not in TRACKERS]
    if unknown:
        raise SettingsError(
            f"{TRACKERS_VARIABLE}: no tracker {unknown[0]!r}; there are: {', '.join(TRACKERS)}."
        )
    return tuple(
        name for name in TRACKERS if name in named or getattr(given.args, f"use_{name}", False)
    )


def _system_metrics(given: Given) -> float | None:
    value = given.value("tracking_system_metrics")
    if value is not None and str(value).lower() in FALSE:
        return None
    return given.seconds("tracking_system_metrics", DEFAULT_SYSTEM_METRICS_S)


def _wandb_mode(given: Given) -> str:
    """The mode asked for; without one, online where a key is known and offline where none is."""
    has_key = _has_wandb_key(given)
    label, mode = given.said("wandb_mode")
    is_asked = label == "--wandb-mode" and mode is not None
    if not is_asked and given.environ.get("WANDB_DISABLED", "").lower() in TRUE:
        return "disabled"
    if mode is None:
        return "online" if has_key else "offline"
    if mode == "dryrun":  # the client's old name of it, still seen in job scripts
        return "offline"
    if mode not in (*WANDB_MODES, "shared"):
        raise SettingsError(f"{label} {mode!r}: must be one of {', '.join(WANDB_MODES)}.")
    is_delivering = given.choice("tracking_delivery") != "off"
    if mode in ("online", "shared") and not has_key and is_delivering:
        raise SettingsError(
            f"{label} {mode}, but no W&B API key was found in --wandb-key, WANDB_API_KEY or the"
            " netrc file. Set WANDB_API_KEY, or use --wandb-mode offline, or --tracking-delivery"
            " off with `slime-logging sync --follow` where the key is."
        )
    return "online" if mode == "shared" else str(mode)


def _has_wandb_key(given: Given) -> bool:
    if given.said("wandb_key")[1] or given.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    host = str(given.value("wandb_host") or "https://api.wandb.ai")
    host = host.split("://", 1)[-1].split("/", 1)[0].split(":", 1)[0]
    path = Path(given.environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        return netrc(str(path)).authenticators(host) is not None
    except (OSError, NetrcParseError):
        return False
