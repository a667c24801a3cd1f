"""`slime-logging check`: right and wrong role files, for people and for programs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slime_logging.cli.app import app

RIGHT = "megatron:\n- {role: actor, args: {lr: 2e-6}}\n- {role: critic, overrides: {lr: 1e-5, weight_decay: 0}}\n"
CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
WRONG = "megatron:\n  - role: critic\n    overrides:\n      lr: abc\n      learning_rate: 1\n      wandb_key: s3cr3t\n"


def my_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reward-scale", type=float)
    return parser


def check(*words: str) -> Result:
    return CliRunner().invoke(
        app, ["check", *words], env={"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}
    )


@pytest.fixture
def right(tmp_path: Path) -> str:
    path = tmp_path / "right.yaml"
    path.write_text(RIGHT)
    return str(path)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    return str(path)


def test_a_right_file_ends_with_0_and_shows_what_differs(right: str) -> None:
    """A table: the base, each role, and why; what was derived is said."""
    result = check(right)
    assert result.exit_code == 0
    row = next(line for line in result.output.splitlines() if line.startswith("lr "))
    assert row.split() == ["lr", "1e-06", "2e-06", "1e-05"]
    assert "warning: critic: `end_weight_decay` follows weight_decay: 0.01 -> 0.0" in result.output
    assert "is right" in result.output


def test_a_wrong_file_ends_with_1_and_tells_all_mistakes(wrong: str) -> None:
    """In the words of the exception, secrets hidden."""
    result = check(wrong)
    assert result.exit_code == 1
    assert "3 mistakes in the role file" in result.output
    assert "did you mean `lr`?" in result.output
    assert "s3cr3t" not in result.output


def test_a_missing_file_ends_with_1(tmp_path: Path) -> None:
    """No traceback."""
    result = check(str(tmp_path / "no.yaml"))
    assert result.exit_code == 1
    assert "the file cannot be read: no such file or directory" in result.output


def test_flags_are_the_base(right: str) -> None:
    """What the job would start with, after `--`; flags that are no option are named, without their values."""
    result = check(right, "--", "--lr", "3e-6", "--sglang-key=hush", "--weight-decay", "0.1")
    assert result.exit_code == 0
    assert "3e-06" in result.output
    assert "0.1 -> 0.0" in result.output
    assert "--sglang-key" in result.output
    assert "hush" not in result.output


def test_topology_is_checked_against_the_flags(tmp_path: Path) -> None:
    """The same file is right for one command line and wrong for another."""
    path = tmp_path / "roles.yaml"
    path.write_text("megatron:\n  - role: critic\n    overrides: {tensor_model_parallel_size: 2}\n")
    assert check(str(path), "--", "--tensor-model-parallel-size", "2").exit_code == 0
    assert check(str(path), "--", "--tensor-model-parallel-size", "4").exit_code == 1


def test_arguments_as_json_are_the_base(right: str, tmp_path: Path) -> None:
    """The arguments of an earlier job, as `json.dumps(vars(args), default=str)` writes them."""
    args = tmp_path / "args.json"
    args.write_text(json.dumps({"lr": 5e-6, "weight_decay": 0.1, "params_dtype": "torch.bfloat16"}))
    result = check(right, "--args-json", str(args))
    assert result.exit_code == 0
    assert "5e-06" in result.output


def test_json_for_programs(right: str, wrong: str) -> None:
    """One object: ok, mistakes with their places, warnings, differences with base, roles and sources."""
    report = json.loads(check(right, "--json").output)
    assert (report["ok"], report["mistakes"]) == (True, [])
    found = {item["argument"]: item for item in report["differences"]}
    assert found["lr"] == {
        "argument": "lr", "base": 1e-6, "roles": {"actor": 2e-6, "critic": 1e-5},
        "sources": {"actor": "file", "critic": "file"},
    }  # fmt: skip
    report = json.loads(check(wrong, "--json").output)
    assert report["ok"] is False
    assert [item["line"] for item in report["mistakes"]] == [4, 5, 6]
    assert "s3cr3t" not in json.dumps(report)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_the_shipped_role_files_are_right(path: Path) -> None:
    """Every role file in configs/ passes the check."""
    assert check(str(path)).exit_code == 0


def test_more_roles(tmp_path: Path) -> None:
    """A file may name roles besides slime's two, as in a job; `--role` says which ones, and no others."""
    path = tmp_path / "roles.yaml"
    path.write_text("megatron:\n  - role: reward\n    overrides: {lr: 1}\n")
    assert check(str(path)).exit_code == 0
    assert check(str(path), "--role", "reward").exit_code == 0
    assert check(str(path), "--role", "teacher").exit_code == 1


def test_a_parser_of_the_job(tmp_path: Path) -> None:
    """`--parser module:function` brings options that the table lacks."""
    path = tmp_path / "roles.yaml"
    path.write_text("megatron:\n  - role: actor\n    overrides: {reward_scale: 2}\n")
    assert check(str(path)).exit_code == 1
    assert check(str(path), "--parser", f"{__name__}:my_parser").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--parser", "nonsense"],
        ["--args-json", "/no/such"],
        ["--", "--lr", "x"],
        ["--args-json", "x", "--", "--lr", "1"],
    ],
)
def test_a_wrong_command_ends_with_2(words: list[str], right: str) -> None:
    """Not to be mistaken for a wrong role file."""
    assert check(right, *words).exit_code == 2


def test_torch_is_not_imported_for_a_file_without_dtypes(right: str) -> None:
    """A check takes under a second on a login node, where torch may be slow to load or missing."""
    code = (
        "import sys\nfrom slime_logging.cli.app import app\n"
        f"app(['check', {right!r}], standalone_mode=False)\nsys.exit('torch' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
        == 0
    )


def test_a_parser_in_the_current_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the job's own script finds it; its arguments are then known, and without it are told as possible."""
    (tmp_path / "my_own_job.py").write_text(
        "import argparse\n\ndef build():\n    made = argparse.ArgumentParser()\n"
        "    made.add_argument('--my-own', type=float, default=1.0)\n    return made\n"
    )
    path = tmp_path / "roles.yaml"
    path.write_text("megatron:\n  - role: critic\n    overrides: {my_own: 2.0}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.path", [entry for entry in sys.path if entry not in ("", str(tmp_path))]
    )
    result = check(str(path), "--parser", "my_own_job:build")
    assert result.exit_code == 0, result.output
    result = check(str(path))
    assert result.exit_code == 1
    assert "check with --parser MODULE:NAME" in " ".join(result.output.split())


def test_exact_loads_the_parsers_that_are_installed_and_keeps_their_prints_aside(
    tmp_path: Path,
) -> None:
    """slime loads Megatron-LM as it parses; arguments of its classes come back all the same."""
    files = {
        "megatron_like.py": "import enum\nprint('loaded')\nclass Backend(enum.Enum):\n    flash = 1\n",
        "slime/backends/megatron_utils/arguments.py": "import megatron_like\n",
        "slime/utils/arguments.py": (
            "import argparse, sys\n"
            "def parse_args():\n"
            "    from megatron_like import Backend\n"
            "    sys.stderr.fileno()\n"
            "    parser = argparse.ArgumentParser()\n"
            "    parser.add_argument('--lr', type=float)\n"
            "    parser.add_argument('--hidden-size', type=int, default=64)\n"
            "    args = parser.parse_args()\n"
            "    assert args.hidden_size == 64, 'the checkpoint says 64'\n"
            "    args.attention_backend, args.twice = Backend.flash, 2 * args.lr\n"
            "    return args\n"
        ),
        "right.yaml": "megatron: [{role: critic, overrides: {lr: 1e-5}}]",
        "wrong.yaml": "megatron: [{role: critic, overrides: {hidden_size: 128}}]",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    reports = {}
    for name in ("right", "wrong"):
        words = ["check", f"{name}.yaml", "--exact", "--json", "--", "--lr", "1e-6"]
        done = subprocess.run(
            [str(Path(sys.executable).with_name("slime-logging")), *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        reports[name] = done.returncode, json.loads(done.stdout)
    code, report = reports["right"]
    assert (code, report["basis"]) == (0, "the job's own parser and validation")
    assert {row["argument"]: row["roles"]["critic"] for row in report["differences"]}[
        "twice"
    ] == 2e-5
    code, report = reports["wrong"]
    assert (code, "the checkpoint says 64" in report["mistakes"][0]["reason"]) == (1, True)
