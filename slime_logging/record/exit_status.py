"""The exit status of this process, left behind in a file.

Why: how a job ended is told by another process, and `sys.exit(3)`, `raise SystemExit(3)` and an
exception are known to nobody inside of Python once the exit hooks run. So the C library is asked to
write the status as one byte, by `on_exit` and `fputc`, when the process calls `exit`: no code of
ours runs, no handler is installed, and a process that is killed or leaves by `os._exit` writes
nothing.

Where the C library has no `on_exit` (musl, macOS), nothing is written, and a process that ended by
itself is taken to have ended well unless it raised.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

logger = logging.getLogger("slime_logging")

_UNBUFFERED = 2

_fd = -1
"""The descriptor behind the C library's stream: it stays for good, and leads to one file or
another.
"""


def leave_in(fd: int) -> int:
    """Have the status appended to the file that `fd` is open on, for appending.

    Returns:
        The descriptor to use from now on; `fd` may be closed.
    """
    global _fd
    if _fd >= 0:
        os.dup2(fd, _fd, inheritable=False)
        os.close(fd)
        return _fd
    if _ask_the_c_library(fd):
        _fd = fd
    return fd


def release(fd: int) -> None:
    """Close the descriptor, and leave the status nowhere; in a forked child too."""
    if fd != _fd:
        os.close(fd)
        return
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, fd, inheritable=False)
    os.close(nowhere)


def read(path: Path) -> int | None:
    """The status behind the file's first line; None where the process left none."""
    try:
        with path.open("rb") as file:
            _, _, rest = file.read(1024).partition(b"\n")
    except OSError:
        return None
    return rest[-1] if rest else None


def _ask_the_c_library(fd: int) -> bool:
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        libc.fdopen.restype = ctypes.c_void_p
        stream = ctypes.c_void_p(libc.fdopen(fd, b"a"))
        libc.setvbuf(stream, None, _UNBUFFERED, ctypes.c_size_t(0))
        return bool(libc.on_exit(ctypes.cast(libc.fputc, ctypes.c_void_p), stream) == 0)
    except (AttributeError, OSError) as error:
        logger.debug("slime_logging: the exit status is not left behind: %s", error)
        return False
