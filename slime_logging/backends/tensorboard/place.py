"""TensorBoard's place: a directory of event files."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import quote

from slime_logging.backends.place import Address, Environ, Options, Where
from slime_logging.values.run import RunFacts


def place(options: Options, environ: Environ, directory: Path) -> Where:
    """Where an earlier writer put them, else as the environment says, the flags, or we."""
    own = directory / "tensorboard"
    project, experiment = options.get("tb_project_name"), options.get("tb_experiment_name")
    name = str(experiment or options.get("run_name") or directory.name)
    if own.exists():
        found = own.resolve()
        return Where(str(found), found == own.parent.resolve() / own.name)
    if environ.get("TENSORBOARD_DIR"):
        root = Path(environ["TENSORBOARD_DIR"]).expanduser().absolute()
        return Where(str(root / quote(name, safe=" -_.~")), is_default=False)
    if project:
        return Where(str(Path("tensorboard_log", project, name).absolute()), is_default=False)
    return Where(str(own), is_default=True)


def address(run: RunFacts, place: str, tools: str) -> Address:
    """The command that shows the directory."""
    del run
    command = f"{tools}tensorboard --load_fast=false --logdir {shlex.quote(place)}"
    return Address(place=place, command=command)
