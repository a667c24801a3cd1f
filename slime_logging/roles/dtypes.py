"""Names of torch's dtypes in role files.

Policy: torch is imported only where a dtype is asked for by name; recognising one never imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CANONICAL: Mapping[str, str] = {
    "fp64": "float64",
    "double": "float64",
    "fp32": "float32",
    "float": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "fp8": "uint8",
}
"""Short names -> torch's names. Megatron-LM keeps fp8 optimizer moments as uint8."""


def is_dtype(value: Any) -> bool:
    """Whether a value is a `torch.dtype`."""
    return type(value).__name__ == "dtype" and type(value).__module__ == "torch"


def canonical(name: str) -> str:
    """torch's own name for a dtype's name: `bf16`, `torch.bfloat16` -> `bfloat16`."""
    plain = name.removeprefix("torch.")
    return CANONICAL.get(plain, plain)


def same_dtype(left: str, right: str) -> bool:
    """Whether two names mean one dtype."""
    return canonical(left) == canonical(right)


def dtype_named(name: str) -> Any:
    """The `torch.dtype` of this name, or None where there is none."""
    import torch

    found = getattr(torch, canonical(name), None)
    return found if is_dtype(found) else None
