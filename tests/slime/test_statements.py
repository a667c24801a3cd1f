"""What the pages on slime and on role files say of slime and Megatron-LM, tried on those of ../shared/peers: above all
`slime-logging check --exact`, which asks their own parsers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.slime.real import FLAGS, PPO, Place, needs_peers

pytestmark = needs_peers

RIGHT = """
megatron:
  - {role: actor, overrides: {eps_clip: 0.1}}
  - {role: critic, overrides: {lr: 1.0e-5, weight_decay: 0.0}}
  - {role: reward, overrides: {lr_warmup_fraction: 1e-2, eval_prompt_data: [a, a.jsonl]}}
"""
WRONG = """
megatron:
  - role: critic
    overrides:
      hidden_size: 128
      lr_decay_style: cosin
      learning_rate: 1.0e-5
"""
RUN = """
import json, runpy, sys
from slime_logging.cli import main
commands, (script, *flags) = map(json.loads, sys.argv[1:])
for words in commands:
    sys.argv = ["slime-logging", *words]
    try:
        main()
    except SystemExit as stop:
        print("\\0", stop.code, sep="", end="\\0", flush=True)
sys.argv = [script, *flags]
runpy.run_path(script, run_name="__main__")
"""
"""All in one process: slime and Megatron-LM take seconds to load."""


@dataclass(frozen=True)
class Told:
    code: int
    text: str


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    place = Place.make(tmp_path_factory.mktemp("check") / "slime")
    folder = tmp_path_factory.mktemp("files")
    (folder / "right.yaml").write_text(RIGHT)
    (folder / "wrong.yaml").write_text(WRONG)
    flags = [*FLAGS, *place.model, *PPO]
    commands = {
        "right": ["check", "right.yaml", "--exact", "--json", "--", *flags],
        "table": ["check", "right.yaml", "--exact", "--", *flags],
        "wrong": ["check", "wrong.yaml", "--exact", "--json", "--", *flags],
        "flags": ["check", "right.yaml", "--exact", "--", *flags, "--hidden-size", "128"],
        "no flag": ["check", "right.yaml", "--exact", "--", *flags, "--lr", "fast"],
        "again": ["check", "right.yaml", "--exact", "--json", "--", *flags, "--lr", "3e-6"],
    }
    script = [str(Path(__file__).with_name("statements.py")), *flags]
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(list(commands.values())), json.dumps(script)],
        cwd=folder,
        env=place.environment() | {"COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    parts = done.stdout.split("\0")
    each = zip(commands, parts[0::2], parts[1::2], strict=False)
    told = {name: Told(int(code), text) for name, text, code in each}
    (found,) = (line for line in parts[-1].splitlines() if line.startswith("{"))
    return told | {"statements": Told(0, found)}


@pytest.fixture
def found(told: dict[str, Told]) -> dict[str, Any]:
    """What was found of the statements, by what they are about."""
    return json.loads(told["statements"].text)


def values(one: Told) -> dict[str, dict[str, object]]:
    rows = json.loads(one.text)["differences"]
    return {row["argument"]: {"base": row["base"], **row["roles"]} for row in rows}


def test_a_right_file_is_what_their_parsers_make_of_it(told: dict[str, Told]) -> None:
    one = told["right"]
    assert one.code == 0
    assert json.loads(one.text)["basis"] == "the job's own parser and validation"
    found = values(one)
    assert found["eps_clip_high"] == {"base": 0.2, "actor": 0.1, "critic": 0.2, "reward": 0.2}
    assert found["end_weight_decay"] == {"base": 0.1, "actor": 0.1, "critic": 0.0, "reward": 0.1}
    assert found["lr_warmup_fraction"]["reward"] == 0.01
    assert "a.jsonl" in str(found["eval_datasets"]["reward"])


def test_the_table_says_who_was_asked(told: dict[str, Told]) -> None:
    assert told["table"].code == 0
    assert "right, by the job's own parser and validation" in told["table"].text


def test_a_wrong_file_has_the_validations_own_words_at_its_lines(told: dict[str, Told]) -> None:
    """A checkpoint's configuration is not known to any table; mistakes that tables find are told beside it."""
    one = told["wrong"]
    assert one.code == 1
    mistakes = {mistake["line"]: mistake for mistake in json.loads(one.text)["mistakes"]}
    assert "hidden_size in hf config 64 is not equal to hidden_size 128" in mistakes[5]["reason"]
    assert "cosine" in mistakes[6]["fix"]
    assert "did you mean `lr`" in mistakes[7]["fix"]


def test_flags_that_the_job_would_refuse_are_refused(told: dict[str, Told]) -> None:
    assert (told["flags"].code, told["no flag"].code) == (2, 2)


def test_the_base_is_that_of_the_flags(told: dict[str, Told]) -> None:
    assert values(told["again"])["lr"] == {
        "base": 3e-6,
        "actor": 3e-6,
        "critic": 1e-5,
        "reward": 3e-6,
    }


def test_flags_reach_slime_by_its_hook_alone(found: dict[str, Any]) -> None:
    """Its parser drops what it does not know; with its own flags among ours there is a conflict."""
    assert found["flags that slime does not know"] is False
    assert found["flags by the hook"] == [True, "here"]
    assert found["all flags by the hook"] is True


def test_the_line_in_its_arguments_makes_values_mean_what_their_flags_would(
    found: dict[str, Any],
) -> None:
    assert found["slime's roles"] == ["1e-2", True, 1e-5, 0.1]
    assert "did you mean `lr`" in found["our mistakes"]
    assert found["our roles"] == [0.01, False, None, 0.0]


def test_what_slimes_own_tracking_does_is_as_it_is_told(found: dict[str, Any]) -> None:
    assert (found["no group"], found["never joined"]) == ("TypeError", True)
    assert found["no step"] == "KeyError"
    assert found["key in the configuration"] == 2
    assert found["our calls"] == [None, None]
    assert (found["run id"], found["offline runs"]) == (False, 2)
    assert (found["refused at the start"], found["asked though disabled"]) == (True, True)
