"""Images, arrays, tables and files of media that user code hands to `log`, as plain values that any
process can deliver later.

Policy: what an object holds is taken out of it at once, because the process that delivers is
another one. A tracker that has such a thing shows it in its own way, the others keep the JSON.
Objects are recognised by their class's name, so nothing is imported. What is not recognised becomes
text, with a warning.

    {"media": "image", "file": "media/<journal>-<n>.png", "caption": "..."}
    {"media": "html" | "audio" | "video" | ..., "file": ..., "caption": ...}
    {"media": "histogram", "counts": [...], "edges": [...]}        len(edges) == len(counts) + 1
        of an array also: shape, dtype, mean, std, min, max, and all of it in "values" or "file"
    {"media": "table", "columns": [...], "rows": [[...], ...]}
"""

from __future__ import annotations

import io
import itertools
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slime_logging.values import describe
from slime_logging.values.arrays import as_numpy, distribution
from slime_logging.values.json_value import Json
from slime_logging.values.metric import metric_to_json

MAX_FILE_BYTES = 2**28
"""Of one file that is copied into the run: a row is part of the job's metrics, not a data set."""
SMALL_ARRAY = 64
"""Arrays with up to this many elements stand in the row with their values."""


class NotKept(ValueError):
    """What is larger than `MAX_FILE_BYTES`."""


class MediaStore:
    """Takes the content out of media objects; files go to `directory / "media"`.

    Args:
        directory: the run's.
        stem: the start of the files' names, unique in the run (the journal's name).
        redact: hides the secrets in a text.
        overwrite: hides those in the bytes of a file that is no text.
    """

    def __init__(
        self,
        directory: Path,
        stem: str,
        redact: Callable[[str], str] = lambda text: text,
        overwrite: Callable[[bytes], bytes] = lambda data: data,
    ) -> None:
        self._directory = directory
        self._stem = stem
        self._redact, self._overwrite = redact, overwrite
        self._numbers = itertools.count()

    def plain(self, value: object) -> dict[str, Json] | None:
        """The value as one of the forms above, or None when it is none of these.

        Raises whatever the object's own code raises; the caller falls back to text.
        """
        reader = _READERS.get(_kind(type(value)))
        if reader is not None:
            return reader(self, value)
        if describe.is_array(value) and not describe.is_proxy(value):
            return self._array(value)
        return None

    def write(self, data: bytes, ending: str) -> str:
        """Put a file into the run and return its name there; raises `OSError`, `NotKept`."""
        if len(data) > MAX_FILE_BYTES:
            raise NotKept(f"{len(data)} bytes")
        folder = self._directory / "media"
        folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{self._stem}-{next(self._numbers)}{ending}"
        fd = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        return f"media/{name}"

    def _image(self, value: Any) -> dict[str, Json]:
        picture = value if hasattr(value, "save") else value.image
        picture = picture.copy()
        picture.info.clear()  # texts that came with its file: prompts, addresses
        data = io.BytesIO()
        picture.save(data, format="PNG")
        caption = getattr(value, "_caption", None)
        return {
            "media": "image",
            "file": self.write(data.getvalue(), ".png"),
            "caption": metric_to_json(caption),
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

    def _array(self, value: Any) -> dict[str, Json] | None:
        array = as_numpy(value)
        if array is None:
            return None
        whole: dict[str, Json]
        if array.size <= SMALL_ARRAY:
            whole = {"values": metric_to_json([array.tolist()])[0]}  # type: ignore[index]
        else:
            whole = {"file": self.write(_as_file(array), ".npy")}
        return {"media": "histogram", **distribution(array), **whole}

    def _figure(self, value: Any) -> dict[str, Json]:
        data = io.BytesIO()
        value.savefig(data, format="png")
        return {"media": "image", "file": self.write(data.getvalue(), ".png"), "caption": None}

    def _html(self, value: Any) -> dict[str, Json]:
        text = value.html if hasattr(value, "html") else value.to_html(include_plotlyjs="cdn")
        file = self.write(self._redact(str(text)).encode("utf-8", "backslashreplace"), ".html")
        return {"media": "html", "file": file, "caption": None}

    def _file(self, value: Any) -> dict[str, Json]:
        """A W&B object that has its content in a file."""
        path = Path(value._path)
        if path.stat().st_size > MAX_FILE_BYTES:
            raise NotKept(f"{path.stat().st_size} bytes")
        ending = re.search(r"((?:\.pts)?\.[A-Za-z0-9]{1,8})?\Z", path.name)
        data = path.read_bytes()
        try:  # a chart, a scene, a molecule are texts
            data = self._redact(data.decode()).encode()
        except UnicodeDecodeError:
            data = self._overwrite(data)
        return {
            "media": type(value).__name__.lower(),
            "file": self.write(data, ending.group() if ending else ""),
            "caption": metric_to_json(getattr(value, "_caption", None)),
        }


_READERS: Mapping[str, Callable[[MediaStore, Any], dict[str, Json] | None]] = {
    "wandb.Image": MediaStore._image,
    "PIL.Image": MediaStore._image,
    "wandb.Histogram": MediaStore._histogram,
    "wandb.Table": MediaStore._table,
    "pandas.DataFrame": MediaStore._frame,
    "matplotlib.Figure": MediaStore._figure,
    "plotly.BaseFigure": MediaStore._html,
    "wandb.Html": MediaStore._html,
    **dict.fromkeys(
        ("wandb.Audio", "wandb.Video", "wandb.Object3D", "wandb.Molecule", "wandb.Plotly"),
        MediaStore._file,
    ),
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


def _as_table(columns: list[object], rows: list[list[object]]) -> dict[str, Json]:
    return {
        "media": "table",
        "columns": [str(name) for name in columns],
        "rows": [metric_to_json(list(row)) for row in rows],
    }


def _as_file(array: Any) -> bytes:
    import numpy

    data = io.BytesIO()
    numpy.save(data, array, allow_pickle=False)
    return data.getvalue()


def _numbers(values: Any) -> list[Json]:
    return [float(value) for value in values]
