"""Where a tracker's rows go: the one answer, for the client that opens it and for the cursor; and
where a person looks at them.

Policy: an option comes before the vendor's own variable, a variable before our default. Whoever
needs an address (a backend that opens or reads, a delivery that names its cursor, a command that
tells it) asks here, with the options and the environment that it has. What is shown of an address
is no secret: user and password of a server's are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast
from zlib import crc32

from slime_logging.backends.table import BACKENDS
from slime_logging.values.run import RunFacts

Options = Mapping[str, Any]
Environ = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Where:
    """What a tracker's folder says: the address, whether it is the default one, and which kind of
    place it is (`offline`, `online`), "" for a tracker that has one kind only.
    """

    address: str
    is_default: bool
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the rows of a run go in one tracker.

    `address` is what its client opens: a path, a URI, or host, workspace and project. `key` names
    the cursor: the same for the same address of the same run, and fit to be a file's name.
    """

    address: str
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a person looks at a run. `place` is a page's address or a path; `command` shows what is
    there, "" for a page.
    """

    place: str
    command: str = ""


class _Folder(Protocol):
    """A tracker's module `place`."""

    def place(self, options: Options, environ: Environ, directory: Path) -> Where: ...

    def address(self, run: RunFacts, place: str, tools: str) -> Address: ...


def place_of(tracker: str, options: Options, environ: Environ, directory: Path) -> Place:
    """Where a tracker's rows go.

    Args:
        tracker: its name in `BACKENDS`.
        options: the run's, by their dest names.
        environ: of the process that asks.
        directory: the run's.
    """
    folder = _folder(tracker)
    where = folder.place(options, environ, directory) if folder else Where("", is_default=True)
    name = f"{tracker}-{where.kind}" if where.kind else tracker
    checksum = crc32(without_userinfo(where.address).encode())
    return Place(address=where.address, key=name if where.is_default else f"{name}-{checksum:08x}")


def run_place(tracker: str, run: RunFacts) -> Place:
    """Where a tracker's rows go, asked by a process that has the run's facts."""
    return place_of(tracker, {**run.options, "run_name": run.name}, os.environ, run.directory)


def address_of(
    tracker: str, run: RunFacts, environ: Environ = os.environ, tools: str = ""
) -> Address | None:
    """Where this tracker shows the run, said without a connection; None for one that shows nothing.

    Args:
        tracker: its name.
        run: what a backend is told.
        environ: the environment that the tracker is opened with.
        tools: the folder of the trackers' commands with a slash behind it, "" where the shell
            finds them.
    """
    folder = _folder(tracker)
    if folder is None:
        return None
    options = {**run.options, "run_name": run.name}
    place = folder.place(options, environ, run.directory).address
    return folder.address(run, without_userinfo(place), tools)


def without_userinfo(address: str) -> str:
    """An address without user, password and query: a checksum of them would tell whether a guess is
    right.
    """
    if "://" not in address:
        return address
    return re.sub(r"(?<=://)[^/?#]*@|[?#].*", "", address)


def _folder(tracker: str) -> _Folder | None:
    row = BACKENDS.get(tracker)
    if row is None or row.package is None:
        return None
    return cast(_Folder, import_module(f"slime_logging.backends.{tracker}.place"))
