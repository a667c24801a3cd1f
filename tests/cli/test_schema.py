"""`slime-logging schema`: what an editor accepts and refuses in a role file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from slime_logging.cli.app import app
from slime_logging.roles.megatron.options import OptionTable

ROOT = Path(__file__).parents[2]
CASES = json.loads((ROOT / "tests/data/role_yaml.json").read_text())["cases"]
BEYOND = {"nan-lr", "dup-key", "topology", "empty"}
"""What no schema can say: NaN, a key twice, the job's own topology; an editor has no empty document."""


@pytest.fixture(scope="module")
def checker() -> jsonschema.Draft202012Validator:
    printed = json.loads(CliRunner().invoke(app, ["schema"]).output)
    jsonschema.Draft202012Validator.check_schema(printed)
    return jsonschema.Draft202012Validator(printed)


def read(text: str) -> Any:
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.name)
def test_the_files_in_configs_are_right(
    path: Path, checker: jsonschema.Draft202012Validator
) -> None:
    """Every role file of the project passes."""
    assert [one.message for one in checker.iter_errors(read(path.read_text()))] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_mistake_is_one_in_the_schema(
    case: dict[str, Any], checker: jsonschema.Draft202012Validator
) -> None:
    """What the check refuses the schema refuses, and nothing else, but for what it cannot say."""
    if case["id"] in BEYOND:
        return
    is_right = checker.is_valid(read(case["yaml"]))
    assert is_right is ("values" in case["expect"])


def test_each_option_is_there_with_its_facts(checker: jsonschema.Draft202012Validator) -> None:
    """Type, choices, default; what is refused is marked so, with the reason; dashes will do."""
    options = checker.schema["$defs"]["options"]
    assert set(OptionTable.shipped()) <= set(options)
    assert options["lr"]["default"] == 1e-6
    assert "cosine" in options["lr_decay_style"]["enum"]
    assert (
        options["wandb_project"]["not"] == {}
        and "Refused" in options["global_batch_size"]["description"]
    )
    written = checker.schema["$defs"]["overrides"]["properties"]
    assert written["min-lr"] == written["min_lr"]


def test_more_roles_by_option() -> None:
    """`--role` adds one."""
    printed = json.loads(CliRunner().invoke(app, ["schema", "--role", "reward"]).output)
    assert printed["$defs"]["entry"]["properties"]["role"]["enum"] == ["actor", "critic", "reward"]
