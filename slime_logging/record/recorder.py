"""The recording side of one process: everything that it says goes through here into its journal.

Policy: nothing but plain, redacted JSON is written. After the start nothing raises: `steady` keeps
the journal up through trouble, and a row that cannot be written at all is told and counted.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping

from slime_logging.record.entries import Opening, split_nonfinite
from slime_logging.record.media import MediaStore
from slime_logging.record.run import RunDirectory, now_s
from slime_logging.record.steady import SteadyJournal
from slime_logging.redaction.redact import Redactor
from slime_logging.values.json_value import Json
from slime_logging.values.serialize import metric_to_json

logger = logging.getLogger("slime_logging")

RANK_EXPECTED = 0
RANK_OWN = 1
RANK_LATE = 2

MAX_CACHED_NAMES = 200_000
"""Metric names whose redacted form is remembered; more are redacted again each time, so that memory
stays bounded.
"""

_LARGEST_INT = 2**64 - 1
_SMALLEST_INT = -(2**63)
_NUMBERS = frozenset({float, int, bool})


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
        self._redactor = redactor
        self._num_refused = 0
        self._config_lock = threading.RLock()
        self._config_s = 0.0
        self._has_warned = False
        self._media = MediaStore(directory.path, opening.journal)
        self._names: dict[str, str] = {}
        self._plain_names: set[str] = set()
        self.journal = SteadyJournal(directory, opening)

    def row(self, metrics: Mapping[str, object], step_key: str) -> None:
        """Record one row of metrics.

        Raises:
            KeyError: `metrics` has no `step_key`; the caller's mistake.
        """
        if step_key not in metrics:
            known = ", ".join(self._redactor.key(str(name)) for name in metrics)
            raise KeyError(
                f"the metrics have no step key {self._redactor.key(step_key)!r}; they have:"
                f" {known[:500]}"
            ) from None
        body = self._plain_body(metrics, step_key)
        if body is None:
            body = self._body(metrics, step_key)
        self._append("row", body)

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
        self._append("finish", {"time_s": now_s(), "exit_code": exit_code})
        self.journal.close()

    def _plain_body(self, metrics: Mapping[str, object], step_key: str) -> dict[str, Json] | None:
        """The row if each name stays as it is and each value is a finite number: most are, judged
        without a loop.
        """
        if type(metrics) is not dict:
            return None
        values = metrics.copy()
        step = values.pop(step_key)
        kinds = set(map(type, values.values()))
        if (
            type(step) is not int
            or not kinds <= _NUMBERS
            or not self._plain_names.issuperset(values)
        ):
            return None
        if int in kinds and not all(
            _fits(value) for value in values.values() if type(value) is int
        ):
            return None
        try:
            total = sum(values.values())
        except OverflowError:
            return None
        if total - total != 0 or not _fits(step) or step_key not in self._plain_names:
            return None  # a value is not finite, or all of them together are not
        return {"time_s": now_s(), "step_key": step_key, "step": step, "metrics": values}

    def _body(self, metrics: Mapping[str, object], step_key: str) -> dict[str, Json]:
        values: dict[str, Json] = {}
        names = self._names
        for key, value in metrics.items():
            kind = type(value)
            name = names.get(key) or self._name(key)
            if kind is float or kind is bool or value is None or (kind is int and _fits(value)):  # type: ignore[arg-type]
                values[name] = value  # type: ignore[assignment]
            else:
                values[name] = self._metric(name, value)
        step_name = names.get(step_key) or self._name(step_key)
        step = values.pop(step_name)
        if type(step) is not int:
            step = _as_step(step)
        body: dict[str, Json] = {
            "time_s": now_s(),
            "step_key": step_name,
            "step": step,
            "metrics": values,
        }
        nonfinite = split_nonfinite(values)
        if nonfinite:
            body["nonfinite"] = nonfinite
        return body

    def _append(self, kind: str, body: Mapping[str, Json]) -> None:
        try:
            self.journal.append(kind, body)
        except (ValueError, TypeError) as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        self._num_refused += 1
        if self._num_refused == 1:
            logger.error(f"slime_logging: a row could not be recorded: {error}. Training goes on.")

    def _name(self, key: object) -> str:
        name = hidden = self._redactor.key(key if isinstance(key, str) else str(key))
        number = 1
        while (
            hidden != key and name in self._names.values()
        ):  # two names that differ only in a secret stay two
            number += 1
            name = f"{hidden}~{number}"
        if len(self._names) < MAX_CACHED_NAMES:
            self._names[key] = name  # type: ignore[index]
            if name == key and type(key) is str:
                self._plain_names.add(name)
        return name

    def _metric(self, name: str, value: object) -> Json:
        plain = self._media_or_json(name, value)
        if type(plain) is int and not _fits(plain):
            return str(plain)
        if isinstance(plain, (str, list, dict)):
            return next(iter(self._redactor.row({name: plain}).values()))
        return plain

    def _media_or_json(self, name: str, value: object) -> Json:
        try:
            media = self._media.plain(value)
        except (
            Exception
        ) as error:  # the object's own code, or a disk that is full: training goes on
            media = None
            logger.debug("slime_logging: %s: %s", name, type(error).__name__)
        if media is not None:
            return media
        plain = metric_to_json(value)
        if isinstance(plain, str) and not isinstance(value, str) and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "slime_logging: %s is a %s, which no tracker can chart; it is logged as text",
                name,
                type(value).__name__,
            )
        return plain


def _fits(number: int) -> bool:
    return _SMALLEST_INT <= number <= _LARGEST_INT


def _as_step(step: Json) -> Json:
    """A step as a finite number: text that reads as one, else 0, since a step must never cost the
    row.
    """
    try:
        number = float(step)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0
    return number if math.isfinite(number) else 0
