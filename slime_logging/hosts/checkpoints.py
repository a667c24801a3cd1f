"""The id of a job's run, kept beside its checkpoints: a job that goes on from them goes on with the
run.

Policy: the file names the directory that it was written for, so a copy of the checkpoints is
another job's. What is read back is hostile.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import orjson

from slime_logging.errors import SettingsError
from slime_logging.record.run import check_run_id, write_whole

NAME = "slime_logging_run.json"
_MAX_BYTES = 16_384
_TRACKER_FILE = "latest_checkpointed_iteration.txt"


class _Kept(msgspec.Struct):
    run_id: str
    place: str
    project: str
    group: str | None


class Checkpoints:
    """The directory where a job saves its checkpoints.

    Args:
        save: the directory, as `--save` has it.
        project: of the run; a run of another project is not continued.
        group: of the run, likewise.
    """

    def __init__(self, save: str, project: str, group: str | None) -> None:
        self.place = Path(os.path.realpath(Path(save).expanduser()))
        self._project = project
        self._group = group

    def run_id(self) -> str | None:
        """The run that saves its checkpoints here; None where none is known."""
        path = self.place / NAME
        try:
            if path.is_symlink() or path.stat().st_size > _MAX_BYTES:
                return None
            kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
            is_ours = (kept.place, kept.project, kept.group) == (
                str(self.place),
                self._project,
                self._group,
            )
            return check_run_id(kept.run_id) if is_ours else None
        except (OSError, msgspec.MsgspecError, SettingsError):
            return None

    def is_resumed_by(self, args: object) -> bool:
        """Whether the job of these arguments loads what was saved here, and something was."""
        load = getattr(args, "load", None)
        if not load or not isinstance(load, (str, os.PathLike)):
            return False
        is_here = os.path.realpath(Path(load).expanduser()) == str(self.place)
        return is_here and (self.place / _TRACKER_FILE).is_file()

    def keep(self, run_id: str) -> None:
        """Remember the run.

        Raises:
            OSError: the directory cannot be made or written.
        """
        self.place.mkdir(parents=True, exist_ok=True)
        kept = _Kept(run_id=run_id, place=str(self.place), project=self._project, group=self._group)
        write_whole(self.place / NAME, orjson.dumps(msgspec.to_builtins(kept)))


def checkpoints_of(args: object, project: str, group: str | None) -> Checkpoints | None:
    """Where the job of these arguments saves; None where it does not."""
    save = getattr(args, "save", None)
    if not save or not isinstance(save, (str, os.PathLike)):
        return None
    return Checkpoints(os.fspath(save), project, group)
