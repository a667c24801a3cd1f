"""Texts of a mebi-character and structures of four mebibytes are whole at W&B, through its real client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import slime_logging as sl
from slime_logging.cli.app import app
from tests.test_tracking import job
from tests.wandb_server import WandbServer

NUMBERS = [number * 1.25 for number in range(400_000)]
ROWS: dict[str, Any] = {
    "chinese": {"a": "密" * (1 << 20), "b": 0.5},
    "pairs of surrogates": {"a": "😀" * (1 << 20), "b": 0.5},
    "numbers": {"a": NUMBERS, "b": 0.5},
    "nested": {"a": {"inner": [{"text": "x" * 65_000, "n": n} for n in range(60)]}, "b": 0.5},
    "many": {**{f"t{n}": "y" * (1 << 20) for n in range(5)}, "b": 0.5},
}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The rows as the server holds them, and what `verify` says of them."""
    root = tmp_path_factory.mktemp("large")
    server = WandbServer(root / "server").start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_API_KEY", server.key)
        patch.setenv("WANDB_BASE_URL", server.url)
        args = job(root, use_memory=False, use_wandb=True, wandb_host=server.url, use_critic=False)
        args.tracking_finish_timeout = 90
        sl.init_tracking(args)
        for step, row in enumerate(ROWS.values()):
            sl.log(
                args,
                {f"rollout/{key}": value for key, value in row.items()} | {"rollout/step": step},
                "rollout/step",
            )
        sl.finish_tracking(args)
        run = Path(args.tracking_run_dir)
        result = CliRunner().invoke(app, ["verify", str(run), "-o", f"wandb_host={server.url}"])
        yield server.rows(run.name), result
    server.stop()


@pytest.mark.parametrize("kind", ROWS)
def test_it_is_whole(held: Any, kind: str) -> None:
    step = list(ROWS).index(kind)
    found: dict[str, Any] = {}
    for row in held[0]:
        if row.get("rollout/step") == step:
            found.update(row)
    expected = {f"rollout/{key}": value for key, value in ROWS[kind].items()}
    if kind == "nested":
        expected = {"rollout/a.inner": expected["rollout/a"]["inner"], "rollout/b": 0.5}
    wrong = [key for key, value in expected.items() if found.get(key) != value]
    assert wrong == [], json.dumps({key: str(found.get(key))[-80:] for key in wrong})


def test_verify_finds_them_equal(held: Any) -> None:
    assert held[1].exit_code == 0, held[1].output
