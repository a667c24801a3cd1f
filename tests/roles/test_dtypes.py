"""Names of dtypes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from slime_logging.roles.dtypes import dtype_named, is_dtype, same_dtype


@pytest.mark.parametrize("name", ["bf16", "bfloat16", "torch.bfloat16"])
def test_the_names_of_a_dtype(name: str) -> None:
    """Short, long and as torch prints it."""
    assert dtype_named(name) is torch.bfloat16
    assert same_dtype(name, "bf16")


@pytest.mark.parametrize("name", ["bf17", "Tensor", "torch", "", "nn"])
def test_what_is_no_dtype(name: str) -> None:
    """Other attributes of torch are not taken for dtypes."""
    assert dtype_named(name) is None


def test_a_dtype_is_known_without_importing_torch() -> None:
    """Looking at values loads nothing."""
    code = "import sys\nfrom slime_logging.roles.dtypes import is_dtype\nis_dtype(1)\nsys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert is_dtype(torch.float32)
