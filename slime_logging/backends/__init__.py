"""The trackers: a folder each behind the protocol of `base`, found by name in one table and
imported when opened.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from slime_logging.backends.base import Backend
from slime_logging.backends.table import BACKENDS


def new_backend(name: str) -> Backend:
    """A fresh backend by its name in `BACKENDS`; it loads no vendor package until it is opened."""
    module, _, class_name = BACKENDS[name].backend.partition(":")
    return cast(Backend, getattr(import_module(module), class_name)())
