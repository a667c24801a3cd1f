"""The files in configs/: every role file is right, and the example job does what it says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import slime_logging
from slime_logging.demo.namespace import ppo_namespace

from .reading import environment, read_run

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("*.yaml")))
def test_every_role_file_resolves_for_every_role(name: str) -> None:
    """None has a mistake, against the full-size namespace."""
    args = ppo_namespace()
    for role in ("actor", "critic"):
        assert (
            slime_logging.parse_megatron_role_args(args, str(CONFIGS / name), role).seed
            == args.seed
        )


def test_the_example_job_tracks_both_roles_in_one_run(tmp_path: Path) -> None:
    """Rows of both roles, and the configuration that each used."""
    command = [
        sys.executable,
        str(CONFIGS / "own_job.py"),
        "--megatron-config-path",
        str(CONFIGS / "own_roles.yaml"),
    ]
    done = subprocess.run(
        [*command, "--tracking-dir", str(tmp_path), "--use-trackio", "--num-steps", "5"],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path)
    assert Counter(row.role for row in run.job_rows) == {"actor": 5, "critic": 5}
    assert (run.config.values["lr"], run.config.values["critic/lr"]) == (1e-6, 5e-6)
