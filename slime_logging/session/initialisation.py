"""How `init_tracking` begins this process's part of a run: as its primary, or joining it."""

from __future__ import annotations

import logging
from argparse import Namespace
from typing import Any

from slime_logging.errors import RunConflictError, SettingsError
from slime_logging.hosts.rendezvous import WAYS_TO_JOIN, find
from slime_logging.hosts.workers import tell_workers
from slime_logging.redaction.redact import safe_error
from slime_logging.session.lifetime import (
    changing,
    end,
    ended_with,
    enter,
    is_joined,
    primaries,
    tell,
)
from slime_logging.session.naming import find_by_job
from slime_logging.session.starting import join, start_primary
from slime_logging.settings.settings import Settings

logger = logging.getLogger("slime_logging")


def initialise(
    args: Namespace, settings: Settings, *, primary: bool, role: str | None, wants_client: bool
) -> None:
    """Make the run, or join it, as a start allows.

    Raises what `start_primary` and `join` raise. A process that finds no run to join says so, and
    goes on without one.
    """
    # A primary whose trackers were switched on by its own environment tells the others by its args.
    is_told = not primary and getattr(args, "tracking_run_dir", None)
    if not settings.is_on and not is_told:
        if primary:
            args.wandb_run_id = None
        return
    with changing():
        if primary:
            try:
                _init_primary(args, settings, role)
            except (SettingsError, RunConflictError) as error:
                raise safe_error(error, args) from None
            return
        address = find(args) or find_by_job(settings)
        if address is None:
            logger.error(
                "slime_logging: %s finds no run to join: its rows are NOT kept. To join, %s.",
                f"role {role}" if role else "this process",
                WAYS_TO_JOIN,
            )
            return
        if is_joined(args, role, address.run_id):
            return
        session = join(args, settings, role, address, wants_client=wants_client)
        enter(session)


def _init_primary(args: Namespace, settings: Settings, role: str | None) -> None:
    for session in primaries():
        if session.args is args:
            return
        logger.warning(
            "slime_logging: a new run begins in this process; the one before, %s, ends",
            session.directory.path,
        )
        end(session, 0)
    session = start_primary(args, settings, role)
    enter(session)
    tell_workers(session.address, settings.directory)
    trackers = (
        ", ".join(_tracker_label(name, settings) for name in settings.trackers) or "journals only"
    )
    tell(
        f"slime_logging: run {session.directory.path.name} ({trackers}) in {session.directory.path}"
    )
    if not settings.is_delivering:
        tell(
            "slime_logging: only journals are kept here; on a host with internet: slime-logging"
            f" sync --follow {session.directory.path}"
        )
    for name, address in session.directory.read().addresses.items():
        tell(f"slime_logging: {name}: {address}")


def forget_former_run(args: Namespace) -> None:
    """The id that an ended run of this process left in its arguments does not ask to continue it;
    one that was given there does.
    """
    former = ended_with(args)
    if former and former.minted_id and former.minted_id == getattr(args, "wandb_run_id", None):
        args.wandb_run_id = args.tracking_run_dir = None


def _tracker_label(name: str, settings: Settings) -> str:
    return f"wandb {settings.options['wandb_mode']}" if name == "wandb" else name


def check_arguments(args: Any) -> None:
    """The run's address is written into the arguments, which carry it to the other processes:
    `SettingsError` where they take no attribute.
    """
    try:
        args.wandb_run_id = getattr(args, "wandb_run_id", None)
    except Exception:
        raise SettingsError(
            f"init_tracking got a {type(args).__name__} as args, in which no attribute can be set:"
            " it writes wandb_run_id and tracking_run_dir there. Give it"
            " argparse.Namespace(**values), the values being the dict itself, model.model_dump(),"
            " or OmegaConf.to_container(config, resolve=True)."
        ) from None
