"""Media that a row refers to: images, histograms, audio and the like, by their plain forms.

Policy: the forms are those that `record/media.py` makes. A file lies in the run's own folder or is
not taken: journals may come from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from slime_logging.values.json_value import Json

_FILE = re.compile(r"media/[\w.+-]+")


def media_in(values: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Name and form of each piece of media, `images/0` for the first of a list, at any depth."""
    for name, value in values.items():
        if isinstance(value, dict):
            if isinstance(value.get("media"), str):
                yield name, value
            else:
                yield from ((f"{name}/{key}", form) for key, form in media_in(value))
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            items: dict[str, Json] = {str(number): item for number, item in enumerate(value)}
            yield from ((f"{name}/{key}", form) for key, form in media_in(items))


def media_file(directory: Path, form: Mapping[str, Json]) -> Path:
    """The file of a form, of the run in `directory`.

    Raises:
        ValueError: it is no file of the run's media.
        OSError: it is not there.
    """
    file = form.get("file")
    if not isinstance(file, str) or not _FILE.fullmatch(file):
        raise ValueError(f"{str(file)[:80]!r} is no file of the run's media")
    path = directory / file
    if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        raise FileNotFoundError(file)
    return path
