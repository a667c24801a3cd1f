"""A forked process that can change nothing of its parent's: no file, no output, no log, no device.

Policy: only for a child that ends by `os._exit`. Memory is a copy already; here go the ways out of
the process. Output goes nowhere, loggers lose their handlers, and a change of a file is not carried
out (it seems to succeed), except in the caches of models' code. A GPU cannot be asked in a forked
process, so the parent's answers are given again.
"""

from __future__ import annotations

import builtins
import gc
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CHANGES = ("chmod", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate")
"""Functions of `os`, and audit events, that change files by name."""

ALSO = (
    "chown",
    "lchown",
    "mkfifo",
    "mknod",
    "removexattr",
    "replace",
    "setxattr",
    "unlink",
    "utime",
)
"""More such functions, whose events have other names or none."""

EVENTS = frozenset(f"os.{name}" for name in (*CHANGES, "chown", "utime"))

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CACHES = ("HF_HOME", "HF_HUB_CACHE", "HF_MODULES_CACHE", "TRANSFORMERS_CACHE", "MODELSCOPE_CACHE")
"""Variables that name folders which any parse fills, and finds filled."""


def gpu_answers() -> Mapping[str, Any]:
    """What torch says of the GPUs, by the name of its function, where it has been asked before;
    for `isolate`.
    """
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return {}
        cuda = torch.cuda
        current = cuda.current_device()
        found = [cuda.get_device_properties(index) for index in range(cuda.device_count())]
    except Exception:  # a driver may raise anything; then the child asks for itself
        return {}

    def properties(device: Any = None) -> Any:
        index = getattr(device, "index", device)
        text = str(index).rpartition(":")[2]
        return found[int(text) if text.isdigit() else current]

    def capability(device: Any = None) -> tuple[int, int]:
        one = properties(device)
        return one.major, one.minor

    return {
        "current_device": lambda: current,
        "device_count": lambda: len(found),
        "get_device_capability": capability,
        "get_device_name": lambda device=None: properties(device).name,
        "get_device_properties": properties,
        "is_available": lambda: True,
    }


class KeptStream(io.TextIOWrapper):
    """An output stream that can do what a real one can; what is written to it is kept."""

    def __init__(self, descriptor: int) -> None:
        self._kept = io.BytesIO()
        super().__init__(self._kept, "utf-8", "replace", write_through=True)
        self._descriptor = descriptor

    def fileno(self) -> int:
        """A descriptor that leads nowhere."""
        return self._descriptor

    def text(self) -> str:
        """All that was written."""
        return self._kept.getvalue().decode("utf-8", "replace")


def isolate(gpu: Mapping[str, Any]) -> None:
    """Close the ways out of this process; there is no way back."""
    gc.disable()  # finalizers of the job's objects are the job's
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.stdout, sys.stderr = KeptStream(1), KeptStream(2)
    warnings.simplefilter("ignore")
    for name in (None, *logging.root.manager.loggerDict):
        logging.getLogger(name).handlers.clear()
    for name, answer in gpu.items():
        setattr(sys.modules["torch"].cuda, name, answer)
    _keep_files()


def _keep_files() -> None:
    sys.dont_write_bytecode = True
    kept = _cache_folders()
    for name in (*CHANGES, *ALSO):
        if hasattr(os, name):
            setattr(os, name, _unless_cached(getattr(os, name), kept))
    opened, opened_low = builtins.open, os.open

    def open_high(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if set(mode) & set("wax+") and not isinstance(file, int) and not _is_in(file, kept):
            return opened(os.devnull, mode.replace("x", "w"), *rest, **more)
        return opened(file, mode, *rest, **more)

    def open_low(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & WRITING and not _is_in(path, kept):
            return opened_low(os.devnull, flags & ~(os.O_CREAT | os.O_EXCL))
        return opened_low(path, flags, *rest, **more)

    builtins.open = io.open = open_high
    os.open = open_low

    def refuse(event: str, found: tuple[Any, ...]) -> None:
        if event == "open":
            is_change = found[2] & WRITING and found[0] != os.devnull
        else:
            is_change = event in EVENTS
        if is_change and not _is_in(found[0], kept):
            raise PermissionError(f"{event}: a trial of a command line changes no file")

    sys.addaudithook(refuse)


def _unless_cached(change: Callable[..., Any], kept: tuple[Path, ...]) -> Callable[..., Any]:
    def changed(path: Any, *rest: Any, **more: Any) -> Any:
        return change(path, *rest, **more) if _is_in(path, kept) else None

    return changed


def _cache_folders() -> tuple[Path, ...]:
    named = [Path(os.environ[name]) for name in CACHES if os.environ.get(name)]
    return tuple(
        folder.absolute() for folder in (*named, Path("~/.cache/huggingface").expanduser())
    )


def _is_in(path: Any, folders: tuple[Path, ...]) -> bool:
    try:
        at = Path(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100  nothing is resolved
    except (TypeError, ValueError):
        return False
    return any(at == folder or folder in at.parents for folder in folders)
