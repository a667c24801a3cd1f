"""The exceptions that this package raises, and nothing else raises in its name.

    TrackingError
    ├── SettingsError         a flag or environment variable that cannot work (also a ValueError)
    ├── RoleConfigError       a role YAML with mistakes; lists them all (also a ValueError and an
    │                         AssertionError)
    ├── MissingBackendError   a tracker was switched on whose package is missing or too old (also an
    │                         ImportError)
    ├── RunConflictError      two primaries with one run id
    ├── RunNotFoundError      a path or id that names no run
    └── BackendError
        ├── TryAgain          the tracker could not take it now: delivery repeats it later
        └── WillNeverWork     the tracker refuses it for good: delivery sets it aside and says why
            └── NotReadable   it shows what it holds on its own page only

Policy: every foreign exception of a vendor's client is mapped to `TryAgain` or `WillNeverWork` in
the backend that called it. The first five are raised at start, to the caller; the last two never
leave a delivery thread.
"""

from __future__ import annotations


class TrackingError(Exception):
    """Base of everything that this package raises."""


class SettingsError(TrackingError, ValueError):
    """A tracking flag or environment variable has a value that cannot work."""


class RoleConfigError(TrackingError, ValueError, AssertionError):
    """A role YAML has mistakes; the message lists all of them with place, value, reason and fix.

    It is an `AssertionError` too, because slime's own callers and tests expect one.
    """


class MissingBackendError(TrackingError, ImportError):
    """A tracker is switched on, but its package is missing or too old; the message names the extra
    to install.
    """

    def __init__(self, backend: str, needed: str, found: str) -> None:
        super().__init__(
            f"--use-{backend} needs the package {needed} or newer, and {found}. "
            f"Install it from a clone of slime_logging: pip install --upgrade '.[{backend}]'"
        )


class RunConflictError(TrackingError):
    """Another primary is writing the run with this id."""


class RunNotFoundError(TrackingError, LookupError):
    """The path or id given names no run."""


class BackendError(TrackingError):
    """A tracker did not take what was delivered to it."""


class TryAgain(BackendError):
    """Passing trouble (network, 429, 5xx, a locked database): the same call may work later."""


class WillNeverWork(BackendError):
    """Trouble that repeating cannot mend (wrong key, refused value): delivery sets the item aside
    and says why.
    """


class NotReadable(WillNeverWork):
    """The tracker takes rows but cannot be asked what it holds; only its own page can tell."""
