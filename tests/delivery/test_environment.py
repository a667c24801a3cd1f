"""Every process that delivers has only the environment that it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from slime_logging.backends.table import common_environment, tracker_environment

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="reads /proc/PID/environ"
)

JOB = """
    import sys
    from argparse import Namespace
    import slime_logging as sl
    args = Namespace(use_wandb=True, wandb_mode="offline", use_tensorboard=True, use_trackio=True, use_swanlab=True,
                     swanlab_mode="local", tracking_dir=sys.argv[1])
    with sl.tracked(args):
        sl.log(args, {"train/step": 1, "train/x": 0.5}, "train/step")
        print("logged", flush=True)
        sys.stdin.read()
"""
NOT_THEIRS = {
    "DB_PASSWORD": "a",
    "OPENAI_API_KEY": "b",
    "MLFLOW_TRACKING_TOKEN": "c",
    "HF_TOKEN": "d",
}
THEIRS = {"WANDB_ERROR_REPORTING", "WANDB_HTTP_TIMEOUT"}
"""In the service that W&B's client starts; the other clients start no process."""
OWN = {"WANDB_HTTP_TIMEOUT": "30", "SWANLAB_DESCRIPTION": "s", "TRACKIO_SPACE_ID": "t"}


def environments(marker: str) -> Iterator[dict[str, str]]:
    """Of every process of this job but the job itself."""
    for folder in Path("/proc").iterdir():
        try:
            data = (folder / "environ").read_bytes().decode()
        except OSError:
            continue
        found = dict(pair.partition("=")[::2] for pair in data.split("\0"))
        if found.get("LC_MARKER") == marker and "THE_JOB" not in found:
            yield found


def test_no_process_of_ours_has_what_another_trackers_client_needs(tmp_path: Path) -> None:
    marker = uuid.uuid4().hex
    env = {
        **os.environ,
        **NOT_THEIRS,
        **OWN,
        "LC_MARKER": marker,
        "THE_JOB": "1",
        "HOME": str(tmp_path),
    }
    job = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(JOB), str(tmp_path / "runs")],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    seen: list[dict[str, str]] = []
    deadline = time.monotonic() + 60
    try:
        assert job.stdout.readline() == "logged\n"
        while time.monotonic() < deadline and not {name for one in seen for name in one} >= THEIRS:
            seen += environments(marker)
            time.sleep(0.1)
    finally:
        job.communicate(timeout=60)
    assert {name for one in seen for name in one} >= THEIRS
    for one in seen:
        assert not NOT_THEIRS.keys() & one.keys()
        assert len(OWN.keys() & one.keys()) <= 1, "each client has its own vendor's variables"


def test_what_any_program_needs_is_common_and_keys_are_not() -> None:
    environ = {
        **NOT_THEIRS,
        **OWN,
        "PATH": "/bin",
        "HTTPS_PROXY": "http://p",
        "PYTHONPATH": "/x",
        "LD_PRELOAD": "y",
    }
    assert common_environment(environ) == {"PATH": "/bin", "HTTPS_PROXY": "http://p"}
    assert tracker_environment("wandb", environ) == {"WANDB_HTTP_TIMEOUT": "30"}
    assert tracker_environment("mlflow", environ) == {"MLFLOW_TRACKING_TOKEN": "c"}
