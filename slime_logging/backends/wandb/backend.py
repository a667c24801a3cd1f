"""W&B: one client for the run, in a process of its own (`wandb_link`), offline or online, read back
by file or by API.

Policy:

- Nothing of the client touches this process: no login, no netrc or settings file, no environment
  variable, no argv.
- Plain mode where this is the run's only client; `mode="shared"` where others may write too, always
  with `resume="allow"`, the same full table of step axes, and a primary that alone decides the
  run's final state.
- Rows reach the client in order and carry their own time and id (`wandb_form`); `write` returns
  when they are handed over, and only a `close` that returned says that the tracker holds them:
  online it asks the server for the last row, because the client keeps silent when the server has
  refused its stream for good.
- Every call is bounded; a client that hangs is killed, and the next `open` starts afresh.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.forms import Notices
from slime_logging.backends.packages import require_packages
from slime_logging.backends.wandb import offline as wandb_offline
from slime_logging.backends.wandb.form import (
    ROW_KEY,
    comparable,
    config_form,
    history_point,
    history_rows,
)
from slime_logging.backends.wandb.link import Link
from slime_logging.backends.wandb.media import (
    KIND_SUFFIX,
    OBJECT_PREFIX,
    expected_mark,
    held_mark,
    held_objects,
)
from slime_logging.backends.wandb.options import client_settings, connection, is_online, local_root
from slime_logging.errors import TryAgain, WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Point, Row
from slime_logging.values.run import RunConfig, RunFacts

OPEN_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 120.0
PAGE_ROWS = 5_000

ORPHAN_S = 1.0
"""The worker looks for its parent every 0.25 s."""

COUNTS_LAG_S = 5.0
"""The hosted service's line counts were seen to lag by 2 to 4 s. A client writes from the count
that it is told when it opens, so one that opens sooner would write over rows that its predecessor
has sent.
"""

_num_opened = itertools.count()


class WandbBackend:
    """The `Backend` and `Readable` for W&B."""

    name = "wandb"
    is_durable = False

    def __init__(
        self, *, open_timeout_s: float = OPEN_TIMEOUT_S, read_timeout_s: float = READ_TIMEOUT_S
    ) -> None:
        self._open_timeout_s = open_timeout_s
        self._read_timeout_s = read_timeout_s
        self._link: Link | None = None
        self.page = ""
        self._run: RunFacts | None = None
        self._config: dict[str, Json] = {}
        self._last_row: str | None = None
        self._is_careful = False
        self._notices = Notices(self.name)

    def open(self, run: RunFacts, writer: Writer) -> None:
        """Start the client and create or continue the run; at most `open_timeout_s`."""
        require_packages("wandb")
        self._release()
        deadline_s = time.monotonic() + self._open_timeout_s
        self._link, self._run = Link(is_private=local_root(run) == run.directory), run
        self._config, self._last_row = {}, None
        settings = client_settings(
            run,
            writer,
            init_timeout_s=max(1.0, self._open_timeout_s * 0.7),
            num_before=next(_num_opened),
        )
        try:
            url = self._link.ask(
                "open",
                settings,
                dict(run.axes),
                str(run.directory),
                timeout_s=deadline_s - time.monotonic(),
            )
        except (TryAgain, WillNeverWork):
            self._release()
            raise
        self.page = url if is_online(run) and isinstance(url, str) else ""

    def settle_s(self, run: RunFacts) -> float:
        """Offline until a killed client's process has seen that it is alone; online until the
        counts are right.
        """
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
            self._settle_rows()
            self._opened().ask("config", changed, timeout_s=REQUEST_TIMEOUT_S)
        self._config = held

    def write(self, rows: Sequence[Row]) -> None:
        """Hand rows to the client; a failure of one call may show at the next."""
        link = self._opened()
        batch: list[tuple[str, dict[str, Any]]] = []
        for row in rows:
            parts = history_rows(row)
            batch.extend((row.step_key, part) for part in parts)
            if len(parts) > 1 or not row.metrics.keys() <= parts[0].keys():
                self._notices.once(
                    "rows",
                    f"metrics that W&B would drop are kept in another form, as in row {row.row_id}",
                )
        if not batch:
            return
        link.send("rows", batch, timeout_s=REQUEST_TIMEOUT_S)
        self._last_row = batch[-1][1][ROW_KEY]
        self._settle_rows(leave=0 if self._is_careful else 1)

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Flush, and online have the server confirm the last row."""
        if self._link is None:
            return
        deadline_s = time.monotonic() + timeout_s
        try:
            self._settle_rows()
            left_s = max(0.0, deadline_s - time.monotonic())
            self._link.ask("close", exit_code, self._last_row, left_s, timeout_s=left_s)
        except WillNeverWork as error:
            raise TryAgain(f"W&B did not confirm the end of the run: {error}") from error
        finally:
            self._release()

    def points(self, row: Row) -> list[Point]:
        """(row id, digest of step and metrics) for each history row."""
        return [point for part in history_rows(row) if (point := history_point(part)) is not None]

    def read_points(self, run: RunFacts) -> Iterator[Point]:
        """The points in the run's `.wandb` files, or on the server."""
        if not is_online(run):
            rows: Iterator[dict[str, Any]] = wandb_offline.read_rows(run)
        else:
            rows = self._read_online(run)
        for row in rows:
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
        for row in self._read_online(run) if is_online(run) else wandb_offline.read_rows(run):
            for name, held in held_objects(row).items():
                if mark := held_mark(held, roots):
                    yield str(row.get(ROW_KEY)), name, mark

    def config_as_held(self, config: RunConfig) -> dict[str, Json]:
        """The configuration in W&B's form, whole floats as integers."""
        held: dict[str, Json] = comparable(config_form(config.values))
        return held

    def read_config(self, run: RunFacts) -> dict[str, Json]:
        """The configuration in the run's `.wandb` files, or on the server."""
        if not is_online(run):
            held: dict[str, Json] = wandb_offline.read_config(run)
        else:
            link = Link()
            try:
                held = link.ask("read_config", connection(run), timeout_s=self._read_timeout_s)
            finally:
                link.kill()
        return {key: comparable(value) for key, value in held.items()}

    def _read_online(self, run: RunFacts) -> Iterator[dict[str, Any]]:
        link = Link()
        try:
            link.ask("scan", connection(run), timeout_s=self._read_timeout_s)
            while rows := link.ask("read", PAGE_ROWS, timeout_s=self._read_timeout_s):
                yield from rows
        finally:
            link.kill()

    def _settle_rows(self, leave: int = 0) -> None:
        """Take the replies to rows. One batch is on its way while the next is prepared, so a
        refusal may come too late to say which rows it is about: then all are tried again, one batch
        at a time.
        """
        try:
            self._opened().settle(timeout_s=REQUEST_TIMEOUT_S, leave=leave)
        except WillNeverWork as error:
            if self._is_careful:
                raise
            self._is_careful = True
            raise TryAgain(f"W&B's client refused earlier rows: {error}") from error

    def _opened(self) -> Link:
        if self._link is None:
            raise TryAgain("the W&B client is not open")
        return self._link

    def _release(self) -> None:
        if self._link is not None:
            self._link.kill()
        self._link = None
