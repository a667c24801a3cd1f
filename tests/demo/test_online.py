"""The demo with `--online`: W&B's own client against a server that speaks its protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wandb_server.control import WandbServer
from tests.wandb_server.fixtures import wandb_server  # noqa: F401 - a fixture
from tests.wandb_server.service import DEFAULT_KEY

from .reading import run_demo

pytestmark = pytest.mark.xdist_group("demo-grpo")


def test_online_brings_every_row_to_the_server_and_no_key_to_disk(
    tmp_path: Path,
    wandb_server: WandbServer,  # noqa: F811
) -> None:
    """The server ends with each row of each process, and the key is in no file of the run."""
    place = tmp_path / "job"
    place.mkdir()
    server = {"WANDB_API_KEY": DEFAULT_KEY, "WANDB_BASE_URL": wandb_server.url}
    run = run_demo(
        place, "grpo", "--online", "--rollouts", "3", "--trackers", "wandb", variables=server
    )
    logged = {f"{row.journal}:{row.seq}" for row in run.rows}
    assert {row["_row"] for row in wandb_server.rows(run.facts.run_id)} == logged
    assert len(wandb_server.rows(run.facts.run_id)) == len(logged)
    assert not [
        path
        for path in place.rglob("*")
        if path.is_file() and DEFAULT_KEY.encode() in path.read_bytes()
    ]
