"""Ctrl-C in a command that loads torch."""

from __future__ import annotations

import signal
import traceback
from types import FrameType

PAUSE_S = 0.005


def noted_interrupts() -> list[int]:
    """Have Ctrl-C noted in the list that is returned. It is raised as ever, but right afterwards
    where that would abort the process (torch's native code while it is loaded) or be lost (the
    callbacks of Python's own import).
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if _must_wait(frame):
            signal.setitimer(signal.ITIMER_REAL, PAUSE_S)
        else:
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    signal.signal(signal.SIGALRM, note)
    return noted


def _must_wait(frame: FrameType | None) -> bool:
    frames = [one for one, _ in traceback.walk_stack(frame)]
    modules = [str(one.f_globals.get("__name__")) for one in frames]
    return "importlib" in modules[0] or any(m.partition(".")[0] == "torch" for m in modules)
