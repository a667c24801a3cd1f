"""The demo command's own words: its help, and its mistakes before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slime_logging.cli.app import app

INTERRUPTED = """
import os, signal
from slime_logging.cli.interrupts import noted_interrupts

noted = noted_interrupts()
within = globals() | {"__name__": "torch.storage"}
exec("os.kill(os.getpid(), signal.SIGINT); print('not within torch')", within)
try:
    while True:
        pass
except KeyboardInterrupt:
    print("right afterwards", noted[0] == signal.SIGINT)
"""
WITHOUT_TORCH = """
import importlib.machinery, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "megatron"):
            return None
        return importlib.machinery.PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, Finder]
from slime_logging.cli import main
main()
"""
"""A program that finds every installed package but torch and megatron-core."""


def invoke(*arguments: str) -> tuple[int, str]:
    """The exit code and everything that was printed, without line breaks of the terminal's making."""
    result = CliRunner().invoke(
        app, ["demo", *arguments], env={"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}
    )
    return result.exit_code, " ".join(result.output.split())


def test_help_says_what_each_demo_shows_and_where_to_begin() -> None:
    """A newcomer learns what there is, what it needs, and the first command."""
    code, text = invoke("--help")
    assert code == 0
    for words in (
        "actor and critic",
        "no critic/ key",
        "independent steps",
        "pip install '.[demo]'",
        "demo ppo",
    ):
        assert words in text


@pytest.mark.parametrize("demo", ["ppo", "grpo"])
def test_help_of_a_training_demo_explains_every_option(demo: str) -> None:
    """Rollouts, ranks, trackers, directory, role file, online, seed."""
    _, text = invoke(demo, "--help")
    for option in (
        "--rollouts",
        "--tp",
        "--trackers",
        "--tracking-dir",
        "--role-file",
        "--online",
        "--seed",
    ):
        assert option in text


def test_an_unknown_tracker_is_refused_with_the_known_ones() -> None:
    """Before anything is loaded."""
    code, text = invoke("ppo", "--trackers", "wandb,aim")
    assert code == 2
    assert "aim: choose of wandb, trackio, tensorboard, mlflow, swanlab, or none" in text


def test_online_without_a_key_is_refused_with_the_fix() -> None:
    """It names the variable."""
    code, text = invoke("ppo", "--online")
    assert code == 2
    assert "WANDB_API_KEY" in text


def test_more_than_two_ranks_are_refused() -> None:
    """Two tensor-parallel ranks a role are the most."""
    assert invoke("ppo", "--tp", "3")[0] == 2


def test_without_torch_the_message_names_the_extra(tmp_path: Path) -> None:
    """Exit code 2 and the command that installs what is missing, no traceback."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "demo", "ppo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "needs torch and megatron-core" in done.stderr
    assert "pip install '.[demo]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistake_in_a_role_file_ends_with_its_message(tmp_path: Path) -> None:
    """The role file's error is shown as it is, with exit code 1."""
    roles = tmp_path / "roles.yaml"
    roles.write_text(
        "megatron:\n  - name: x\n    role: critic\n    overrides:\n      learning_rate: 1e-3\n"
    )
    code, text = invoke(
        "ppo",
        "--role-file",
        str(roles),
        "--rollouts",
        "1",
        "--trackers",
        "none",
        "--tracking-dir",
        str(tmp_path),
    )
    assert code == 1
    assert "learning_rate" in text
    assert "RoleConfigError" in text


def test_ctrl_c_while_torch_is_loaded_is_raised_afterwards() -> None:
    """Raised within, it aborts the process: torch's native code cannot bear it."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["not within torch", "right afterwards True"], done.stderr
