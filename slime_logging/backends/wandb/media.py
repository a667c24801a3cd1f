"""Media of a row (images, lists of them, histograms, tables, pages, sound, films) as W&B's own
objects, beside their plain form.

Policy: the plain form (`<key>.media`, `<key>.file`, ...) is what is compared when the run is read
back; the object under `media/<key>` is for W&B's page. A file is taken only from the run's own
`media` folder. What cannot be made into an object stays plain.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from slime_logging.backends.storable import digest
from slime_logging.values import samples
from slime_logging.values.media import media_file
from slime_logging.values.samples import as_table, read_samples

logger = logging.getLogger("slime_logging")

KIND_SUFFIX = ".media"
OBJECT_PREFIX = "media/"
_TYPE_SUFFIX = "._type"


def media_objects(row: Mapping[str, Any], keys: set[str], directory: Path) -> dict[str, Any]:
    """W&B's objects for the media of a history row.

    Args:
        row: the row in W&B's form: nested mappings are flattened with dots.
        keys: the keys of this row that hold a kind of media, `<key>.media`.
        directory: the run's, which holds the files.
    """
    objects: dict[str, Any] = {}
    for kind_key in keys:
        name = kind_key.removesuffix(KIND_SUFFIX)
        make = _MAKERS.get(row[kind_key]) if isinstance(row[kind_key], str) else None
        if make is None:
            continue
        try:
            objects[OBJECT_PREFIX + name] = make(row, name, directory)
        except Exception as error:  # a file that is gone, or a foreign form
            logger.debug("slime_logging: %s: %s: %s", name, type(error).__name__, error)
    for name, value in row.items():
        if type(value) is list and value and all(map(_is_image, value)):
            with suppress(OSError, ValueError):
                objects[OBJECT_PREFIX + name] = [_image_of(form, directory) for form in value]
    return objects


def without_objects(held: Mapping[str, Any]) -> Mapping[str, Any]:
    """A history row read back from W&B, nested or flattened with dots, without its media
    objects.
    """
    names = {
        key.removesuffix(_TYPE_SUFFIX)
        for key in held
        if key.startswith(OBJECT_PREFIX) and key.endswith(_TYPE_SUFFIX)
    }
    names |= {
        key
        for key, value in held.items()
        if key.startswith(OBJECT_PREFIX) and isinstance(value, Mapping) and "_type" in value
    }
    if not names:
        return held
    parts = tuple(f"{name}." for name in names)
    return {
        key: value for key, value in held.items() if key not in names and not key.startswith(parts)
    }


def held_objects(held: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The media objects in a history row read back from W&B, nested or flattened with dots, by
    their names.
    """
    found: dict[str, dict[str, Any]] = {}
    for key, value in held.items():
        if not key.startswith(OBJECT_PREFIX):
            continue
        if isinstance(value, Mapping) and "_type" in value:
            found[key] = dict(value)
        elif key.endswith(_TYPE_SUFFIX):
            name = key.removesuffix(_TYPE_SUFFIX)
            size = len(name) + 1
            found[name] = {k[size:]: v for k, v in held.items() if k.startswith(f"{name}.")}
    return found


def expected_mark(row: Mapping[str, Any], name: str, directory: Path) -> str | None:
    """What tells the object of a metric from any other: the digest of an image's file, or of a
    table's columns and cells; None for what W&B makes of the row itself.

    Raises:
        OSError, ValueError: there is no such file.
    """
    form, kind = _form(row, name), row[f"{name}{KIND_SUFFIX}"]
    if kind == samples.KIND:
        columns, data = as_table(read_samples(directory, str(form["file"])))
        return digest([[*columns], [*data]])
    if kind == "image":
        return hashlib.sha256(media_file(directory, form).read_bytes()).hexdigest()
    return None


def held_mark(held: Mapping[str, Any], roots: Sequence[Path]) -> str | None:
    """The same of an object of a run whose files lie below one of `roots`; None where its file is
    not there.
    """
    if held.get("_type") == "image-file":
        return str(held.get("sha256"))
    for path in (root / str(held.get("path")) for root in roots):
        with suppress(OSError, ValueError, KeyError):
            table = json.loads(path.read_text(encoding="utf-8"))
            return digest([table["columns"], table["data"]])
    return None


def _is_image(form: Any) -> bool:
    return isinstance(form, dict) and form.get("media") == "image"


def _image_of(form: Mapping[str, Any], directory: Path) -> Any:
    import wandb

    caption = form.get("caption")
    file = str(media_file(directory, form))
    return wandb.Image(file, caption=None if caption is None else str(caption))


def _form(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: row.get(f"{name}.{key}") for key in ("file", "caption")}


def _image(row: Mapping[str, Any], name: str, directory: Path) -> Any:
    return _image_of(_form(row, name), directory)


def _html(row: Mapping[str, Any], name: str, directory: Path) -> Any:
    import wandb

    text = media_file(directory, _form(row, name)).read_text("utf-8", "replace")
    return wandb.Html(text, inject=False)


def _file(row: Mapping[str, Any], name: str, directory: Path) -> Any:
    import wandb

    form = _form(row, name)
    file, caption = str(media_file(directory, form)), form["caption"]
    kind = row[f"{name}{KIND_SUFFIX}"]
    if kind == "audio":
        return wandb.Audio(file, caption=caption)
    return wandb.Video(file, caption=caption) if kind == "video" else wandb.Object3D(file)


def _histogram(row: Mapping[str, Any], name: str, directory: Path) -> Any:  # noqa: ARG001 - one signature for all
    import wandb

    return wandb.Histogram(np_histogram=(list(row[f"{name}.counts"]), list(row[f"{name}.edges"])))


def _table(row: Mapping[str, Any], name: str, directory: Path) -> Any:  # noqa: ARG001 - one signature for all
    import wandb

    return wandb.Table(
        columns=list(row[f"{name}.columns"]), data=[list(line) for line in row[f"{name}.rows"]]
    )


def _samples(row: Mapping[str, Any], name: str, directory: Path) -> Any:
    import wandb

    columns, data = as_table(read_samples(directory, str(row[f"{name}.file"])))
    return wandb.Table(columns=columns, data=data, allow_mixed_types=True)


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], str, Path], Any]] = {
    "image": _image,
    "html": _html,
    **dict.fromkeys(("audio", "video", "object3d"), _file),
    "histogram": _histogram,
    "table": _table,
    samples.KIND: _samples,
}
