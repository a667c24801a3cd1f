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
from collections.abc import Sequence
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.storable import Notices
from slime_logging.backends.table import require_packages
from slime_logging.backends.wandb.form import (
    ROW_KEY,
    config_form,
    history_rows,
)
from slime_logging.backends.wandb.options import client_settings, is_online, local_root
from slime_logging.backends.wandb.reading import WandbReader, alone
from slime_logging.backends.wandb.session import Session
from slime_logging.errors import TryAgain, WillNeverWork
from slime_logging.values.json_value import Json
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts

INIT_TIMEOUT_S = 20.0

ORPHAN_S = 1.0
"""Within so long a killed client's service is gone."""

COUNTS_LAG_S = 5.0
"""The hosted service's line counts were seen to lag by 2 to 4 s. A client writes from the count
that it is told when it opens, so one that opens sooner would write over rows that its predecessor
has sent.
"""


class WandbBackend(WandbReader):
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
        with alone():
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
            with alone():
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
        with alone():
            self._opened().write(batch)
        if batch:
            self._last_row = batch[-1][1][ROW_KEY]

    def close(self, exit_code: int | None, timeout_s: float) -> None:
        """Flush, and online have the server confirm the last row."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            with alone():
                session.close(exit_code, self._last_row, timeout_s)
        except WillNeverWork as error:
            raise TryAgain(f"W&B did not confirm the end of the run: {error}") from error

    def _opened(self) -> Session:
        if self._session is None:
            raise TryAgain("the W&B client is not open")
        return self._session
