"""One journal from its start to its end: what it says of its process, and what it holds for those
who look on.

Policy: like every reader of journals: bounded memory, and what is damaged is counted and passed
over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from slime_logging.record.columns import RowBatch, RowDecoder
from slime_logging.record.entries import Opening
from slime_logging.record.journal_reader import JournalReader
from slime_logging.record.reading import read_opening

FIRST_BYTES, READ_BYTES = 1 << 17, 1 << 22
"""What is read at first, to learn the names of the metrics, and then at once."""


@dataclass(frozen=True, kw_only=True)
class JournalStatus:
    """One process of the run. Times are Unix seconds; `exit_code` is None while it has not said
    that it finished.

    `num_torn_bytes` counts bytes behind the last complete line (a write that a crash cut),
    `num_damaged` complete lines that do not parse, `num_missing` sequence numbers that are not
    there, `num_lost` what of the rows could not be kept: values that cannot be read, rows that no
    line can hold.
    """

    opening: Opening
    num_rows: int
    last_s: float
    exit_code: int | None
    num_torn_bytes: int
    num_damaged: int
    num_missing: int
    num_lost: int


class Onlooker(Protocol):
    """Sees what a journal holds, in its order, as it was read: `opening` names the process."""

    def see_records(self, opening: Opening, records: Sequence[dict[str, Any]]) -> None:
        """Records of any kind."""

    def see_rows(self, opening: Opening, batch: RowBatch) -> None:
        """Rows that were read at once."""


def journal_status(
    path: Path, onlooker: Onlooker | None = None, opening: Opening | None = None
) -> JournalStatus | None:
    """Read a journal, whose opening line may be known; None when it does not begin as a journal
    does.
    """
    opening = opening or read_opening(path)
    if opening is None:
        return None
    reader, tally, num_bytes = JournalReader(path), _Tally(opening, onlooker), FIRST_BYTES
    try:
        while True:
            before = reader.offset
            tally.add(reader, reader.take(num_bytes))
            if reader.offset == before:
                return tally.status(reader)
            num_bytes = READ_BYTES
    finally:
        reader.close()


class _Tally:
    """What the lines of a journal add up to."""

    def __init__(self, opening: Opening, onlooker: Onlooker | None) -> None:
        self._opening = opening
        self._onlooker = onlooker
        self._decoder = RowDecoder()
        self._num_rows = self._num_records = self._num_lost = 0
        self._last_seq, self._last_s = -1, 0.0
        self._exit_code: int | None = None

    def add(self, reader: JournalReader, lines: bytes) -> None:
        """Whole lines: all at once where they are rows, else the halves of them, at last one by
        one.
        """
        if batch := self._decoder.decode(lines):
            self._add_rows(batch)
        elif len(lines) > FIRST_BYTES and 0 < (cut := lines.find(b"\n", len(lines) // 2) + 1) < len(
            lines
        ):
            self.add(reader, lines[:cut])
            self.add(reader, lines[cut:])
        elif lines:
            records = [record for _, record in reader.parsed(lines)]
            self._decoder.learn(records)
            self._add_records(records)

    def _add_rows(self, batch: RowBatch) -> None:
        self._num_rows += batch.num_rows
        self._num_records += batch.num_rows
        self._last_seq = max(self._last_seq, batch.last_seq)
        self._last_s = max(self._last_s, batch.last_s)
        if self._onlooker is not None:
            self._onlooker.see_rows(self._opening, batch)

    def _add_records(self, records: Sequence[dict[str, Any]]) -> None:
        self._num_records += len(records)
        kinds = [record.get("kind") for record in records]
        self._num_rows += kinds.count("row")
        lost = [record["num_lost"] for record in records if "num_lost" in record]
        self._num_lost += sum(number for number in lost if isinstance(number, int))
        times = [record.get("time_s") for record in records]
        self._last_s = max(self._last_s, *(t for t in times if isinstance(t, (int, float))), 0.0)
        seqs = [record.get("seq") for record in records]
        self._last_seq = max(self._last_seq, -1, *(n for n in seqs if isinstance(n, int)))
        for kind, record in zip(kinds, records, strict=True):
            if kind == "finish" and isinstance(record.get("exit_code"), int):
                self._exit_code = record["exit_code"]
        if self._onlooker is not None:
            self._onlooker.see_records(self._opening, records)

    def status(self, reader: JournalReader) -> JournalStatus:
        last_seq = max(self._last_seq, self._num_records - 1)
        return JournalStatus(
            opening=self._opening,
            num_rows=self._num_rows,
            last_s=self._last_s,
            exit_code=self._exit_code,
            num_torn_bytes=reader.num_bytes_left(),
            num_damaged=reader.num_damaged,
            num_missing=max(0, last_seq + 1 - self._num_records - reader.num_damaged),
            num_lost=self._num_lost,
        )
