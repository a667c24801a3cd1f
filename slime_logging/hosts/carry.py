"""The sending end: the journals and media files of one directory, carried to copies elsewhere.

Policy: only bytes are carried; nothing is parsed, changed or deleted. Media files go before the
journals that name them. The receiver's word is the only truth of how far a copy is: it is asked
once a file, and believed only if its bytes are this file's. A piece is answered before the next one
is sent, so a slow receiver slows the sender and nothing piles up.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_logging.hosts.copies import (
    MAX_PIECE_BYTES,
    Piece,
    Refused,
    Reply,
    check_name,
    digest_of,
    new_digest,
)

Hand = Callable[[Piece], Reply]
"""Gives a piece to the receiver and returns its answer; raises what the way to it raises."""

MAX_TURNS = 8
"""How often in a row a copy may be found elsewhere than it was left, before it is left for the next
round: several senders of one file do that to each other.
"""


@dataclass
class _File:
    """How much of a file the copy certainly holds, and the digest of that much."""

    size: int = 0
    digest: Any = field(default_factory=new_digest)


class Carrier:
    """Carries one directory; call `carry` again and again while it grows.

    `confirmed` holds what the copies have, in bytes by name; `refused` why a file can never be
    carried; `problem` why the last round left something, "" when it did not.

    Args:
        directory: the run's directory on this host.
        hand: the way to the receiver.
    """

    def __init__(self, directory: Path, hand: Hand) -> None:
        self._directory = directory
        self._hand = hand
        self._files: dict[str, _File] = {}
        self.refused: dict[str, str] = {}
        self.problem = ""

    @property
    def confirmed(self) -> dict[str, int]:
        """Bytes that the copies hold, by name."""
        return {name: file.size for name, file in self._files.items()}

    def carry(self) -> int:
        """Carry what is there now; returns how many bytes the copies took.

        Raises whatever the way to the receiver raises; what was confirmed before stays so.
        """
        self.problem = ""
        journals = self._sizes("journals")  # before the media: what these bytes name is there
        num_bytes = 0
        for name, end in (*self._sizes("media").items(), *journals.items()):
            if name not in self.refused:
                num_bytes += self._carry_file(name, end)
        return num_bytes

    def num_bytes_left(self) -> int:
        """How many bytes of the directory the copies do not have, as far as is known."""
        sizes = {**self._sizes("media"), **self._sizes("journals")}
        done = self.confirmed
        return sum(max(0, size - done.get(name, 0)) for name, size in sizes.items())

    def _sizes(self, folder: str) -> dict[str, int]:
        sizes = {}
        try:
            with os.scandir(self._directory / folder) as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}"
                    if entry.is_file(follow_symlinks=False) and _is_carried(name):
                        sizes[name] = entry.stat(follow_symlinks=False).st_size
        except OSError:
            return sizes
        return dict(sorted(sizes.items()))

    def _carry_file(self, name: str, end: int) -> int:
        file = self._files.get(name)
        if file is not None and file.size >= end:
            return 0
        try:
            with _opened(self._directory / name) as fd:
                if file is None:
                    asked = self._answer(Piece(name=name, offset=0, prefix=new_digest().digest()))
                    file = self._adopt(name, fd, asked)
                return self._send(name, fd, file, end)
        except Refused as error:
            self.refused[name] = str(error)
        except _NotNow as error:
            self.problem = str(error)
        except (FileNotFoundError, PermissionError, BlockingIOError) as error:
            self.problem = f"{name}: {error.strerror or error}"
        return 0

    def _answer(self, piece: Piece) -> Reply:
        reply = self._hand(piece)
        if reply.is_final:
            raise Refused(reply.problem)
        if reply.problem and not reply.digest:
            raise _NotNow(reply.problem)
        return reply

    def _adopt(self, name: str, fd: int, reply: Reply) -> _File:
        """Go on where the copy ends, if what it holds is the start of this file."""
        digest = digest_of(fd, reply.size)
        if os.fstat(fd).st_size < reply.size or digest.digest() != reply.digest:
            raise Refused("the copy holds other bytes than this file")
        file = self._files[name] = _File(reply.size, digest)
        return file

    def _send(self, name: str, fd: int, file: _File, end: int) -> int:
        before, turns = file.size, 0
        while file.size < end and turns < MAX_TURNS:
            data = os.pread(fd, min(MAX_PIECE_BYTES, end - file.size), file.size)
            if not data:
                break
            prefix = file.digest.digest()
            reply = self._answer(Piece(name=name, offset=file.size, prefix=prefix, data=data))
            if reply.size == file.size + len(data):
                file.size = reply.size
                file.digest.update(data)
                turns = 0
            else:
                file = self._adopt(name, fd, reply)
                turns += 1
            if reply.problem:
                self.problem = reply.problem
                break
        return max(0, file.size - before)


class _NotNow(Exception):
    """The receiver did not look at its copy, and says why."""


def _is_carried(name: str) -> bool:
    try:
        return bool(check_name(name))
    except Refused:
        return False


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            yield fd
        else:
            raise Refused(f"{path} is not a regular file")
    finally:
        os.close(fd)
