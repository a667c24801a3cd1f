"""Where the inference engines' own metrics are, for whoever samples them: a file of the run's
directory.

Policy: an address is taken only if it is plain (`http://HOST:PORT/PATH`), so that no name or
password of a server comes to the disk.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from slime_logging.record.run import RunDirectory, write_whole

MAX_CHARS = 500
_FILE = "engines.url"


def publish_engines(directory: RunDirectory, url: str) -> None:
    """Say where they are, in place of what was said before.

    Raises:
        ValueError: the address is not of this form.
        OSError: the directory cannot be written.
    """
    write_whole(directory.path / _FILE, _checked(url).encode())


def read_engines(directory: RunDirectory) -> str | None:
    """The address that was said last; None while there is none, or none that can be used."""
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(directory.path / _FILE, flags)
        with os.fdopen(fd, "rb") as file:
            return _checked(file.read(MAX_CHARS + 1).decode("ascii"))
    except (OSError, ValueError):
        return None


def _checked(url: str) -> str:
    parts = urlsplit(url)
    is_plain = (
        parts.scheme == "http"
        and parts.hostname
        and parts.port != 0
        and "@" not in parts.netloc
        and not (parts.query or parts.fragment)
        and url.isascii()
        and len(url) <= MAX_CHARS
    )
    if not is_plain:
        raise ValueError("it is not http://HOST:PORT")
    return url
