"""What a value is for."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
import torch

from slime_logging.roles.coerce import coerce
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.nodes import Scalar
from slime_logging.roles.targets import Mistake, Target, as_yaml


@pytest.mark.parametrize(
    ("name", "base", "kind"),
    [
        ("lr", 1, "float"),  # the option goes before the value
        ("params_dtype", torch.bfloat16, "dtype"),
        ("exp_avg_dtype", torch.float32, "dtype"),  # and a dtype before the option
        ("exit_signal", signal.SIGTERM, "enum"),
        ("mine", True, "bool"),
        ("mine", 1, "int"),
        ("mine", 1.0, "float"),
        ("mine", "a", "str"),
        ("mine", {}, "json"),
        ("mine", None, "any"),
    ],
)
def test_the_kind_of_a_value(name: str, base: Any, kind: str) -> None:
    """Option first, except for values that no option can name; then the current value."""
    assert Target(name=name, option=OptionTable.shipped().get(name), base=base).kind == kind


def test_a_value_that_yaml_cannot_write_is_refused() -> None:
    """A lock stays what it is."""
    with pytest.raises(Mistake, match="holds a lock, which YAML cannot write"):
        coerce(Target(name="mine", option=None, base=threading.Lock()), Scalar("1", True, 1, 1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        (1e-6, "1e-06"),
        ([1, "a"], "[1, a]"),
        (signal.SIGINT, "SIGINT"),
        ("no", "no"),
    ],
)
def test_values_as_a_role_file_writes_them(value: Any, text: str) -> None:
    """For messages and tables."""
    assert as_yaml(value) == text


def test_an_example_is_of_the_options_kind() -> None:
    """From the current value, the default, or the kind."""
    table = OptionTable.shipped()
    assert Target(name="lr", option=table["lr"], base=3e-6).example == "`lr: 3e-06`"
    assert Target(name="lr", option=table["lr"], base=None).example == "`lr: 1e-06`"
    assert (
        Target(name="iterations_to_skip", option=table["iterations_to_skip"], base=[]).example
        == "`iterations_to_skip: [8]`"
    )
