"""The writing end of samples: whole texts, redacted, in a file beside the journal.

Policy: a text is kept whole up to `MAX_TEXT_BYTES`; a longer one says how long it was. What is
returned is on its way to the disk like a journal's line: it survives the death of the process.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from slime_logging.redaction.redact import Redactor
from slime_logging.values.json_value import Json
from slime_logging.values.metric import metric_to_json
from slime_logging.values.samples import KIND

MAX_TEXT_BYTES = 1 << 20
_PLAIN = frozenset({float, int, bool, type(None)})


class SampleStore:
    """Writes tables of samples to `directory / "media"`.

    Args:
        directory: the run's.
        stem: the start of the files' names, unique in the run (the journal's name).
        redactor: hides the secrets in texts and column names.
    """

    def __init__(self, directory: Path, stem: str, redactor: Redactor) -> None:
        self._folder = directory / "media"
        self._stem = stem
        self._redactor = redactor
        self._numbers = itertools.count()

    def write(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
        """Write one file, and return the value that refers to it.

        Raises:
            OSError: it could not be written whole; nothing refers to what is there of it.
        """
        read: list[Json] = [
            {str(name): _cell(value) for name, value in sample.items()} for sample in samples
        ]
        plain: Any = self._redactor.row({"samples": read})["samples"]
        lines = b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in plain)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{self._stem}-samples-{next(self._numbers)}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(self._folder / name, flags, 0o600), "wb", buffering=0) as file:
            view = memoryview(lines)
            while view:
                view = view[file.write(view) :]
        return {
            "media": KIND,
            "file": f"media/{name}",
            "num_samples": len(plain),
            "columns": list(dict.fromkeys(column for one in plain for column in one)),
        }


def _cell(value: object) -> Json:
    if isinstance(value, str):
        return _whole_text(value)
    plain: Json = value if type(value) in _PLAIN else metric_to_json(value)  # type: ignore[assignment]
    if isinstance(plain, (int, float)) and not isinstance(plain, bool):
        is_kept = plain - plain == 0 and abs(plain) < 2**63
        return plain if is_kept else str(plain)
    return plain


def by_step(
    samples: Sequence[Mapping[str, Any]], step_key: str
) -> Iterator[tuple[Any, list[Mapping[str, Any]]]]:
    """The samples of each step, without the step key; one without it belongs to the step before.

    Raises:
        KeyError: the first one has no step key: the caller's mistake.
    """
    if samples and step_key not in samples[0]:
        raise KeyError(
            f"the first sample has no step key {step_key!r}; it has: "
            f"{', '.join(map(str, samples[0]))[:500]}"
        )
    steps: dict[Any, list[Mapping[str, Any]]] = {}
    step: Any = None
    for sample in samples:
        step = sample.get(step_key, step)
        own = {name: value for name, value in sample.items() if name != step_key}
        steps.setdefault(_plain_step(step), []).append(own)
    yield from steps.items()


def _plain_step(step: Any) -> Any:
    """The step as something that can be a key of a dict: a tensor of one number is that number."""
    return step if type(step) in (int, float) else metric_to_json(step)


def _whole_text(text: str) -> str:
    """The text as a plain `str` that UTF-8 can hold, cut with a mark beyond `MAX_TEXT_BYTES`."""
    if type(text) is not str:
        text = str.__getitem__(text, slice(None))
    if len(text) * 4 <= MAX_TEXT_BYTES and text.isascii():
        return text
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= MAX_TEXT_BYTES:
        return data.decode()
    head = data[:MAX_TEXT_BYTES].decode(errors="ignore")
    return f"{head}... <shortened: {len(text)} characters>"
