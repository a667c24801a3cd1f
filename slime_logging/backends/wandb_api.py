"""The run as W&B's server holds it, by the public `wandb.Api`; used inside the worker process.

Policy: reads only. It also judges what W&B raises, because both sides of the client raise the same errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NEVER_STATUSES = frozenset({400, 401, 403, 404, 405, 413, 422, 501})
KEY_ADVICE = (
    "W&B refuses the API key: set --wandb-key or WANDB_API_KEY to a key of {host} (its page /authorize shows yours)"
)


def read_rows(where: Mapping[str, Any], start: int, num_rows: int) -> tuple[list[dict[str, Any]], int | None]:
    """At most `num_rows` history rows from line `start` on, and the line to go on from, None at the end."""
    raise NotImplementedError


def read_config(where: Mapping[str, Any]) -> dict[str, Any]:
    """The run's configuration without W&B's own `_wandb`."""
    raise NotImplementedError


def verdict(error: Exception) -> tuple[str, str]:
    """("never" or "again", text) for whatever the client raised."""
    text = f"{type(error).__name__}: {error}"
    name = type(error).__name__
    if name in ("AuthenticationError",) or re.search(r"\b(401|403)\b|not configured|[Pp]ermission denied", text):
        return "never", f"{KEY_ADVICE.format(host='the server')} ({text})"
    statuses = {int(status) for status in re.findall(r"\b([45]\d\d)\b", text)}
    if statuses & NEVER_STATUSES or name in ("UsageError", "ValidationError"):
        return "never", text
    return "again", text
