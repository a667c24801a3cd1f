"""A journal read from its start, by those who look at a run: its opening line, its records, its
rows, their number.

Policy: a journal is hostile input. Memory is bounded, a file that does not begin as a journal does
gives nothing, and what is damaged is passed over: the records behind it are read all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_logging.record.entries import ROW_PREFIX, Opening, decode_row
from slime_logging.record.journal_reader import READ_BYTES, JournalReader
from slime_logging.record.run import RunDirectory
from slime_logging.values.row import Row

OPENING_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class UnreadableJournal:
    """A file among the journals that says nothing to this version, and why."""

    name: str
    reason: str


def read_opening(path: Path) -> Opening | None:
    """The first line of a journal; None when it is not there, or not one that this version
    understands.
    """
    return _looked_at(path)[0]


def openings(directory: RunDirectory) -> Iterator[tuple[Path, Opening]]:
    """Each journal that this version understands, with its first line."""
    for path in directory.journal_paths():
        if (opening := read_opening(path)) is not None:
            yield path, opening


def survey(
    directory: RunDirectory,
) -> tuple[list[tuple[Path, Opening]], tuple[UnreadableJournal, ...]]:
    """What `openings` gives, and the journals whose rows nobody can count: of another schema,
    damaged in their first line, not to be opened. One whose first line was cut by a crash holds no
    row, and is none of them.
    """
    found: list[tuple[Path, Opening]] = []
    unreadable: list[UnreadableJournal] = []
    for path in directory.journal_paths():
        opening, reason = _looked_at(path)
        if opening is not None:
            found.append((path, opening))
        if reason:
            unreadable.append(UnreadableJournal(name=path.name, reason=reason))
    return found, tuple(unreadable)


def _looked_at(path: Path) -> tuple[Opening | None, str]:
    """The first line of a journal, and why it is not to be read."""
    try:
        opening = _opening(path)
    except OSError as error:
        return None, error.strerror or str(error)
    except ValueError as error:
        return None, str(error)
    if opening is not None and opening.journal != path.stem:
        return opening, f"it says that it is the journal {opening.journal}"
    return opening, ""


def _opening(path: Path) -> Opening | None:
    reader = JournalReader(path)
    try:
        first = reader.read(max_bytes=OPENING_BYTES)
        if reader.num_damaged:
            raise ValueError("its first line is damaged")
        return Opening.of(first[0][1]) if first else None
    finally:
        reader.close()


def read_all(
    reader: JournalReader, *, has_rows: bool = True
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every record from the reader's offset to the end, each with the offset behind it."""
    for batch in read_batches(reader, has_rows=has_rows):
        yield from batch


def read_batches(
    reader: JournalReader, *, has_rows: bool = True
) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """The same, as many records at a time as are read at once."""
    while True:
        before = reader.offset
        yield reader.read(has_rows=has_rows)
        if reader.offset == before:
            return


def read_records(
    path: Path, *, has_rows: bool = True
) -> Iterator[tuple[int, Opening, dict[str, Any]]]:
    """Every record behind the opening line, with the offset behind it and the opening line.

    Raises:
        OSError: the file cannot be opened.
    """
    reader = JournalReader(path)
    try:
        opening: Opening | None = None
        for end, record in read_all(reader, has_rows=has_rows):
            if opening is not None:
                yield end, opening, record
                continue
            try:
                opening = Opening.of(record)
            except ValueError:
                return
    finally:
        reader.close()


def read_rows(path: Path, end: int | None = None) -> Iterator[Row]:
    """The rows of a journal in order, up to the offset `end` where one is given.

    Raises:
        OSError: the file cannot be opened.
    """
    for offset, opening, record in read_records(path):
        if end is not None and offset > end:
            return
        if record.get("kind") == "row":
            try:
                yield decode_row(record, opening)
            except ValueError:
                continue


def count_rows(path: Path) -> int:
    """The number of complete metrics rows in a journal; 0 when it cannot be read. Memory is bounded
    whatever the file holds.
    """
    mark = b"\n" + ROW_PREFIX
    num_rows, position, tail = 0, 0, b""
    last_row = last_newline = -1
    try:
        with path.open("rb") as file:
            while piece := file.read(READ_BYTES):
                data = tail + piece
                base = position - len(tail)
                num_rows += data.count(mark)
                if (found := data.rfind(mark)) >= 0:
                    last_row = base + found
                if (found := data.rfind(b"\n")) >= 0:
                    last_newline = base + found
                position += len(piece)
                tail = data[-(len(mark) - 1) :]
    except OSError:
        return 0
    is_torn = last_row >= 0 and last_row == last_newline
    return num_rows - is_torn
