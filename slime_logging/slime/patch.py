"""slime's own calls of its tracking come here, with none of its files changed.

Policy: `SLIME_LOGGING_PATCH=1` in the environment switches it on. A `.pth` file that is installed
with the package loads this module in each Python process that has the variable, because a job's
Ray workers are processes of their own and take over the environment, not the driver's command
line. When one of slime's tracking modules has been executed, the functions in it that are calls of
tracking are ours; everything else in it stays slime's.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

VARIABLE = "SLIME_LOGGING_PATCH"

MODULES = (
    "slime.observability.logging_utils",
    "slime.utils.logging_utils",
    "slime.utils.tracking_utils",
)
"""Where slime keeps its calls: since August 2026, from v0.2.2 on, and before."""

CALLS = (
    "init_tracking",
    "log",
    "finish_tracking",
    "update_tracking_open_metrics",
    "define_step_key_metric_group",
)
"""The calls of any version; a module gets those that it defines itself."""


def is_wanted(text: str | None) -> bool:
    """Whether a value of the variable switches the patch on."""
    return (text or "").lower() not in ("", "0", "false", "no", "off")


def install() -> None:
    """Watch for slime's modules from now on, if the variable says so. May be called twice."""
    if is_wanted(os.environ.get(VARIABLE)) and not is_installed():
        sys.meta_path.insert(0, _Watch())


def is_installed() -> bool:
    """Whether this process watches."""
    return any(isinstance(finder, _Watch) for finder in sys.meta_path)


def replace_calls(module: ModuleType) -> list[str]:
    """Put our functions in the place of those that a module of slime has; returns their names."""
    import slime_logging.tracking as tracking

    names = [name for name in CALLS if callable(getattr(module, name, None))]
    for name in names:
        setattr(module, name, getattr(tracking, name))
    return names


class _Watch(MetaPathFinder):
    """Finds slime's modules as Python does, and has them changed once they are executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in MODULES:
            return None
        spec = _found_by_others(self, fullname, path, target)
        loader = spec.loader if spec else None
        if loader is not None:
            execute = loader.exec_module

            def execute_and_replace(module: ModuleType) -> None:
                execute(module)
                replace_calls(module)

            loader.exec_module = execute_and_replace  # type: ignore[method-assign]
        return spec


def _found_by_others(
    own: _Watch, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is not own:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
    return None


install()
