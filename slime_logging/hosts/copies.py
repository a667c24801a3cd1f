"""The receiving end of a journal that grows on another host: a copy, byte for byte.

Policy: a copy is at every moment a prefix of its journal. Bytes are taken only where the copy ends,
and only behind a prefix that is the sender's own, so a piece may come twice, late or from two
senders: nothing is doubled and nothing is overwritten. A copy whose journal is still written is
locked as the journal itself is: whoever delivers the run sees a living writer. Names are hostile
input: a copy lies in `journals/` or `media/` of the run's directory, and links are not followed.
What cannot be written now (a full disk) is refused with the reason, and asked for again.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_logging.record.journal import SUFFIX

MAX_PIECE_BYTES = 256 * 1024
"""The most bytes that are handed over at once."""

HASH_BYTES = 1 << 20
MAX_REMEMBERED = 20_000
NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""What a file system says that knows no locks."""

_NAME = re.compile(r"(?:journals|media)/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Bytes of a file from `offset` on. `prefix` is the digest of all bytes before them; `name` is
    relative to the run's directory. Without data it asks where the copy stands.
    """

    name: str
    offset: int
    prefix: bytes
    data: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """Where the copy stands now: its size, and the digest of all of it.

    `problem` says why nothing was taken; `is_final` that trying again cannot help.
    """

    size: int = 0
    digest: bytes = b""
    problem: str = ""
    is_final: bool = False


class Refused(Exception):
    """This piece can never be taken."""


def new_digest() -> Any:
    """The running digest of a file's bytes, empty."""
    return hashlib.blake2b(digest_size=16)


def digest_of(fd: int, end: int) -> Any:
    """The running digest of the first `end` bytes of an open file, or of all there are."""
    digest, offset = new_digest(), 0
    while offset < end:
        data = os.pread(fd, min(HASH_BYTES, end - offset), offset)
        if not data:
            break
        digest.update(data)
        offset += len(data)
    return digest


def check_name(name: str) -> str:
    """The name itself, if it can be that of a journal or of a media file; else `Refused`."""
    if not _NAME.fullmatch(name) or (name.startswith("journals/") and not name.endswith(SUFFIX)):
        raise Refused(f"{name[:80]!r} names no journal and no media file")
    return name


class Copies:
    """The copies in one run's directory. Any number of processes may write to the same ones.

    Args:
        directory: the run's, with its `journals/`.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, tuple[tuple[int, int, int], Any]] = {}
        self._living: dict[str, frozenset[str]] = {}
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()

    def keep(self, sender: str, names: Iterable[str]) -> None:
        """Hold the locks of those copies whose journals a living process writes, as their sender
        says, and let go of its others.
        """
        with self._lock:
            self._living[sender] = frozenset(names)
            living = frozenset().union(*self._living.values())
            for name in set(self._held) - living:
                os.close(self._held.pop(name))

    def take(self, piece: Piece) -> Reply:
        """Append the bytes of a piece to its copy, if they go on where it ends; never raises for
        what it holds, or for what the disk does.
        """
        with self._lock:
            try:
                fd = self._locked(check_name(piece.name))
            except Refused as error:
                return Reply(problem=str(error), is_final=True)
            except BlockingIOError:
                return Reply(problem="another process is writing this copy")
            except OSError as error:
                return Reply(problem=error.strerror or str(error))
            try:
                return self._append(fd, piece)
            except OSError as error:
                return Reply(problem=error.strerror or str(error))
            finally:
                self._put_back(piece.name, fd)

    def _locked(self, name: str) -> int:
        if name in self._held:
            fd = self._held.pop(name)
            if os.fstat(fd).st_nlink:
                return fd
            os.close(fd)  # deleted under us
        fd = self._open(name)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                os.close(fd)
                raise
        return fd

    def _put_back(self, name: str, fd: int) -> None:
        if any(name in names for names in self._living.values()):
            self._held[name] = fd
        else:
            os.close(fd)

    def _open(self, name: str) -> int:
        path = self._directory / name
        if path.parent.is_symlink():
            raise Refused(f"{path.parent} is a link")
        if name.startswith("media/"):
            path.parent.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        if path.is_symlink():
            raise Refused(f"{path} is a link")
        fd = os.open(path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise Refused(f"{path} is not a regular file")
        return fd

    def _append(self, fd: int, piece: Piece) -> Reply:
        size, digest = self._state(fd, piece.name)
        if piece.offset != size or not piece.data:
            return Reply(size=size, digest=digest.digest())
        if len(piece.data) > MAX_PIECE_BYTES:
            return Reply(problem=f"a piece of {len(piece.data)} bytes", is_final=True)
        if piece.prefix != digest.digest():
            return Reply(problem="what is here already is another file's", is_final=True)
        problem = ""
        try:
            num_written = os.pwrite(fd, piece.data, size)
        except OSError as error:
            num_written, problem = 0, error.strerror or str(error)
        if 0 < num_written < len(piece.data):
            problem = "the disk took only a part"
        digest.update(piece.data[:num_written])
        self._remember(fd, piece.name, digest)
        return Reply(size=size + num_written, digest=digest.digest(), problem=problem)

    def _state(self, fd: int, name: str) -> tuple[int, Any]:
        size = os.fstat(fd).st_size
        known = self._known.get(name)
        if known is not None and known[0] == _version(fd):
            return size, known[1]
        digest = digest_of(fd, size)
        self._remember(fd, name, digest)
        return size, digest

    def _remember(self, fd: int, name: str, digest: Any) -> None:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[name] = (_version(fd), digest)


def _version(fd: int) -> tuple[int, int, int]:
    """What differs when somebody else has written the file."""
    found = os.fstat(fd)
    return found.st_ino, found.st_size, found.st_mtime_ns
