"""Role files against the command line of real slime and Megatron-LM, by a sample of cases."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PEERS = Path(os.environ.get("PEERS", ROOT / "../shared/peers"))
ORACLE = PEERS.parent / "oracle"


def _cache() -> Path:
    told = subprocess.run([sys.executable, ORACLE / "place.py"], capture_output=True, text=True)
    return Path(told.stdout.strip())


def _is_ready(cache: Path) -> bool:
    """Whether the oracle is set up, with what this version of the project needs."""
    tomllib = pytest.importorskip("tomllib")
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    stamp = hashlib.sha256("".join(f"{one}\n" for one in needed).encode()).hexdigest()
    found = cache / "project.stamp"
    return (cache / "ready").exists() and found.exists() and found.read_text().startswith(stamp)


@pytest.fixture(scope="module")
def oracle() -> list[str]:
    """The command, set up once: it borrows this environment's torch."""
    if not ORACLE.is_dir():
        pytest.skip("../shared/oracle is absent")
    cache = _cache()
    if not _is_ready(cache):
        import torch

        sites = [one.read_text().strip() for one in cache.glob("venv/lib/*/*/zz_oracle_site.pth")]
        if not sites and not (cache / "ready").exists():
            sites = [str(Path(torch.__file__).parents[1])]
        environment = os.environ | {"ORACLE_SITE": "".join(sites)}
        made = subprocess.run(
            ["bash", ORACLE / "setup.sh", ROOT], env=environment, capture_output=True, text=True
        )
        if made.returncode != 0:
            pytest.skip(f"the oracle cannot be set up here: {made.stderr[-300:]}")
    return [sys.executable, str(ORACLE / "oracle.py"), "--project", str(ROOT)]


@pytest.mark.slow
@pytest.mark.xdist_group("oracle")
@pytest.mark.parametrize(
    "more",
    [
        [
            "--bases",
            "ppo_hf",
            "--share",
            "0.002",
            "--seed",
            "11",
            "--pairs",
            "4",
            "--at-least",
            "1",
        ],
        ["--laptop", "--share", "0.004", "--seed", "11", "--pairs", "8", "--at-least", "0.93"],
    ],
    ids=["exact", "tables"],
)
def test_overrides_are_what_the_flags_would_be(more: list[str], oracle: list[str]) -> None:
    """In a job all of them; by the tables at least as many as a sample of this size must have."""
    done = subprocess.run([*oracle, *more], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
