"""Which files of a folder changed, told by the kernel (Linux's inotify): no look is needed to know
that nothing did.

Policy: told only where that is certain: a file system that no other host can write, a kernel that
has it, a queue that did not overflow. Otherwise nothing is told, and whoever asks looks himself.
"""

from __future__ import annotations

import ctypes
import os
import struct
import weakref
from pathlib import Path

_OF_THIS_HOST = {
    0xEF53,  # ext2, ext3, ext4
    0x58465342,  # XFS
    0x9123683E,  # Btrfs
    0x01021994,  # tmpfs
    0x794C7630,  # overlayfs, whose upper layer is local
    0xF2F52010,  # F2FS
    0x2FC12FC1,  # ZFS
}
"""File systems that only this host's kernel writes, by the numbers of statfs(2)."""

_MODIFY, _MOVED_TO, _CREATE = 0x2, 0x80, 0x100
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_IS_LOST = _UNMOUNT | _OVERFLOW | _IGNORED | _DELETE_SELF | _MOVE_SELF
_WANTED = _MODIFY | _MOVED_TO | _CREATE | _DELETE_SELF | _MOVE_SELF
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class Changes:
    """The changes of a folder since it was made, or asked last.

    Args:
        folder: where files are made and grow; not the folders below it.
    """

    def __init__(self, folder: Path) -> None:
        self._fd = _watched(folder)
        if self._fd is not None:
            self._close = weakref.finalize(self, os.close, self._fd)

    def take(self) -> set[str] | None:
        """The names of the files that changed; None where that cannot be told, now or ever."""
        names: set[str] = set()
        while self._fd is not None:
            try:
                data = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                return names
            except OSError:
                data = b""
            if not data or not _add_names(data, names):
                self._fd = None
                self._close()
        return None


def _watched(folder: Path) -> int | None:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        path = os.fsencode(folder)
        about = ctypes.create_string_buffer(512)
        if libc.statfs(path, about) or struct.unpack_from("l", about)[0] not in _OF_THIS_HOST:
            return None
        fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    except (AttributeError, OSError):  # another system
        return None
    if fd < 0:  # the user has no more of them
        return None
    if libc.inotify_add_watch(fd, path, _WANTED) < 0:
        os.close(fd)
        return None
    return fd


def _add_names(data: bytes, names: set[str]) -> bool:
    """Add the names in some events; False where others were lost, or none will come any more."""
    position = 0
    while position < len(data):
        _, mask, _, length = _EVENT.unpack_from(data, position)
        position += _EVENT.size
        if mask & _IS_LOST:
            return False
        names.add(os.fsdecode(data[position : position + length].rstrip(b"\0")))
        position += length
    return True
