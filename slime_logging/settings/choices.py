"""What the caller of `join` chose, as the arguments that the flags would make.

Policy: one meaning whoever says it: each choice is the flag of the same name, so the environment
fills what is left open. A name that there is not raises, with the nearest one.
"""

from __future__ import annotations

import difflib
import os
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from slime_logging.errors import SettingsError
from slime_logging.settings.option import TRACKERS_VARIABLE, Option
from slime_logging.settings.options import BY_NAME, OPTIONS, TRACKERS

Trackers = Iterable[str] | Mapping[str, Mapping[str, Any] | None]

_PREFIXES = {"tensorboard": "tb_"}
_SAME = {"entity": "team", "api_key": "key", "base_url": "host", "uri": "tracking_uri"}
"""What the vendors call it -> what the flag does."""


def chosen_arguments(trackers: Trackers | None, options: Mapping[str, Any]) -> Namespace:
    """The arguments that mean the same.

    Args:
        trackers: names, or names with the options of each; None leaves it to the environment.
        options: other options by the names of their flags, with or without `tracking_`.

    Raises:
        SettingsError: there is no such tracker or option.
    """
    args = Namespace()
    by_tracker = _by_tracker(trackers)
    for tracker, own in by_tracker.items():
        setattr(args, f"use_{tracker}", True)
        prefix = _PREFIXES.get(tracker, f"{tracker}_")
        known = {
            option.name.removeprefix(prefix): option
            for option in OPTIONS
            if option.tracker == tracker and option.name.startswith(prefix)
        }
        for name, value in own.items():
            option = _found(_SAME.get(name, name), known, f"the tracker {tracker}")
            setattr(args, option.name, value)
    known = {name.removeprefix("tracking_"): option for name, option in BY_NAME.items()}
    for name, value in options.items():
        setattr(args, _found(name.removeprefix("tracking_"), known, "join").name, value)
    return args


def chosen_environment(trackers: Trackers | None) -> dict[str, str]:
    """The environment that fills what was left open; it switches no tracker on beside those named
    in the code.
    """
    is_open = trackers is None
    return {k: v for k, v in os.environ.items() if is_open or k != TRACKERS_VARIABLE}


def _by_tracker(trackers: Trackers | None) -> dict[str, Mapping[str, Any]]:
    if isinstance(trackers, str):
        trackers = trackers.replace(",", " ").split()
    named = trackers if isinstance(trackers, Mapping) else dict.fromkeys(trackers or ())
    for name in named:
        if name not in TRACKERS:
            raise SettingsError(f"trackers: no tracker {name!r}; there are: {', '.join(TRACKERS)}.")
    return {name: own or {} for name, own in named.items()}


def _found(name: str, known: Mapping[str, Option], whose: str) -> Option:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}."
    raise SettingsError(f"no option {name!r} of {whose}; {hint}")
