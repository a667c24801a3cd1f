"""Texts and structures that are too long for a line of the journal: whole in a file of the run,
with their beginning in the row.

    {"media": "text" | "json", "file": "media/<journal>-<n>.txt", "start": "..."}
    {"media": "table", "columns": [...], "num_rows": ..., "file": ...}
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from slime_logging.record.media import MediaStore, NotKept
from slime_logging.values.json_value import Json

MAX_TEXT_CHARS = 2**20
MAX_STRUCTURE_BYTES = 2**22
MAX_ROW_BYTES = 2**24
"""What a line holds of one text, of one list or mapping, and of all of them."""
START_CHARS = 1_000


class LongValues:
    """The lengths of one row's values.

    Args:
        media: takes what is too long.
        on_lost: called where the disk does not take it: its beginning is all that is kept.
    """

    def __init__(self, media: MediaStore, on_lost: Callable[[], object]) -> None:
        self._media = media
        self._on_lost = on_lost
        self._num_bytes = 0

    def fitting(self, plain: Json) -> Json:
        """The value itself, or what stands for it where it is too long."""
        is_text = isinstance(plain, str)
        num_bytes = len(plain) if isinstance(plain, str) else len(orjson.dumps(plain))
        most = MAX_TEXT_CHARS if is_text else MAX_STRUCTURE_BYTES
        if num_bytes <= most and self._num_bytes + num_bytes <= MAX_ROW_BYTES:
            self._num_bytes += num_bytes
            return plain
        data = plain.encode() if isinstance(plain, str) else orjson.dumps(plain)
        start = data[: 4 * START_CHARS].decode(errors="ignore")[:START_CHARS]
        try:
            file = self._media.write(data, ".txt" if is_text else ".json")
        except (OSError, NotKept):
            self._on_lost()
            return f"{start}... <shortened: {num_bytes} characters>"
        if isinstance(plain, dict) and plain.get("media") == "table":
            rows = plain.pop("rows")
            return {**plain, "file": file, "num_rows": len(rows) if isinstance(rows, list) else 0}
        return {"media": "text" if is_text else "json", "file": file, "start": start}
