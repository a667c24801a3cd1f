"""One flag of ours or of slime, with its variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "SLIME_LOGGING_"
TRACKERS_VARIABLE = f"{PREFIX}TRACKERS"

SWITCH = {"action": "store_true"}

NAMES = {"nargs": "*", "metavar": "NAME"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One flag.

    `tracker` reads it (`EVERY_TRACKER`: each may; None: only this package does). `env` are the
    vendors' variables that say the same. `is_secret`: it reaches no file. `is_shown`: trackers show
    its text, so it is redacted first; the others are keys and places. `is_place`: it says where
    data go, and a run's own directory is not believed in it. `is_slimes`: slime has it too.
    """

    flag: str
    help: str
    keywords: Mapping[str, Any] = field(default_factory=dict)
    tracker: str | None = None
    env: tuple[str, ...] = ()
    is_secret: bool = False
    is_shown: bool = False
    is_place: bool = False
    is_slimes: bool = False

    @property
    def name(self) -> str:
        """The attribute of a namespace that holds it."""
        return str(self.keywords.get("dest") or self.flag[2:].replace("-", "_"))

    @property
    def is_switch(self) -> bool:
        """Whether it switches a tracker on."""
        return self.name.startswith("use_")

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that say the same, the strongest first. One holds all switches:
        `SLIME_LOGGING_TRACKERS=trackio,mlflow`.
        """
        if self.is_switch:
            return (TRACKERS_VARIABLE,)
        own = f"{PREFIX}{self.name.removeprefix('tracking_').upper()}"
        return self.env if self.is_slimes else (own, *self.env)

    def said_by(self, environ: Mapping[str, str]) -> tuple[str, str] | None:
        """The variable that says it and what it says; None where none does. Empty says nothing."""
        found = ((name, environ[name]) for name in self.variables if environ.get(name))
        return next(found, None)

    def texts(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """All that the environment says of it."""
        return tuple(environ[name] for name in self.variables if name in environ)


def slimes(flag: str, help: str, keywords: Mapping[str, Any] | None = None, **rest: Any) -> Option:
    """A flag that slime has too."""
    return Option(flag=flag, help=help, keywords=keywords or {}, is_slimes=True, **rest)


def ours(flag: str, help: str, keywords: Mapping[str, Any] | None = None, **rest: Any) -> Option:
    """A flag of ours."""
    return Option(flag=flag, help=help, keywords=keywords or {}, **rest)
