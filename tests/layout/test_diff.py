"""What differs between roles."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path

from slime_logging.layout.diff import MISSING, role_differences, set_differences
from slime_logging.roles.roles import parse_role_file


def test_only_what_differs_is_listed() -> None:
    """Equal keys are left out; a key that one role lacks is a difference."""
    found = role_differences({"actor": {"lr": 1, "a": 1, "b": 2}, "critic": {"lr": 2, "a": 1}})
    assert [(item.key, item.values) for item in found] == [
        ("b", {"actor": 2, "critic": MISSING}),
        ("lr", {"actor": 1, "critic": 2}),
    ]


def test_a_role_that_differs_from_the_base_is_listed() -> None:
    """Also where the roles agree with each other."""
    [item] = role_differences({"actor": {"lr": 1}, "critic": {"lr": 1}}, {"lr": 2})
    assert (item.base, item.values) == (2, {"actor": 1, "critic": 1})


def test_true_is_not_one_and_nan_is_nan() -> None:
    """What a reader takes for different is different."""
    assert role_differences({"actor": {"x": math.nan}, "critic": {"x": math.nan}}) == []
    assert len(role_differences({"actor": {"x": True}, "critic": {"x": 1}})) == 1


def test_a_role_set_says_why(tmp_path: Path) -> None:
    """Every value of a role has its source."""
    path = tmp_path / "roles.yaml"
    path.write_text("megatron:\n  - role: actor\n    overrides: {lr: 2, eps_clip: 0.1}\n")
    base = Namespace(lr=1.0, eps_clip=0.2, eps_clip_high=0.2, kl_coef=0.5, same=1)
    found = {
        item.key: item for item in set_differences(parse_role_file(base, str(path)), vars(base))
    }
    assert found["lr"].sources == {"actor": "file"}
    assert found["eps_clip_high"].sources == {"actor": "derived"}
    assert found["kl_coef"].sources == {"critic": "forced"}
    assert (found["kl_coef"].base, found["kl_coef"].values) == (0.5, {"actor": 0.5, "critic": 0.0})
    assert "same" not in found
