"""Which of many files grew, for few system calls.

Policy: where the kernel tells which files of the folder changed, only those are looked at, and
each other one once in `SURE_S`. Elsewhere, on disks that hosts share, a file that grew is looked at
again at once, and an idle one after a pause that doubles up to `slowest_s`: so a thousand idle
journals cost 250 looks a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from slime_logging.delivery.changes import Changes

FIRST_PAUSE_S = 0.2
SLOWEST_PAUSE_S = 4.3
SURE_S = 60.0


@dataclass(slots=True)
class _Look:
    due_s: float
    pause_s: float
    num_bytes: int


class Watch:
    """The sizes of files, as they were seen last.

    `num_looks` counts the looks, one system call each.

    Args:
        folder: where the files are, if the kernel is to be asked; else they are looked at.
        slowest_s: the longest pause between two looks at a file.
    """

    def __init__(self, folder: Path | None = None, slowest_s: float = SLOWEST_PAUSE_S) -> None:
        self._changes = None if folder is None else Changes(folder)
        self._slowest_s = slowest_s
        self._looks: dict[Path, _Look] = {}
        self.num_looks = 0

    def forget(self) -> None:
        """Every file counts as one that was never looked at."""
        self._looks.clear()

    def grown(self, paths: Iterable[Path], now_s: float, *, is_due: bool = False) -> list[Path]:
        """Those of the files that are due for a look (all, if `is_due`) and have another size than
        before; a file that was never looked at counts as grown.
        """
        told = None if self._changes is None else self._changes.take()
        if self._changes is not None and told is None:  # from now on they are looked at
            self._changes, is_due = None, True
        return [
            path
            for path in paths
            if self._has_grown(path, now_s, told, is_due=is_due or path.name in (told or ()))
        ]

    def _has_grown(self, path: Path, now_s: float, told: set[str] | None, *, is_due: bool) -> bool:
        look = self._looks.get(path)
        if look is not None and now_s < look.due_s and not is_due:
            return False
        self.num_looks += 1
        try:
            num_bytes = path.lstat().st_size
        except OSError:
            num_bytes = -1
        first_s, slowest_s = (FIRST_PAUSE_S, self._slowest_s) if told is None else (SURE_S, SURE_S)
        if look is None:
            self._looks[path] = _Look(now_s + first_s, first_s, num_bytes)
            return True
        has_grown = num_bytes != look.num_bytes
        look.pause_s = first_s if has_grown else min(2 * look.pause_s, slowest_s)
        look.due_s, look.num_bytes = now_s + look.pause_s, num_bytes
        return has_grown
