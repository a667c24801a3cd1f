"""A search for canaries in every byte that a job leaves.

Policy: the search knows nothing of the package's own list of encodings. It looks for each canary's core, 20 random
letters and digits, so that what is left of a secret that was hidden in part is found too: as it is in any case of
letters, in base64 at each of the three positions and in both alphabets, in hexadecimal and in UTF-16; and for the
whole secret URL-quoted and escaped for JSON. It looks into compressed data, archives, databases, logs of records and
JSON inside of JSON.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import sqlite3
import urllib.parse
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.secrets.canaries import core

MAX_DEPTH = 5
"""Of data inside of data."""
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_LOG_BLOCK, _LOG_FRAME = 32 * 1024, 7


def needles(secret: str, core_text: str) -> dict[str, bytes]:
    """What to look for: the name of a form -> its bytes."""
    data = core_text.encode()
    found = {"hex": data.hex().encode(), "HEX": data.hex().upper().encode()}
    found |= {
        "utf-16-le": core_text.encode("utf-16-le"),
        "utf-16-be": core_text.encode("utf-16-be"),
    }
    for lead in range(3):
        # Of the first and last group, some bits are those of the neighbours.
        found[f"base64+{lead}"] = base64.b64encode(b"\0" * lead + data)[
            4 if lead else 0 : -4
        ].rstrip(b"=")
    found["url"] = urllib.parse.quote(secret, safe="").encode()
    found["json"] = json.dumps(secret)[1:-1].encode()
    found["whole"] = secret.encode()
    return found


class Search:
    """Finds the canaries of a table (name -> secret) in bytes, files and whole directories."""

    def __init__(self, canaries: Mapping[str, str]) -> None:
        self._cores = {name: core(name).lower().encode() for name in canaries}
        self._needles = {name: needles(secret, core(name)) for name, secret in canaries.items()}
        self._any = self._any_needle()
        self.num_bytes = 0
        self.num_views = 0

    def bytes(self, data: bytes) -> set[str]:
        """`<canary> as <form>` for all that is in the data, and in the data inside of it."""
        found: set[str] = set()
        for view in views(data):
            self.num_bytes += len(view)
            self.num_views += 1
            if not self._any.search(view):
                continue
            lower = view.lower()
            for name, needle in self._cores.items():
                if needle in lower:
                    found.add(f"{name} as text")
            for name, forms in self._needles.items():
                found |= {f"{name} as {form}" for form, needle in forms.items() if needle in view}
        return found

    def _any_needle(self) -> Any:
        """Finds out in one pass whether there is anything: nearly always there is not."""
        import re2

        options = re2.Options()
        options.encoding, options.max_mem = re2.Options.Encoding.LATIN1, 1 << 28
        cores = [b"(?i:" + re.escape(needle) + b")" for needle in self._cores.values()]
        forms = [re.escape(form) for forms in self._needles.values() for form in forms.values()]
        return re2.compile(b"|".join([*cores, *forms]), options)

    def text(self, text: str) -> set[str]:
        """The same for a text."""
        return self.bytes(text.encode("utf-8", "surrogatepass"))

    def tree(self, *roots: Path, but: frozenset[Path] = frozenset()) -> dict[str, set[str]]:
        """File -> what is in it or in its name, for every file below the directories except those of `but`."""
        leaks: dict[str, set[str]] = {}
        for root in roots:
            for folder, folders, files in os.walk(root):
                for name in (*files, *folders):
                    path = Path(folder, name)
                    found = self.text(name)
                    if path.is_file() and path not in but:
                        found |= self.bytes(path.read_bytes())
                        found |= self._database(path)
                    if found:
                        leaks[str(path.relative_to(root.parent))] = found
        return leaks

    def _database(self, path: Path) -> set[str]:
        """What is in the tables of an SQLite file: long values are spread over pages of its file."""
        with path.open("rb") as file:
            if not file.read(16).startswith(b"SQLite format 3"):
                return set()
        connection = sqlite3.connect(path)
        try:
            found: set[str] = set()
            tables = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            ]
            for table in tables:
                for row in connection.execute(f'SELECT * FROM "{table}"'):
                    for cell in row:
                        found |= self.bytes(cell if isinstance(cell, bytes) else str(cell).encode())
            return found
        finally:
            connection.close()


def views(data: bytes, depth: int = 0) -> Iterator[bytes]:
    """The data, and everything that is packed in it."""
    yield data
    if depth < MAX_DEPTH:
        for inner in _packed(data):
            yield from views(inner, depth + 1)


def _packed(data: bytes) -> Iterator[bytes]:
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for item in archive.infolist():
                yield item.filename.encode() + b"\n" + archive.read(item)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        import zstandard

        yield zstandard.ZstdDecompressor().decompressobj().decompress(data)
    elif data[:4] in (b":W&B", b":SWL"):
        yield from _log_records(data)
    else:
        yield from _json_texts(data)
        yield from _inflated(data)


def _inflated(data: bytes) -> Iterator[bytes]:
    """What zlib streams inside of the data hold, such as the texts of a PNG."""
    if data[:1] in b"{[" or len(data) > 4 << 20:
        return
    for match in _ZLIB.finditer(data):
        try:
            yield zlib.decompressobj().decompress(data[match.start() :])
        except zlib.error:
            continue


def _json_texts(data: bytes) -> Iterator[bytes]:
    """The keys and texts of JSON, of lines of JSON, and of the JSON inside of those texts, without their escapes."""
    for line in data.splitlines() if b"\n" in data else [data]:
        if line.lstrip()[:1] in (b"{", b"[", b'"') and b"\\" in line:
            try:
                texts = list(_texts_of(json.loads(line)))
            except ValueError:
                continue
            yield "\n".join(texts).encode("utf-8", "surrogatepass")
            yield from (text.encode("utf-8", "surrogatepass") for text in texts if "\\" in text)


def _texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_of(item)


def _log_records(data: bytes) -> Iterator[bytes]:
    """The records of a log in LevelDB's framing behind a header of 7 bytes, put together from their pieces."""
    at, pieces = _LOG_FRAME, b""
    while at + _LOG_FRAME <= len(data):
        left = _LOG_BLOCK - at % _LOG_BLOCK
        if left < _LOG_FRAME:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        pieces = (b"" if kind in (1, 2) else pieces) + data[
            at + _LOG_FRAME : at + _LOG_FRAME + length
        ]
        at += _LOG_FRAME + length
        if kind in (1, 4):
            yield pieces
