"""A vendor's client for the tests of `vendor_process`: it prints, hangs, dies and fails as asked."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Refused(Exception):
    """What this vendor raises for good, unless told that it passes."""


def _echo(value: Any) -> Any:
    return value


def _environment(name: str) -> str | None:
    return os.environ.get(name)


def _place(module: str) -> str:
    return str(importlib.import_module(module).__file__)


def _chatter() -> str:
    print("* welcome to the fake vendor!", flush=True)
    os.write(1, b"raw noise\n")
    print("and on the other stream", file=sys.stderr, flush=True)
    return sys.stdin.read()


def _hang() -> None:
    time.sleep(3600)


def _die() -> None:
    os._exit(3)


def _fail(is_passing: bool) -> None:
    raise Refused("passing" if is_passing else "for good")


def _count(num: int) -> Iterator[int]:
    yield from range(num)


_mark: list[str] = []


def _mark_when_abandoned(path: str) -> int:
    _mark.append(path)
    return os.getpid()


def abandon() -> None:
    for path in _mark:
        Path(path).write_text("abandoned")


FUNCTIONS = {
    "echo": _echo,
    "environment": _environment,
    "place": _place,
    "chatter": _chatter,
    "hang": _hang,
    "die": _die,
    "fail": _fail,
    "count": _count,
    "mark": _mark_when_abandoned,
}


def is_passing(error: Exception) -> bool:
    return str(error) == "passing"
