"""Several directories of one run, from hosts that share no disk, as one.

Policy: nothing is deleted or overwritten. What is the same everywhere is there once; a journal that
is longer in one directory goes on from the shorter one; two files of one name that are no
continuations of each other are refused and named, and the rest is taken all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from slime_logging.errors import RunConflictError, RunNotFoundError
from slime_logging.hosts.carry import Carrier
from slime_logging.hosts.copies import Copies, digest_of
from slime_logging.record.run import RunDirectory, RunFile


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What came from one directory. `refused` says why, by name; `num_bytes_left` counts what could
    not be taken now, for the reason in `problem`.
    """

    source: Path
    num_bytes: int
    num_files: int
    num_bytes_left: int
    refused: dict[str, str]
    problem: str

    @property
    def is_complete(self) -> bool:
        """Everything of this directory is in the merged one."""
        return not (self.refused or self.problem or self.num_bytes_left)


def merge(sources: Sequence[RunDirectory], into: RunDirectory) -> list[Merged]:
    """Bring the journals and media files of all these directories into one. May be repeated at
    will, also while the job runs.

    Args:
        sources: directories of one run; `into` may be among them.
        into: the run's own directory, or a new one.

    Raises:
        RunConflictError: they are not of one run.
        RunNotFoundError: one of them is no run's directory.
        OSError: the new directory cannot be made.
    """
    own = own_directory(sources)
    try:
        found = into.read()
    except RunNotFoundError:
        into.create()
        found = replace(own.read(), outpost_of=None)
        into.write(found)
    _check_one_run([*sources, into])
    copies = Copies(into.path)
    return [
        _bring(source, copies) for source in sources if source.path.resolve() != into.path.resolve()
    ]


def own_directory(directories: Sequence[RunDirectory]) -> RunDirectory:
    """Of several directories of one run the one that its primary made, else the first.

    Raises as `merge`.
    """
    _check_one_run(directories)
    own = [each for each in directories if each.read().outpost_of is None]
    return (own or list(directories))[0]


def _check_one_run(directories: Sequence[RunDirectory]) -> RunFile:
    files = [each.read() for each in directories]
    for directory, file in zip(directories, files, strict=True):
        if file.run_id != files[0].run_id:
            raise RunConflictError(
                f"{directory.path} is of run {file.run_id}, and {directories[0].path} of run"
                f" {files[0].run_id}: only directories of one run belong together."
            )
    return files[0]


def brought(source: RunDirectory, carrier: Carrier, num_bytes: int) -> Merged:
    """What a carrier has to tell of a directory that it carried."""
    return Merged(
        source=source.path,
        num_bytes=num_bytes,
        num_files=len(carrier.confirmed),
        num_bytes_left=0 if carrier.refused else carrier.num_bytes_left(),
        refused=carrier.refused,
        problem=carrier.problem,
    )


def _bring(source: RunDirectory, copies: Copies) -> Merged:
    carrier = Carrier(source.path, copies.take)
    return brought(source, carrier, carrier.carry())


class SeenTogether(RunDirectory):
    """Several directories of one run, read as one; nothing is copied. Everything but the journals
    is the own directory's.

    Raises:
        RunConflictError: they are not of one run, or a journal of the same name is another one.
    """

    def __init__(self, directories: Sequence[RunDirectory]) -> None:
        super().__init__(own_directory(directories).path)
        self._all = list(directories)
        self.journal_paths()

    @property
    def parts(self) -> list[RunDirectory]:
        """The directories of the hosts."""
        return self._all

    def journal_paths(self, beginning: str = "") -> list[Path]:
        """Every journal that is in any of them, the longest of each name."""
        found: dict[str, Path] = {}
        for directory in self._all:
            for path in directory.journal_paths(beginning):
                other = found.get(path.name)
                found[path.name] = path if other is None else _longer(other, path)
        return [found[name] for name in sorted(found)]


def _longer(one: Path, other: Path) -> Path:
    """The longer of two files, of which the other must be the start."""
    sizes = one.stat().st_size, other.stat().st_size
    with one.open("rb") as first, other.open("rb") as second:
        digests = {digest_of(file.fileno(), min(sizes)).digest() for file in (first, second)}
    if len(digests) != 1:
        raise RunConflictError(
            f"{one} and {other} have one name and are different journals; one of them was changed"
            " by hand, or damaged. Leave one of the two directories out."
        )
    return one if sizes[0] >= sizes[1] else other
