"""The run as W&B's offline files hold it: `.wandb` files, one a client that was opened.

Policy: files are read, never changed. A torn tail, as a killed client leaves it, ends its file:
nothing behind it was ever whole. The framing is LevelDB's log format behind a header of seven
bytes; the records are the client's own protobuf messages, for which it has no public reader.
"""

from __future__ import annotations

import glob
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slime_logging.backends.wandb.options import local_root
from slime_logging.errors import TryAgain
from slime_logging.values.run import RunFacts

BLOCK_BYTES = 32 * 1024
FRAME_BYTES = 7
HEADER = b":W&B\xe1\xbe\x00"
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def find_files(run: RunFacts) -> list[Path]:
    """The run's offline `.wandb` files, oldest first; their directories are what `wandb sync` and
    `wandb leet` take.
    """
    pattern = f"offline-run-*/run-{glob.escape(run.run_id)}.wandb"
    return sorted((local_root(run) / "wandb").glob(pattern), key=lambda path: path.parent.name)


def read_rows(run: RunFacts) -> Iterator[dict[str, Any]]:
    """Every history row of all files, nested keys joined with dots."""
    for record in _records(run):
        if record.HasField("history"):
            # One text for all values is parsed in half the time that each for itself takes.
            members = [
                f"{json.dumps(_name(item))}:{item.value_json}" for item in record.history.item
            ]
            yield json.loads("{" + ",".join(members) + "}")


def read_config(run: RunFacts) -> dict[str, Any]:
    """The configuration after all files; W&B's own `_wandb` is left out."""
    config: dict[str, Any] = {}
    for record in _records(run):
        for part in (record.run.config, record.config):
            for item in part.update:
                _put(config, list(item.nested_key) or [item.key], json.loads(item.value_json))
            for item in part.remove:
                config.pop(item.key, None)
    config.pop("_wandb", None)
    return config


def is_ended(path: Path) -> bool:
    """Whether a file is whole: its client's last record is in it."""
    return any(record.HasField("exit") for record in _records_of(path))


def _records(run: RunFacts) -> Iterator[Any]:
    for path in find_files(run):
        yield from _records_of(path)


def _records_of(path: Path) -> Iterator[Any]:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from wandb.proto.wandb_internal_pb2 import Record

    try:
        data = path.read_bytes()
    except OSError as error:
        raise TryAgain(f"cannot read {path}: {error}") from error
    for payload in _payloads(data):
        try:
            yield Record.FromString(payload)
        except DecodeError:
            return


def _payloads(data: bytes) -> Iterator[bytes]:
    """The whole records of a file, up to the first that is torn or does not match its checksum."""
    if data[:FRAME_BYTES] != HEADER:
        return
    position, pieces = FRAME_BYTES, b""
    while position + FRAME_BYTES <= len(data):
        left = BLOCK_BYTES - position % BLOCK_BYTES
        if left < FRAME_BYTES:
            position += left
            continue
        checksum = int.from_bytes(data[position : position + 4], "little")
        length = int.from_bytes(data[position + 4 : position + 6], "little")
        kind = data[position + 6]
        piece = data[position + FRAME_BYTES : position + FRAME_BYTES + length]
        if (
            len(piece) < length
            or kind not in (FULL, FIRST, MIDDLE, LAST)
            or not _is_intact(kind, piece, checksum)
        ):
            return
        position += FRAME_BYTES + length
        pieces = piece if kind in (FULL, FIRST) else pieces + piece
        if kind in (FULL, LAST):
            yield pieces


def _is_intact(kind: int, piece: bytes, checksum: int) -> bool:
    return zlib.crc32(piece, zlib.crc32(bytes([kind]))) == checksum


def _name(item: Any) -> str:
    return ".".join(item.nested_key) if item.nested_key else item.key


def _put(config: dict[str, Any], path: list[str], value: Any) -> None:
    for key in path[:-1]:
        config = config.setdefault(key, {})
    config[path[-1]] = value
