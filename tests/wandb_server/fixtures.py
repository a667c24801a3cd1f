"""The fixture `wandb_server`: a strict W&B server; the test fails if its client sent what no right client sends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wandb_server.control import WandbServer


@pytest.fixture
def wandb_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    """A running server, and an environment in which nothing of the developer's own W&B is seen."""
    for name in (
        "WANDB_API_KEY",
        "WANDB_BASE_URL",
        "WANDB_MODE",
        "WANDB_ENTITY",
        "WANDB_SERVICE",
        "WANDB_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    server = WandbServer(tmp_path / "wandb-server").start()
    yield server
    server.stop()
    assert server.problems == []
