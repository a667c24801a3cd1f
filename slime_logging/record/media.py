"""Images, histograms and tables that user code hands to `log`, as plain values that any process can
deliver later.

Policy: what a vendor's object holds is taken out of it at once, because the process that delivers
is another one: images as PNG files in the run's directory, histograms and tables as JSON. A tracker
that has such a thing shows it in its own way, the others keep the JSON. Objects are recognised by
their class's name, so nothing is imported. What is not recognised becomes text, with a warning.

    {"media": "image", "file": "media/<journal>-<n>.png", "caption": "..."}
    {"media": "histogram", "counts": [...], "edges": [...]}        len(edges) == len(counts) + 1
    {"media": "table", "columns": [...], "rows": [[...], ...]}
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slime_logging.values.json_value import Json
from slime_logging.values.serialize import to_json

MAX_TABLE_CELLS = 100_000
"""More cells than this stay text: a row is part of the job's metrics, not a data set."""


class MediaStore:
    """Takes the content out of media objects; files go to `directory / "media"`.

    Args:
        directory: the run's.
        stem: the start of the files' names, unique in the run (the journal's name).
    """

    def __init__(self, directory: Path, stem: str) -> None:
        self._directory = directory
        self._stem = stem
        self._num_files = 0

    def plain(self, value: object) -> dict[str, Json] | None:
        """The value as one of the forms above, or None when it is none of these.

        Raises whatever the object's own code raises; the caller falls back to text.
        """
        reader = _READERS.get(_kind(type(value)))
        return None if reader is None else reader(self, value)

    def _image(self, value: Any) -> dict[str, Json]:
        picture = value if hasattr(value, "save") else value.image
        picture = picture.copy()
        picture.info.clear()  # texts that came with its file: prompts, addresses
        data = io.BytesIO()
        picture.save(data, format="PNG")
        caption = getattr(value, "_caption", None)
        return {
            "media": "image",
            "file": self._write(data.getvalue(), ".png"),
            "caption": to_json(caption),
        }

    def _histogram(self, value: Any) -> dict[str, Json]:
        return {
            "media": "histogram",
            "counts": _numbers(value.histogram),
            "edges": _numbers(value.bins),
        }

    def _table(self, value: Any) -> dict[str, Json] | None:
        return _as_table(list(value.columns), list(value.data))

    def _frame(self, value: Any) -> dict[str, Json] | None:
        return _as_table(list(value.columns), value.values.tolist())

    def _write(self, data: bytes, ending: str) -> str:
        folder = self._directory / "media"
        folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{self._stem}-{self._num_files}{ending}"
        self._num_files += 1
        fd = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        return f"media/{name}"


_READERS: Mapping[str, Callable[[MediaStore, Any], dict[str, Json] | None]] = {
    "wandb.Image": MediaStore._image,
    "PIL.Image": MediaStore._image,
    "wandb.Histogram": MediaStore._histogram,
    "wandb.Table": MediaStore._table,
    "pandas.DataFrame": MediaStore._frame,
}


def _kind(cls: type) -> str:
    """`<package>.<class>` of the class or the first of its bases that is known: PNG files are a
    subclass of PIL's Image.
    """
    for base in cls.__mro__:
        kind = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        if kind in _READERS:
            return kind
    return ""


def _as_table(columns: list[object], rows: list[list[object]]) -> dict[str, Json] | None:
    if len(columns) * len(rows) > MAX_TABLE_CELLS:
        return None
    return {
        "media": "table",
        "columns": [str(name) for name in columns],
        "rows": [to_json(list(row)) for row in rows],
    }


def _numbers(values: Any) -> list[Json]:
    return [float(value) for value in values]
