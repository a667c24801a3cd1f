"""What a metric is called in the run, from its first row to its last.

Policy: a name once given stays, whatever is learned later; names that differ only in what is hidden
are told apart by `~2`, `~3`.
"""

from __future__ import annotations

from slime_logging.redaction.redact import Redactor
from slime_logging.values.json_scalars import text_json

MAX_CACHED = 200_000
"""Names that are remembered; more are redacted again each time, so that memory stays bounded."""


class MetricNames:
    """The names of one process's metrics.

    Attributes:
        unchanged: names that are shown as they were given.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.unchanged: set[str] = set()
        self._redactor = redactor
        self._shown: dict[str, str] = {}
        self._given: dict[str, str] = {}

    def shown(self, given: str) -> str:
        """The metric's name in the run: for one key always the same."""
        known = self._shown.get(given)
        if known is not None:
            return known
        name = plain = self._redactor.key(text_json(given))
        number = 1
        while self._given.get(name, given) != given:
            number += 1
            name = f"{plain}~{number}"
        if len(self._shown) < MAX_CACHED:
            self._shown[given] = name
            self._given[name] = given
            if name == given:
                self.unchanged.add(name)
        return name
