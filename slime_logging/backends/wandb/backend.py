"""W&B: one client for the run, offline or online, read back by file or by API.

Policy:

- Plain mode where this is the run's only client; `mode="shared"` where others may write too, always
  with `resume="allow"`, the same full table of step axes, and a primary that alone decides the
  run's final state.
- Rows reach the client in order and carry their own time and id (`form`); `write` returns when they
  are handed over, and only a `close` that returned says that the tracker holds them: online it asks
  the server for the last row, because the client keeps silent when the server has refused its
  stream for good.
- The client sees no key in its environment, and no settings file of the job's directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.storable import Notices
from slime_logging.backends.table import require_packages
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
from slime_logging.backends.wandb.options import client_settings, connection, is_online, local_root
from slime_logging.backends.wandb.session import Session
from slime_logging.errors import BackendError, TryAgain, WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

INIT_TIMEOUT_S = 20.0

ORPHAN_S = 1.0
"""Within so long a killed client's service is gone."""

COUNTS_LAG_S = 5.0
"""The hosted service's line counts were seen to lag by 2 to 4 s. A client writes from the count
that it is told when it opens, so one that opens sooner would write over rows that its predecessor
has sent.
"""


class WandbBackend:
    """The `Backend` and `Readable` for W&B."""

    name = "wandb"
    is_durable = False

    def __init__(self) -> None:
        self._session: Session | None = None
        self.page = ""
        self._config: dict[str, Json] = {}
        self._last_row: str | None = None
        self._notices = Notices(self.name)

    def open(self, run: RunFacts, writer: Writer) -> None:
        """Create or continue the run; `INIT_TIMEOUT_S` at most where the server does not answer."""
        require_packages("wandb")
        self._notices.begin()
        settings = client_settings(run, writer, init_timeout_s=INIT_TIMEOUT_S)
        self._config, self._last_row = {}, None
        if local_root(run) == run.directory:
            os.umask(0o077)
        session = Session()
        with _alone():
            url = session.open(settings, dict(run.axes), str(run.directory))
        self._session = session
        self.page = url if is_online(run) else ""

    def settle_s(self, run: RunFacts) -> float:
        """Offline until a killed client's service is gone; online until the counts are right."""
        return COUNTS_LAG_S if is_online(run) else ORPHAN_S

    def set_config(self, config: RunConfig) -> None:
        """Send the keys that changed since the last call."""
        held = config_form(config.values)
        if held.keys() != config.values.keys():
            renamed = sorted(config.values.keys() - held.keys())
            self._notices.once(
                "config",
                f"configuration keys that W&B would mangle are kept under other names: {renamed}",
            )
        changed = {
            key: value
            for key, value in held.items()
            if key not in self._config or self._config[key] != value
        }
        if changed:
            with _alone():
                self._opened().set_config(changed)
        self._config = held

    def write(self, rows: Sequence[Row]) -> None:
        """Hand rows to the client."""
        batch: list[tuple[str, dict[str, Any]]] = []
        for row in rows:
            parts = history_rows(row)
            batch.extend((row.step_key, part) for part in parts)
            if len(parts) > 1 or not row.metrics.keys() <= parts[0].keys():
                self._notices.once(
                    "rows",
                    f"metrics that W&B would drop are kept in another form, as in row {row.row_id}",
                )
        with _alone():
            self._opened().write(batch)
        if batch:
            self._last_row = batch[-1][1][ROW_KEY]

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Flush, and online have the server confirm the last row."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            with _alone():
                session.close(exit_code, self._last_row, timeout_s)
        except WillNeverWork as error:
            raise TryAgain(f"W&B did not confirm the end of the run: {error}") from error

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
            with _alone():
                held = wandb_api.read_config(where)
        else:
            held = wandb_offline.read_config(run)
        return {key: comparable(value) for key, value in held.items()}

    def _history(self, run: RunFacts) -> Iterator[dict[str, Any]]:
        if not is_online(run):
            yield from wandb_offline.read_rows(run)
            return
        where = connection(run)
        with _alone():
            yield from wandb_api.read_history(where)

    def _opened(self) -> Session:
        if self._session is None:
            raise TryAgain("the W&B client is not open")
        return self._session


@contextmanager
def _alone() -> Iterator[None]:
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
