"""What of a run's own directory is believed when it is delivered or read back: a directory may come
from anywhere.

Policy: the user's keys and files are the user's. `run.json` may say which tracker a run has and
what it is called; where to send it, and where on this machine to write, counts only if the user
says the same, by option or environment. A link in the directory leads nowhere. Reading what lies
below the directory needs no trust.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

from slime_logging.errors import RunNotFoundError, SettingsError
from slime_logging.record.run import RunDirectory, RunFile
from slime_logging.settings.option import Option
from slime_logging.settings.options import TRACKER_OPTIONS

MAX_ENTRIES = 200_000
"""Files of a run's directory that are looked at; a real one has some dozens a process and
tracker.
"""

TENSORBOARD_LINK = "tensorboard"
_MARK = "<hidden: "
_NAME = re.compile(r"\w[\w .~+-]*")


def trusted_options(
    directory: RunDirectory,
    run: RunFile,
    said: Mapping[str, object],
    trackers: Collection[str],
    *,
    is_writing: bool,
) -> dict[str, object]:
    """The options of the run's trackers: the stored ones that are believed, with what the user said
    on the command line above them.

    Args:
        directory: the run's. run: what `run.json` says. said: on the command line.
        trackers: which are delivered to, or read back.
        is_writing: whether they are delivered to: reading W&B's files needs no trust.

    Raises:
        SettingsError: the run names a place that the user did not; the message has the option that
        says it.
    """
    known = {option.name for option in TRACKER_OPTIONS if not option.is_secret}
    stored = {
        name: value
        for name, value in run.options.items()
        if name in known and isinstance(value, str)
    }
    if said.get("wandb_mode", stored.get("wandb_mode")) == "online":
        stored.pop("wandb_dir", None)  # only the server matters: local files go to the run
    options: dict[str, object] = {**stored, **said}
    places = [(o, stored[o.name]) for o in TRACKER_OPTIONS if o.is_place and o.name in stored]
    for option, place in places:
        is_used = _is_used(option, options, trackers, is_writing=is_writing)
        is_said = any(_is_same(place, text) for text in option.texts(os.environ))
        is_said = is_said or option.name in said or _is_below(place, directory.path)
        if is_used and not is_said:
            raise SettingsError(_question(option, place))
    return options


def check_stores(directory: RunDirectory, trackers: Collection[str]) -> None:
    """Refuse to write to a store beside the run that is a link: whoever packed the run could have
    made it lead anywhere.

    Raises:
        SettingsError: it is one; the message says how to name the place that is meant.
    """
    ways = {"trackio": "TRACKIO_DIR={}", "mlflow": "-o mlflow_tracking_uri=sqlite:///{}/mlflow.db"}
    for name in ways.keys() & set(trackers):
        store = directory.path.parent / name
        if store.is_symlink() and not (directory.path / name).is_dir():
            place = store.resolve()
            way = ways[name].format(shlex.quote(str(place)))
            raise SettingsError(
                f"{store} is a link to {place}. If rows are to go there, say so: {way}"
            )


def check_links(directory: RunDirectory) -> None:
    """Refuse a directory with links in it.

    Raises:
        RunNotFoundError: it has one, other than TensorBoard's own and those among the W&B client's
        logs.
    """
    own = directory.path / TENSORBOARD_LINK
    num_seen = 0
    for folder, folders, files in os.walk(directory.path):
        for name in (*folders, *files):
            num_seen += 1
            path = Path(folder, name)
            if num_seen > MAX_ENTRIES:
                raise RunNotFoundError(
                    f"{directory.path} has more than {MAX_ENTRIES:,} files: this is no run."
                )
            if path.is_symlink() and path != own and not _is_a_clients_log(path, directory.path):
                raise RunNotFoundError(
                    f"{path} is a link, and no run has one there. Remove it if you know what it is"
                    " for."
                )


def _is_a_clients_log(path: Path, directory: Path) -> bool:
    """Whether it is in a W&B run's `logs` folder: its client links one there, and nothing reads
    what is in it.
    """
    parts = path.relative_to(directory).parts
    return len(parts) == 4 and parts[0] == "wandb" and parts[2] == "logs"


def check_tensorboard(
    directory: RunDirectory, options: Mapping[str, object], environ: Mapping[str, str]
) -> None:
    """Refuse to write event files where neither the environment nor the flags would put them.

    Raises:
        SettingsError: the run's link, or the names of its project and experiment, lead somewhere
        else.
    """
    link = directory.path / TENSORBOARD_LINK
    names = [
        str(options[name])
        for name in ("tb_project_name", "tb_experiment_name")
        if options.get(name)
    ]
    if any(not _NAME.fullmatch(name) for name in names):
        raise SettingsError(
            f"the run's names for TensorBoard are no plain names: {', '.join(map(repr, names))}."
        )
    allowed = (
        [Path(environ["TENSORBOARD_DIR"]).expanduser().absolute()]
        if environ.get("TENSORBOARD_DIR")
        else []
    )
    allowed.append(Path("tensorboard_log").absolute())
    if link.is_symlink() and not any(
        _is_below(str(link.resolve()), place.resolve()) for place in allowed
    ):
        raise SettingsError(
            f"{link} leads to {link.resolve()}. To write there, call this in the job's own working"
            " directory or with its TENSORBOARD_DIR; or remove the link, and the files go to the"
            " run's directory."
        )


def _is_used(
    option: Option, options: Mapping[str, object], trackers: Collection[str], *, is_writing: bool
) -> bool:
    if option.tracker not in trackers:
        return False
    return (
        is_writing
        if option.name == "wandb_dir"
        else option.name != "wandb_host" or options.get("wandb_mode") == "online"
    )


def _is_same(place: str, said: str) -> bool:
    return place.rstrip("/") == said.rstrip("/")


def _is_below(place: str, directory: Path) -> bool:
    if "://" in place:
        return False
    path = Path(place).expanduser().absolute()
    return path.resolve().is_relative_to(directory.resolve())


def _question(option: Option, place: str) -> str:
    name, variable = option.name, option.variables[-1]
    flag = f"-o {shlex.quote(f'{name}={place}')}"
    if _MARK in place:
        return (
            f"the run's {name} is {place!r}: what is hidden in it was not stored. Give the whole of"
            f" it: -o {name}=..., or set {variable}."
        )
    return (
        f"the run says {name} = {place!r}. Your data and keys go where you say yourself, not where"
        f" a run's directory says: if this is the right place, add {flag}, or set {variable}."
    )
