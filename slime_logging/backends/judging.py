"""What a vendor's client raises, as an error of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slime_logging.errors import TrackingError, TryAgain, WillNeverWork


@contextmanager
def judged(tracker: str, is_passing: Callable[[Exception], bool]) -> Iterator[None]:
    """Turn whatever the block raises into `TryAgain` where it may pass, else `WillNeverWork`.

    Args:
        tracker: whose client it is.
        is_passing: whether the same call may work later.
    """
    try:
        yield
    except TrackingError:
        raise
    except Exception as error:
        kind = TryAgain if is_passing(error) else WillNeverWork
        raise kind(f"{tracker}: {type(error).__name__}: {error}") from error
