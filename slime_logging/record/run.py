"""A run's directory: where every process of the job finds the run, and what is left of it when they
are gone.

    <tracking-dir>/<run id>/
        run.json          what the run is; replaced as a whole by the primary only, at each start
        primary.lock      held by the living primary
        delivery.lock     held by whoever delivers (see `locks`)
        journals/         one file a process
        delivery/         per tracker and delivering process: the cursor, and what was set aside
        wandb/ ...        the trackers' own local files

Policy: no file is written by two processes. Files are 0600, directories 0700. What is read back is
hostile: names are checked, links are not followed, sizes are bounded.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import string
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import orjson

from slime_logging.errors import RunNotFoundError, SettingsError
from slime_logging.record.entries import KEEP
from slime_logging.record.journal import SUFFIX
from slime_logging.record.locks import RunLocks
from slime_logging.values.run import RunFacts

RUN_FILE = "run.json"
SCHEMA = 1
MAX_RUN_FILE_BYTES = 4 * 2**20
_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_ID_ALPHABET = string.ascii_lowercase + string.digits


def mint_run_id() -> str:
    """A new run id: 8 lower-case letters and digits, as W&B's own are (36**8, about 2.8e12)."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(8))


def check_run_id(run_id: str) -> str:
    """The id itself if it can name a directory and a run in every tracker; else `SettingsError`."""
    if not _ID_PATTERN.fullmatch(run_id):
        raise SettingsError(
            f"run id {run_id[:80]!r}: use 1 to 128 letters, digits, '-', '_' or '.', starting with"
            " a letter or digit."
        )
    return run_id


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What `run.json` says. `num_starts` counts primaries: 1, and one more for each resume. Times
    are Unix seconds.

    `addresses` says where each tracker shows the run: a page, or the command that shows it.
    `is_delivered` is False where the job keeps journals only, and others deliver them. `rewind` is
    that of the latest start (see `Opening`).
    `is_shared` tells that processes which do not see this directory may deliver to W&B for
    themselves. `outpost_of` is the run's own directory on another host, where this one holds only
    the journals of a host that does not see it; None for the run's own directory.
    """

    run_id: str
    project: str
    name: str
    group: str | None
    created_s: float
    num_starts: int
    is_shared: bool
    trackers: tuple[str, ...]
    roles: tuple[str, ...]
    axes: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    host: str = field(default_factory=socket.gethostname)
    outpost_of: str | None = None
    is_delivered: bool = True
    rewind: str = KEEP
    schema: int = SCHEMA

    def facts(self, directory: Path, options: Mapping[str, Any]) -> RunFacts:
        """What a backend needs to know, with the options that it is to have."""
        return RunFacts(
            run_id=self.run_id,
            project=self.project,
            name=self.name,
            group=self.group,
            directory=directory,
            created_s=self.created_s,
            axes=self.axes,
            roles=self.roles,
            options=options,
        )


class RunDirectory:
    """One run on disk. Constructing it touches nothing.

    Args:
        path: `<tracking-dir>/<run id>`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.journals = self.path / "journals"
        self.delivery = self.path / "delivery"
        self.locks = RunLocks(self.path)

    @property
    def parts(self) -> list[RunDirectory]:
        """The directories whose journals are read: this one."""
        return [self]

    def create(self) -> None:
        """Make the directories; those that exist already stay as they are.

        Raises:
            SettingsError: they belong to another user.
            OSError: they cannot be made.
        """
        try:
            for directory in (self.path.parent, self.path, self.journals, self.delivery):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except PermissionError as error:
            raise SettingsError(
                f"{error.filename or self.path} cannot be made or opened by this user (uid"
                f" {os.geteuid()}): give --tracking-dir a directory that belongs to this user, and"
                " let all processes of a job run as one user."
            ) from error

    def read(self) -> RunFile:
        """What `run.json` says.

        Raises:
            RunNotFoundError: there is none, or it is not one of ours.
        """
        try:
            with (self.path / RUN_FILE).open("rb") as file:
                run = msgspec.json.decode(file.read(MAX_RUN_FILE_BYTES), type=RunFile)
            if run.schema != SCHEMA:
                raise ValueError(
                    f"it has schema {run.schema}, and this version understands {SCHEMA}"
                )
            check_run_id(run.run_id)
        except OSError as error:
            raise RunNotFoundError(f"no run at {self.path}: {error.strerror or error}") from error
        except ValueError as error:  # msgspec's own errors are ValueErrors
            raise RunNotFoundError(
                f"{self.path / RUN_FILE} is not the description of a run: {error}"
            ) from error
        for directory in (self.journals, self.delivery):
            if directory.is_symlink():
                raise RunNotFoundError(
                    f"{directory} is a link: a run keeps its files in its own directory."
                )
        return run

    def write(self, run: RunFile) -> None:
        """Replace `run.json` as a whole; only the primary does."""
        write_whole(self.path / RUN_FILE, orjson.dumps(asdict(run), option=orjson.OPT_INDENT_2))

    def start(self, run: RunFile) -> RunFile:
        """Write `run.json` for a new start: a first one, or one that continues what is there, under
        its first name.
        """
        try:
            before = self.read()
        except RunNotFoundError:
            self.write(run)
            return run
        now = replace(
            run,
            created_s=before.created_s,
            name=before.name,
            group=before.group,
            project=before.project,
        )
        now = replace(
            now,
            num_starts=before.num_starts + 1,
            roles=tuple(dict.fromkeys((*before.roles, *run.roles))),
        )
        self.write(now)
        return now

    def journal_paths(self, beginning: str = "") -> list[Path]:
        """Every journal that is there now, oldest name first; those whose name begins so."""
        try:
            with os.scandir(self.journals) as entries:
                names = sorted(
                    e.name
                    for e in entries
                    if e.name.startswith(beginning)
                    and e.name.endswith(SUFFIX)
                    and e.is_file(follow_symlinks=False)
                )
        except OSError:
            return []
        return [self.journals / name for name in names]


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file as a whole: a reader sees the old content or the new one, also after a
    crash.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def newest_run(
    directory: Path, is_wanted: Callable[[RunFile], bool] | None = None
) -> RunDirectory | None:
    """The run of a tracking directory whose primary started last, by the time of its `run.json`, of
    those that are wanted (None: all, those that cannot be read included); None without any.
    """
    found = [(p.stat().st_mtime, p.parent) for p in directory.glob(f"*/{RUN_FILE}") if p.is_file()]
    for _, path in sorted(found, reverse=True):
        run = RunDirectory(path)
        try:
            if is_wanted is None or is_wanted(run.read()):
                return run
        except RunNotFoundError:
            continue
    return None


def now_s() -> float:
    """The time, Unix seconds."""
    return time.time()
