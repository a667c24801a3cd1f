"""Which of many files grew, for few system calls: one that is idle is looked at ever more rarely.

Policy: a file that grew is looked at again at once, an idle one after a pause that doubles up to
`slowest_s`. So a thousand idle journals cost 250 looks a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FIRST_PAUSE_S = 0.2
SLOWEST_PAUSE_S = 4.3


@dataclass(slots=True)
class _Look:
    due_s: float
    pause_s: float
    num_bytes: int


class Watch:
    """The sizes of files, as they were seen last.

    `num_looks` counts the looks, one system call each.

    Args:
        slowest_s: the longest pause between two looks at a file.
    """

    def __init__(self, slowest_s: float = SLOWEST_PAUSE_S) -> None:
        self._slowest_s = slowest_s
        self._looks: dict[Path, _Look] = {}
        self.num_looks = 0

    def grown(self, paths: Iterable[Path], now_s: float, *, is_due: bool = False) -> list[Path]:
        """Those of the files that are due for a look (all, if `is_due`) and have another size than
        before; a file that was never looked at counts as grown.
        """
        return [path for path in paths if self._has_grown(path, now_s, is_due)]

    def _has_grown(self, path: Path, now_s: float, is_due: bool) -> bool:
        look = self._looks.get(path)
        if look is not None and now_s < look.due_s and not is_due:
            return False
        self.num_looks += 1
        try:
            num_bytes = path.lstat().st_size
        except OSError:
            num_bytes = -1
        if look is None:
            self._looks[path] = _Look(now_s + FIRST_PAUSE_S, FIRST_PAUSE_S, num_bytes)
            return True
        has_grown = num_bytes != look.num_bytes
        look.pause_s = FIRST_PAUSE_S if has_grown else min(2 * look.pause_s, self._slowest_s)
        look.due_s, look.num_bytes = now_s + look.pause_s, num_bytes
        return has_grown
