"""Megatron's import in half of the time: without what it wants only for compiled functions and for
W&B, neither of which the demo has Megatron use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def lean_import() -> Iterator[None]:
    """While Megatron is imported: functions stay as they are written, and W&B is not found."""
    import torch

    compiled, torch.compile = torch.compile, _uncompiled
    is_hidden = "wandb" not in sys.modules
    if is_hidden:
        sys.modules["wandb"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile = compiled
        if is_hidden:
            del sys.modules["wandb"]


def _uncompiled(function: Any = None, **_: Any) -> Callable[..., Any]:
    """Stands for `torch.compile`, as function and as decorator with options."""
    return function if function is not None else _uncompiled
