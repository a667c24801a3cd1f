"""Which slime a Python process would load, and where its calls of tracking go: read from its files,
none of which is executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from slime_logging.slime.patch import CALLS, MODULES


@dataclass(frozen=True, kw_only=True)
class SeenSlime:
    """A slime on this process's path.

    `module` is the file in which it keeps its calls of tracking; None where this slime has none
    that is known here. `calls` are those that it defines there, `ours` those that a line below them
    takes from `slime_logging`.
    """

    folder: Path
    module: Path | None
    calls: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()

    @property
    def is_by_line(self) -> bool:
        """Whether the line is there."""
        return bool(self.ours)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The calls that stay slime's although the line is there."""
        return tuple(name for name in self.calls if name not in self.ours)

    @property
    def line(self) -> str:
        """The line that brings all of this slime's calls here."""
        return f"from slime_logging import {', '.join(sorted(self.calls))}"


def see_slime() -> SeenSlime | None:
    """The slime that `import slime` would find; None where there is none."""
    spec = find_spec("slime")
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    for folder in folders:
        for name in MODULES:
            file = folder.joinpath(*name.split(".")[1:]).with_suffix(".py")
            calls, ours = _read(file) if file.is_file() else ((), ())
            if calls:
                return SeenSlime(folder=folder, module=file, calls=calls, ours=ours)
    return SeenSlime(folder=folders[0], module=None) if folders else None


def _read(file: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The calls that a module has at its end, and those of them that are ours."""
    owner: dict[str, bool] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            owner[node.name] = False
        elif isinstance(node, ast.ImportFrom):
            is_ours = (node.module or "").partition(".")[0] == "slime_logging"
            owner.update({alias.asname or alias.name: is_ours for alias in node.names})
    calls = tuple(name for name in CALLS if name in owner)
    return calls, tuple(name for name in calls if owner[name])
