"""The description of a run: what `run.json` says of it, and what a backend is told.

Policy: everything in it is fit to be read by anyone who sees the run; secrets travel in a backend's
options alone.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace

from slime_logging.backends.place import address_of
from slime_logging.delivery.sampler import STEP_KEY
from slime_logging.layout.scope import to_json_mapping
from slime_logging.record.run import RunFile, now_s
from slime_logging.redaction.placeholder import as_name
from slime_logging.redaction.redact import Redactor
from slime_logging.settings.options import TRACKER_OPTIONS
from slime_logging.settings.settings import Settings
from slime_logging.values.json_value import Json

AXES: Mapping[str, str] = {
    "train": "train/step",
    "rollout": "rollout/step",
    "multi_turn": "rollout/step",
    "passrate": "rollout/step",
    "perf": "rollout/step",
    "eval": "eval/step",
    "explorer": "explorer/step",
    "trainer": "trainer/step",
    "system": STEP_KEY,
}
"""Metric prefix -> step key: slime's table, one axis each for an explorer and a trainer, and the
hosts' own.
"""


def redactor_of(args: Namespace, settings: Settings) -> Redactor:
    """A redactor that knows the secrets of this process, and what the user hides and shows."""
    return Redactor.of(args, os.environ, argv=sys.argv, hide=settings.hide, show=settings.show)


def describe_run(
    run_id: str, settings: Settings, roles: tuple[str, ...], redactor: Redactor
) -> RunFile:
    """What `run.json` says of a run at its first start, redacted."""
    group = settings.group
    named = group or settings.project
    suffix = f"-{run_id}" if settings.has_suffix or not group else ""
    made = RunFile(
        run_id=run_id,
        project=as_name(redactor.text(settings.project)),
        name=as_name(redactor.text(settings.name or f"{named}{suffix}")),
        group=None if group is None else as_name(redactor.text(group)),
        created_s=now_s(),
        num_starts=1,
        is_shared=settings.writer != "single"
        and settings.is_wandb_online
        and settings.is_delivering,
        is_delivered=settings.is_delivering,
        rewind=settings.rewind,
        trackers=settings.trackers,
        roles=roles,
        axes=AXES,
        options=redactor.config(to_json_mapping(settings.public_options()))
        | shown_options(settings, redactor),
    )
    facts = made.facts(settings.directory / run_id, {**settings.options, **made.options})
    found = {name: address_of(name, facts) for name in settings.trackers}
    addresses = {name: redactor.text(a.command or a.place) for name, a in found.items() if a}
    return replace(made, addresses=addresses)


def shown_options(settings: Settings, redactor: Redactor) -> dict[str, Json]:
    """The options that trackers show, without secrets: the same wherever the run is delivered
    from.
    """
    shown = (option.name for option in TRACKER_OPTIONS if option.is_shown)
    given = ((name, settings.options[name]) for name in shown)
    return {name: as_name(redactor.text(str(value))) for name, value in given if value}
