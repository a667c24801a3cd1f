"""`slime-logging diff`: what a run logged of its roles."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slime_logging
from slime_logging.cli.app import app


@pytest.fixture
def run(tmp_path: Path) -> str:
    roles = tmp_path / "roles.yaml"
    roles.write_text("megatron:\n  - role: critic\n    overrides: {lr: 1e-5}\n")
    args = Namespace(
        lr=1e-6,
        kl_coef=0.1,
        use_critic=True,
        megatron_config_path=str(roles),
        same=1,
        api_key="s3cr3t",
    )
    args.tracking_dir = str(tmp_path / "tracking")
    slime_logging.init_tracking(args)
    slime_logging.finish_tracking(args)
    [found] = [path.parent for path in (tmp_path / "tracking").rglob("run.json")]
    return str(found)


def test_the_roles_of_a_run(run: str) -> None:
    """A line for each key that differs, with the base and the reason."""
    result = CliRunner().invoke(app, ["diff", run], env={"COLUMNS": "160", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines() if line.strip()]
    assert ["lr", "1e-06", "1e-06", "1e-05"] in rows
    assert not [row for row in rows if row[0] in ("same", "api_key")]


def test_for_programs(run: str) -> None:
    """The same as JSON."""
    result = CliRunner().invoke(app, ["diff", run, "--json"])
    found = {item["argument"]: item for item in json.loads(result.output)}
    assert found["lr"]["roles"] == {"actor": 1e-6, "critic": 1e-5}
    assert found["kl_coef"]["sources"] == {"critic": "forced"}


@pytest.mark.parametrize("role", ["trainer", None])
def test_a_run_with_nothing_to_compare_says_so(tmp_path: Path, role: str | None) -> None:
    with slime_logging.join(config={"lr": 1.0}, role=role, id="job", directory=tmp_path):
        pass
    result = CliRunner().invoke(app, ["diff", str(tmp_path / "job")], env={"COLUMNS": "120"})
    assert (result.exit_code, result.output) == (
        0,
        "job has one configuration, no roles that differ. Compare it: slime-logging diff job RUN\n",
    )
