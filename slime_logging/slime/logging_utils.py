"""Stands in for `slime.observability.logging_utils` and, before it, `slime.utils.logging_utils`."""

from slime_logging.tracking import finish_tracking, init_tracking, log

__all__ = ["finish_tracking", "init_tracking", "log"]
