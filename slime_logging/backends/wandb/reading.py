"""What W&B should hold of a run, and what its files or its server do hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from slime_logging.backends.wandb import api as wandb_api
from slime_logging.backends.wandb import offline as wandb_offline
from slime_logging.backends.wandb.form import (
    ROW_KEY,
    comparable,
    config_form,
    history_point,
    history_rows,
)
from slime_logging.backends.wandb.media import (
    KIND_SUFFIX,
    OBJECT_PREFIX,
    expected_mark,
    held_mark,
    held_objects,
)
from slime_logging.backends.wandb.options import connection, is_online
from slime_logging.errors import BackendError
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts


class WandbReader:
    """Reads the run back."""

    def points(self, row: Row) -> list[Point]:
        """(row id, digest of step and metrics) for each history row."""
        return [point for part in history_rows(row) if (point := history_point(part)) is not None]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The points in the run's `.wandb` files, or on the server."""
        for row in self._history(run):
            if (point := history_point(row)) is not None:
                yield point

    def media(self, row: Row, run: RunFacts) -> dict[str, Point]:
        """The images, and offline the tables of samples too, by row, name and digest: of the tables
        on a server W&B tells no content.
        """
        found: dict[str, Point] = {}
        for part in history_rows(row):
            for key in [key for key in part if key.endswith(KIND_SUFFIX)]:
                name = key.removesuffix(KIND_SUFFIX)
                if is_online(run) and part[key] != "image":
                    continue
                with suppress(OSError, ValueError):
                    if mark := expected_mark(part, name, run.directory):
                        found[name] = part[ROW_KEY], OBJECT_PREFIX + name, mark
        return found

    def read_media(self, run: RunFacts) -> Iterator[Point]:
        """The objects in the history, with the files that lie beside the run's `.wandb` files."""
        roots = [path.parent / "files" for path in wandb_offline.find_files(run)]
        for row in self._history(run):
            for name, held in held_objects(row).items():
                if mark := held_mark(held, roots):
                    yield str(row.get(ROW_KEY)), name, mark

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """The configuration in W&B's form, whole floats as integers."""
        held: dict[str, Json] = comparable(config_form(config.values))
        return held

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The configuration in the run's `.wandb` files, or on the server."""
        if is_online(run):
            where = connection(run)
            with alone():
                held = wandb_api.read_config(where)
        else:
            held = wandb_offline.read_config(run)
        return {key: comparable(value) for key, value in held.items()}

    def _history(self, run: RunFacts) -> Iterator[dict[str, Any]]:
        if not is_online(run):
            yield from wandb_offline.read_rows(run)
            return
        where = connection(run)
        with alone():
            yield from wandb_api.read_history(where)


@contextmanager
def alone() -> Iterator[None]:
    """Leave the client nothing of the job's: it would read `wandb/settings` in the job's directory,
    and hand its service, which others can look into, the key in the environment. Whatever it raises
    becomes an error of ours.
    """
    place, key = os.open(".", os.O_RDONLY), os.environ.pop("WANDB_API_KEY", None)
    os.chdir("/")
    os.environ["WANDB_ERROR_REPORTING"] = "false"
    try:
        yield
    except BackendError:
        raise
    except Exception as error:
        raise wandb_api.judge(error) from error
    finally:
        os.chdir(place)
        os.close(place)
        if key is not None:
            os.environ["WANDB_API_KEY"] = key
