"""Role files that have been read, by the namespace that they were read for.

Policy: the text is read once for a namespace object and path in a process, and forgotten with the
namespace. Nothing is added to the namespace. A namespace that cannot be referenced weakly has its
file read each time.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_logging.roles.role_file import Document, read_document


@dataclass(slots=True)
class _Shelf:
    """What is kept for one namespace, by absolute path: documents, said warnings, and what
    command lines gave.
    """

    owner: weakref.ref[object]
    documents: dict[str, Document] = field(default_factory=dict)
    warned: set[tuple[str, str]] = field(default_factory=set)
    parses: dict[str, dict[Any, Any]] = field(default_factory=dict)


class Documents:
    """A registry of role files; thread-safe."""

    def __init__(self) -> None:
        self._shelves: dict[int, _Shelf] = {}
        self._lock = threading.RLock()

    def document(self, owner: object, path: str) -> Document:
        """The file as it was when it was first read for `owner`.

        Raises:
            Unreadable: The file cannot be read or is no YAML; it is then not kept.
        """
        with self._lock:
            shelf = self._shelf(owner)
            if shelf is None:
                return read_document(path)
            key = str(Path(path).absolute())
            if key not in shelf.documents:
                shelf.documents[key] = read_document(path)
            return shelf.documents[key]

    def forget(self, owner: object, path: str) -> None:
        """Read the file again next time, because it has mistakes that may be mended."""
        with self._lock:
            shelf = self._shelf(owner)
            if shelf is not None:
                shelf.documents.pop(str(Path(path).absolute()), None)

    def parses(self, owner: object, path: str) -> dict[Any, Any]:
        """Where to keep what command lines gave for this namespace and file."""
        with self._lock:
            shelf = self._shelf(owner)
            return {} if shelf is None else shelf.parses.setdefault(path, {})

    def unsaid(self, owner: object, path: str | None, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the warnings that were not given out for this namespace and file yet; they count
        as said now.
        """
        with self._lock:
            shelf = self._shelf(owner)
            if shelf is None:
                return texts
            key = "" if path is None else str(Path(path).absolute())
            new = tuple(text for text in texts if (key, text) not in shelf.warned)
            shelf.warned.update((key, text) for text in new)
            return new

    def _shelf(self, owner: object) -> _Shelf | None:
        number = id(owner)
        shelf = self._shelves.get(number)
        if shelf is not None and shelf.owner() is owner:
            return shelf
        try:
            reference = weakref.ref(owner, lambda gone: self._drop(number, gone))
        except TypeError:
            return None
        shelf = self._shelves[number] = _Shelf(reference)
        return shelf

    def _drop(self, number: int, gone: weakref.ref[object]) -> None:
        with self._lock:
            shelf = self._shelves.get(number)
            if shelf is not None and shelf.owner is gone:
                del self._shelves[number]
