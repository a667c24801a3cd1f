"""The GRPO demo: one role, and no trace of a critic in anything that is logged."""

from __future__ import annotations

from pathlib import Path

import pytest

from .reading import Run, run_demo

pytestmark = pytest.mark.xdist_group("demo-grpo")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four rollouts on two tensor-parallel ranks, journals only."""
    return run_demo(
        tmp_path_factory.mktemp("grpo"),
        "grpo",
        "--rollouts",
        "4",
        "--tp",
        "2",
        "--trackers",
        "none",
    )


def test_no_configuration_key_is_a_critics(run: Run) -> None:
    """Nothing under `critic/`, nothing under `overrides/critic/`."""
    assert not [key for key in run.config.values if key.startswith(("critic/", "overrides/critic"))]


def test_no_metric_is_a_critics(run: Run) -> None:
    """Nothing called `train/critic-...`."""
    assert not [key for row in run.rows for key in row.metrics if "critic" in key]


def test_the_actor_is_the_only_role(run: Run) -> None:
    """It learns from the first rollout on."""
    assert run.facts.roles == ("actor",)
    assert [row.step for row in run.rows_of("actor") if row.step_key == "train/step"] == list(
        range(8)
    )


def test_only_the_main_rank_logs(run: Run) -> None:
    """Of two tensor-parallel ranks one has a journal."""
    actors = list(Path(run.directory.journals).glob("actor-*"))
    assert len(actors) == 1
    assert (run.config.values["tensor_model_parallel_size"], run.config.values["world_size"]) == (
        2,
        2,
    )
