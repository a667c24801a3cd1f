"""The calls that a training job makes: `init_tracking`, `log`, `log_config`, `finish_tracking`, and
slime's two for W&B.

Policy: strict at the start (a mistake in flags or the role file raises there), quiet in the loop (a
tracker that is down, slow or wrong costs the caller nothing), bounded at the end. A process that
never joined, or whose tracking is off, may call everything: nothing happens. With no tracker
switched on and no `--tracking-dir`, nothing is imported and nothing is written.
"""

from __future__ import annotations

import logging
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from slime_logging.errors import SettingsError
from slime_logging.redaction.redact import safe_error
from slime_logging.session.engines import show_engines
from slime_logging.session.initialisation import check_arguments, forget_former_run, initialise
from slime_logging.session.lifetime import (
    changing,
    end,
    exit_code_of,
    session_of,
    session_with,
    swallow,
)
from slime_logging.settings.flags import unheard
from slime_logging.settings.settings import Settings

logger = logging.getLogger("slime_logging")


def init_tracking(
    args: Namespace,
    primary: bool = True,
    role: str | None = None,
    *,
    router_addr: str | None = None,
    **ignored: Any,
) -> None:
    """Make the job's run (primary), or join it (everyone else) with the configuration of a role.

    The primary logs the global arguments and, with `use_critic`, the critic's under `critic/`, and
    writes `wandb_run_id` and `tracking_run_dir` into `args`: pickle these arguments into the other
    processes. They call this with `primary=False`. Calling it again in a process that has joined
    already changes nothing.

    Args:
        args: the arguments of the job (primary) or of the role, as parsed by slime or Megatron;
            only the two attributes named above are ever set.
        primary: True in the one process that makes the run.
        role: "actor", "critic", or any other; None for a process without a configuration of its
        own.
        router_addr: where the inference engines' router answers, as slime passes it on.
        ignored: whatever else a version of slime passes on to its trackers; named in a warning.

    Raises:
        SettingsError: a tracking flag cannot work.
        RoleConfigError: the role file has mistakes.
        MissingBackendError: a tracker was switched on whose package is not installed.
        RunConflictError: the run id belongs to a run with a living primary.
        OSError: the run's directory cannot be written.
    """
    if ignored:
        logger.warning("slime_logging: init_tracking does not use %s", ", ".join(ignored))
    check_arguments(args)
    if primary:
        forget_former_run(args)
        for text in unheard(args, sys.argv, os.environ):
            logger.warning("slime_logging: %s", text)
    initialise(args, _settings(args), primary=primary, role=role, wants_client=False)
    if getattr(args, "sglang_enable_metrics", True):
        update_tracking_open_metrics(args, router_addr)


def init_wandb_primary(args: Namespace) -> None:
    """Make the job's run with W&B as its only tracker; without `use_wandb`, set `args.wandb_run_id
    = None` and do nothing.

    Raises as `init_tracking`.
    """
    settings = _only_wandb(args)
    if settings is None:
        args.wandb_run_id = None
        return
    initialise(args, settings, primary=True, role=None, wants_client=False)


def init_wandb_secondary(args: Namespace, role: str | None = None) -> None:
    """Join the run in `args.wandb_run_id` with a W&B client of this process's own, in shared mode,
    and the role's configuration.

    With W&B off nothing happens. Offline there is no shared mode: the primary delivers for this
    process too.

    Args:
        args: the role's own arguments.
        role: "critic" logs under `critic/`, the actor and None un-prefixed.

    Raises as `init_tracking`.
    """
    settings = _only_wandb(args)
    if settings is not None:
        initialise(args, settings, primary=False, role=role, wants_client=True)


def log(args: object, metrics: Mapping[str, Any], step_key: str) -> None:
    """Log one row of metrics at the step `metrics[step_key]`.

    When this returns, the row is with the operating system and survives the death of the process;
    every tracker gets it later. It takes some 10 microseconds for 30 numbers. One-element tensors
    and numpy scalars become numbers, the rest what is nearest.

    Args:
        args: the arguments that this process joined with, or any others.
        metrics: name -> value; not changed.
        step_key: the name in `metrics` that holds the step, such as `"train/step"`. A row without
            it is kept at the last step that this process logged on that axis, with one warning.
    """
    session = session_of(args)
    if session is not None:
        try:
            session.log(metrics, step_key)
        except Exception as error:
            swallow("log", session, error)


def log_samples(args: object, rows: Sequence[Mapping[str, Any]], step_key: str) -> None:
    """Log a table of samples: what the job's model was asked, what it wrote, what that earned.

    Texts are kept whole up to 1 MiB each. When this returns, the table is in a file beside the
    journal and survives the death of the process; each tracker shows it as its own kind of table,
    `slime-logging show RUN --samples` in the terminal.

    Args:
        args: the arguments that this process joined with, or any others.
        rows: one mapping a sample, such as `{"rollout/step": 3, "prompt": ..., "completion": ...,
            "reward": 0.5}`, with whatever other columns; not changed.
        step_key: the name in the samples that holds the step, such as `"rollout/step"`; a sample
            without it belongs to the step of the one before.

    Raises:
        KeyError: the first sample has no `step_key`.
    """
    session = session_of(args)
    if session is not None:
        try:
            session.log_samples(rows, step_key)
        except KeyError:
            raise
        except Exception as error:
            swallow("log_samples", session, error)


def log_config(args: object, values: Mapping[str, Any], role: str | None = None) -> None:
    """Add or change configuration values that became known only now, under the role's prefix.

    Args:
        args: the arguments that this process joined with.
        values: name -> value; anything becomes readable JSON.
        role: whose configuration it is; None means the role of this process (the un-prefixed keys
            in the primary).
    """
    session = session_of(args)
    if session is not None:
        try:
            session.log_config(values, role)
        except Exception as error:
            swallow("log_config", session, error)


def update_tracking_open_metrics(args: object, router_addr: str | None) -> None:
    """slime's: say where the inference engines' own metrics are, once their router is up.

    The process that delivers samples them with the host's own, under `system/engines/`; the address
    stands in the run's configuration under `open_metrics/sgl_engine`.

    Args:
        args: the arguments that this process joined with.
        router_addr: such as `"http://10.0.0.1:30000"`; None says nothing.
    """
    session = session_of(args) if router_addr else None
    if session is not None:
        try:
            show_engines(session, str(router_addr))
        except Exception as error:
            swallow("update_tracking_open_metrics", session, error)


def define_step_key_metric_group(prefix: str, step_key: str) -> None:
    """miles': metrics under `prefix` are drawn over `step_key`. Nothing has to be declared here:
    each row names its own axis when it is logged.
    """


def finish_tracking(args: object = None, exit_code: int = 0) -> None:
    """End this process's part of the run; in the primary, end the run.

    Waits up to `--tracking-finish-timeout` seconds for the trackers. What could not be delivered
    stays in the journals, and the command that delivers it is printed. May be called more than
    once; never raises. The same arguments may begin a run again: a new one, unless their
    `wandb_run_id` was given or `--tracking-resume` asks to continue.

    Args:
        args: the arguments that this process joined with, and with others nothing ends; without
            them, this process's latest part is ended.
        exit_code: 0 for a job that ended well.
    """
    with changing():
        session = session_of(None) if args is None else session_with(args)
        if session is not None:
            end(session, exit_code)


@contextmanager
def tracked(args: Namespace, primary: bool = True, role: str | None = None) -> Iterator[None]:
    """`init_tracking` and `finish_tracking` around a block, with the exit code that the block
    deserves.

    An exception or a `SystemExit` passes through and is recorded as a failure.
    """
    init_tracking(args, primary=primary, role=role)
    exit_code = 1
    try:
        yield
        exit_code = 0
    except SystemExit as stop:
        exit_code = exit_code_of(stop)
        raise
    finally:
        finish_tracking(args, exit_code)


def _settings(args: Namespace) -> Settings:
    try:
        return Settings.of(args)
    except SettingsError as error:
        raise safe_error(error, args) from None


def _only_wandb(args: Namespace) -> Settings | None:
    settings = _settings(args)
    return replace(settings, trackers=("wandb",)) if "wandb" in settings.trackers else None
