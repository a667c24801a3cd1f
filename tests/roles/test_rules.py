"""Which arguments may differ between roles."""

from __future__ import annotations

import pytest

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.rules import (
    FORCED,
    PRESET,
    REJECTED,
    TOPOLOGY,
    rejection,
    topology_differences,
)

KNOWN = frozenset(vars(ppo_namespace())) | frozenset(OptionTable.shipped())


def test_roles_are_compared_with_each_other() -> None:
    """Topology that differs between resolved roles is found, whatever the base says."""
    roles = {
        "actor": {"tensor_model_parallel_size": 4},
        "critic": {"tensor_model_parallel_size": 2},
    }
    assert topology_differences(roles) == {"tensor_model_parallel_size": {"actor": 4, "critic": 2}}


def test_equal_topology_is_no_difference() -> None:
    """Roles with one topology, or a single role, have none."""
    assert (
        topology_differences(
            {"actor": {"sequence_parallel": True}, "critic": {"sequence_parallel": True}}
        )
        == {}
    )
    assert topology_differences({"actor": {"sequence_parallel": True}}) == {}


def test_a_role_that_lacks_a_topology_argument_differs() -> None:
    """An argument that only one role has is a difference."""
    assert topology_differences({"actor": {"sequence_parallel": True}, "critic": {}}) != {}


@pytest.mark.parametrize(
    "prefix", ["wandb_", "tb_", "tracking_", "mlflow_", "swanlab_", "trackio_", "sglang_"]
)
def test_tracking_and_engine_options_are_the_jobs(prefix: str) -> None:
    """Options of a tracker or of the rollout engines, also ones that do not exist yet."""
    assert rejection(f"{prefix}something") is not None


def test_training_options_are_a_roles_own() -> None:
    """What a role file is for is not refused."""
    names = [
        "lr",
        "min_lr",
        "save",
        "load",
        "weight_decay",
        "clip_grad",
        "micro_batch_size",
        "eps_clip",
        "value_clip",
    ]
    assert [name for name in names if rejection(name) is not None] == []


def test_the_tables_name_real_arguments() -> None:
    """A misspelt name in a table would never apply."""
    ours = {"use_mlflow", "use_swanlab", "use_trackio"}
    named = {*TOPOLOGY, *REJECTED, *FORCED["critic"], *PRESET["critic"]} - ours
    assert named - KNOWN == set()
