"""What the process that delivers a run is told, once, through a pipe: keys are in it.

Policy: a process gets only the environment that it needs: what any program needs, and for a
tracker's process its vendor's own variables. None of it is an argument of a command or in the
environment of the supervisor, where others could read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class DeliverySpec:
    """What to deliver, for whom, and until when. Times are in seconds.

    `only` names the process whose own journals are delivered, by its main journal; None delivers
    the whole run where `is_primary`, and else nothing: such a process looks after its host alone.
    `pid` is the process that started the delivery, on `host`; `host_label` is what may be shown of
    that name. `is_following`: a `sync --follow` asked for it, which holds the delivery's lock, and
    the run may be another host's. `environment` is by tracker. `interval_s` is that of
    the host's system metrics, None where they are off.
    """

    directory: str
    trackers: tuple[str, ...]
    label: str
    start: int
    host: str
    host_label: str
    pid: int
    is_primary: bool
    finish_timeout_s: float
    is_shared: bool = False
    is_following: bool = False
    only: str | None = None
    interval_s: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
