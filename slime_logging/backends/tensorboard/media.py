"""Images, histograms and sound of a row as TensorBoard shows them.

Policy: they stand beside the plain form, which is what is compared when a run is read back. What
cannot be shown (a file that is gone, another kind) stays plain.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from slime_logging.backends.storable import clean_text
from slime_logging.values.json_value import Json
from slime_logging.values.media import media_file, media_in

_PNG = b"\x89PNG\r\n\x1a\n"


def media_summaries(metrics: Mapping[str, Json], directory: Path) -> Iterator[Any]:
    """A summary for each piece of media; files are those of the run in `directory`."""
    for name, form in media_in(metrics):
        make = _MAKERS.get(str(form["media"]))
        if make is not None:
            with suppress(OSError, ValueError, TypeError, KeyError):
                yield make(clean_text(name), form, directory)


def _image(tag: str, form: Mapping[str, Json], directory: Path) -> Any:
    from tensorboard.plugins.image import metadata

    data = media_file(directory, form).read_bytes()
    if not data.startswith(_PNG):
        raise ValueError("no PNG")
    width, height = struct.unpack(">II", data[16:24])
    texts = [str(width).encode(), str(height).encode(), data]
    about = metadata.create_summary_metadata("", _caption(form))
    return _summary(tag, about, texts=texts, shape=(3,))


def _histogram(tag: str, form: Mapping[str, Json], directory: Path) -> Any:  # noqa: ARG001 - one signature for all
    from tensorboard.plugins.histogram import metadata

    counts: Any = form["counts"]
    edges: Any = form["edges"]
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    numbers = [float(number) for one in bins for number in one]
    about = metadata.create_summary_metadata("", "")
    return _summary(tag, about, numbers=numbers, shape=(len(counts), 3))


def _audio(tag: str, form: Mapping[str, Json], directory: Path) -> Any:
    from tensorboard.plugins.audio import metadata

    data = media_file(directory, form).read_bytes()
    if not data.startswith(b"RIFF"):
        raise ValueError("no WAV")
    encoding = metadata.Encoding.Value("WAV")
    about = metadata.create_summary_metadata("", "", encoding)
    return _summary(tag, about, texts=[data, _caption(form).encode()], shape=(1, 2))


def _caption(form: Mapping[str, Json]) -> str:
    caption = form.get("caption")
    return clean_text(caption) if isinstance(caption, str) else ""


def _summary(
    tag: str,
    about: Any,
    *,
    shape: tuple[int, ...],
    texts: list[bytes] | None = None,
    numbers: list[float] | None = None,
) -> Any:
    from tensorboard.compat.proto import summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2

    dimensions = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in shape]
    tensor = tensor_pb2.TensorProto(
        dtype=types_pb2.DT_DOUBLE if texts is None else types_pb2.DT_STRING,
        tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dimensions),
        string_val=texts,
        double_val=numbers,
    )
    return summary_pb2.Summary.Value(tag=tag, tensor=tensor, metadata=about)


_MAKERS: Mapping[str, Callable[[str, Mapping[str, Json], Path], Any]] = {
    "image": _image,
    "histogram": _histogram,
    "audio": _audio,
}
