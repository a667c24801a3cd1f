"""What Trinity's plug-in loader runs in each of its processes: it registers the monitor."""

from __future__ import annotations

from trinity.utils.monitor import MONITOR

from slime_logging.trinity import SlimeLoggingMonitor

MONITOR.register_module("slime_logging", module_cls=SlimeLoggingMonitor, force=True)
