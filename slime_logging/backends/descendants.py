"""Ending processes with all that they started: a vendor's service must not go on writing behind
the back of the one that continues.
"""

from __future__ import annotations

import contextlib
import os

import psutil


def kill_tree(process: psutil.Process) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(psutil.Error):
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                each.kill()


def kill_children(except_for: frozenset[int] = frozenset()) -> None:
    """End this process's children with all that they started, but those of these pids."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children():
            if child.pid not in except_for:
                kill_tree(child)
                with contextlib.suppress(ChildProcessError, OSError):
                    os.waitpid(child.pid, 0)
