"""The recording side of one process: everything that it says goes through here into its journal.

Policy: nothing but plain, redacted JSON is written. After the start nothing raises: `steady` keeps
the journal up through trouble, and a row that cannot be written at all is told and counted.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping

from slime_logging.record.entries import KEEP, Opening, encode
from slime_logging.record.rows import RowWriter
from slime_logging.record.run import RunDirectory, now_s
from slime_logging.record.steady import SteadyJournal
from slime_logging.redaction.redact import Redactor
from slime_logging.values.json_value import Json

logger = logging.getLogger("slime_logging")

RANK_POSSIBLE = -1
RANK_EXPECTED = 0
RANK_OWN = 1
RANK_LATE = 2


class Recorder:
    """Write the records of this process.

    Args:
        directory: the run's.
        opening: the journal's first line.
        redactor: hides secrets in metric names and texts; configuration is redacted already.

    Raises:
        OSError: the journal cannot be created.
    """

    def __init__(
        self,
        directory: RunDirectory,
        opening: Opening,
        redactor: Redactor,
    ) -> None:
        self.opening = opening
        self._num_refused = 0
        self._config_lock = threading.RLock()
        self._config_s = 0.0
        attempt = None if opening.rewind == KEEP else opening.start
        self._rows = RowWriter(directory.path, opening.journal, redactor, attempt)
        self.journal = SteadyJournal(directory, opening)

    def row(self, metrics: Mapping[str, object], step_key: str) -> None:
        """Record one row of metrics."""
        try:
            self.journal.append(self._rows.line(metrics, step_key))
        except (ValueError, TypeError) as error:
            self._refuse(error)

    def config(self, scope: str, rank: int, values: Mapping[str, Json]) -> None:
        """Record redacted configuration values of a scope; see `ConfigEntry` for `rank`."""
        with self._config_lock:
            # What was said later must have the later time, though the clock may step back.
            self._config_s = max(now_s(), math.nextafter(self._config_s, math.inf))
            self._append(
                "config",
                {"time_s": self._config_s, "scope": scope, "rank": rank, "values": dict(values)},
            )

    def finish(self, exit_code: int | None) -> None:
        """Record the end of this process and close its journal; None where the code is not known
        yet.
        """
        lost: dict[str, Json] = {"num_lost": self._num_refused} if self._num_refused else {}
        self._append("finish", {"time_s": now_s(), "exit_code": exit_code, **lost})
        self.journal.close()

    def _append(self, kind: str, body: Mapping[str, Json]) -> None:
        try:
            self.journal.append(encode(kind, body))
        except (ValueError, TypeError) as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        self._num_refused += 1
        if self._num_refused == 1:
            logger.error(f"slime_logging: a row could not be recorded: {error}. Training goes on.")
