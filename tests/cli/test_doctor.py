"""`slime-logging doctor` with each version of slime that there is: what it says is what that job then does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slime.real import CPU, ONE_LINE, VERSIONS, logging_module, needs_peers, unpack

COMMAND = Path(sys.executable).with_name("slime-logging")


def doctor(folder: Path, environment: dict[str, str], *flags: str) -> tuple[int, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    done = subprocess.run(
        [COMMAND, "doctor", "--", *flags],
        env={**kept, "HOME": str(folder), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@needs_peers
@pytest.mark.parametrize("version", VERSIONS)
def test_it_says_where_the_calls_of_each_version_go(version, tmp_path):
    """Nowhere, by the variable, or by the line; and which calls the line leaves out."""
    slime = unpack(tmp_path, f"slime-{version}")
    module = logging_module(slime)
    environment = {
        "PYTHONPATH": f"{CPU}{os.pathsep}{slime}",
        "SLIME_LOGGING_TRACKERS": "tensorboard",
    }
    code, text = doctor(tmp_path, environment)
    assert code == 1
    assert f"stay in {module}" in text
    (line,) = [line for line in text.splitlines() if "from slime_logging import" in line]
    code, text = doctor(tmp_path, {**environment, "SLIME_LOGGING_PATCH": "1"})
    assert (code, "wrong" in text) == (0, False), text
    assert "come here, by SLIME_LOGGING_PATCH" in text
    with module.open("a") as file:
        file.write(f"from {line.rpartition(': from ')[2]}\n")
    code, text = doctor(tmp_path, environment)
    assert (code, "wrong" in text) == (0, False), text
    assert f"by a line in {module}" in text


@needs_peers
def test_a_line_that_leaves_a_call_out_is_told(tmp_path):
    slime = unpack(tmp_path, "slime-v0.3.0")
    with logging_module(slime).open("a") as file:
        file.write(ONE_LINE)
    code, text = doctor(tmp_path, {"PYTHONPATH": str(slime), "SLIME_LOGGING_DIR": "runs"})
    assert code == 1
    assert "update_tracking_open_metrics in" in text


def test_a_job_of_ones_own_needs_no_slime(tmp_path):
    code, text = doctor(tmp_path, {}, "--use-tensorboard", "--lr", "1e-6")
    assert (code, "wrong" in text) == (0, False), text
    assert "none on this Python's path" in text


@pytest.mark.parametrize(
    ("environment", "flags", "told"),
    [
        ({}, (), "nothing is tracked"),
        ({"SLIME_LOGGING_TRACKERS": "trakio"}, (), "no tracker 'trakio'"),
        ({"SLIME_LOGGING_TRACKER": "trackio"}, (), "did you mean SLIME_LOGGING_TRACKERS?"),
        ({}, ("--use-trackio",), "--use-trackio has no effect"),
        ({}, ("--use-wandb", "--wandb-mode", "online"), "no W&B API key was found"),
        ({"SLIME_LOGGING_DIR": f"{COMMAND}/runs"}, (), f"{COMMAND} cannot be written"),
    ],
)
def test_what_is_wrong_is_told_with_its_fix(environment, flags, told, tmp_path):
    code, text = doctor(tmp_path, environment, *flags)
    assert code == 1
    (line,) = [line for line in text.splitlines() if line.startswith("wrong:") and told in line]
    assert len(line) > len(told) + 20


def test_a_key_is_known_and_not_shown(tmp_path):
    key = "0123456789abcdef0123456789abcdef01234567"
    environment = {"WANDB_API_KEY": key, "MLFLOW_TRACKING_URI": "http://me:pass-w0rd@host:1"}
    flags = ("--use-wandb", "--use-mlflow")
    code, text = doctor(tmp_path, {**environment, "SLIME_LOGGING_TRACKERS": "mlflow"}, *flags)
    assert "mode online" in text
    assert key not in text
    assert "pass-w0rd" not in text
    assert code == 1  # --use-mlflow reaches no parser
