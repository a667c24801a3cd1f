"""Code that asks `wandb.run` logs to the job's own run: by our object, and in slime's own files with one word changed."""

from __future__ import annotations

import ast
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

import slime_logging as sl
from slime_logging.slime import wandb
from slime_logging.slime.wandb_run import STEP_KEY
from tests.slime.real import NEWEST, needs_peers, unpack
from tests.test_tracking import KEY, held, job

LINE = "from slime_logging.slime import wandb"


@pytest.fixture
def args(tmp_path):
    args = job(tmp_path, wandb_project="p", wandb_group="g", wandb_key=KEY)
    sl.init_tracking(args)
    yield args
    sl.finish_tracking(args)


@pytest.fixture(scope="module")
def slime(tmp_path_factory) -> Path:
    return unpack(tmp_path_factory.mktemp("slime"), f"slime-{NEWEST}")


def rows(args) -> list[tuple[str, float, dict]]:
    sl.finish_tracking(args)
    return [(row.step_key, row.step, dict(row.metrics)) for row in held(args).rows]


def test_a_row_is_drawn_over_its_own_step_else_over_the_count_of_calls(args):
    run = sl.wandb_run(args)
    run.log({"debug/turn": 1})
    run.log({"rollout/step": 7, "rollout/no_filter/avg_reward": 0.5})
    run.log({"debug/turn": 2}, step=40)
    run.log({"debug/turn": 3}, commit=False)
    run.log({"debug/tools": 4})
    assert rows(args) == [
        (STEP_KEY, 0, {"debug/turn": 1}),
        ("rollout/step", 7, {"rollout/no_filter/avg_reward": 0.5}),
        (STEP_KEY, 40, {"debug/turn": 2}),
        (STEP_KEY, 41, {"debug/turn": 3}),
        (STEP_KEY, 41, {"debug/tools": 4}),
    ]


def test_the_count_goes_on_whoever_asks_for_the_run_again(args):
    sl.wandb_run().log({"a": 1})
    wandb.run.log({"a": 2})
    wandb.log({"a": 3})
    assert [step for _, step, _ in rows(args)] == [0, 1, 2]


def test_the_object_has_the_names_of_the_run(args):
    run = sl.wandb_run(args)
    assert (run.id, run.project, run.group) == (args.wandb_run_id, "p", "g")
    assert run.name.startswith("g")
    assert (run.dir, run.url) == (args.tracking_run_dir, None)
    assert run.define_metric("a", step_metric="b") is None


def test_config_and_summary_stand_in_the_runs_configuration_without_secrets(args):
    run = sl.wandb_run(args)
    assert run.config["lr"] == run.config.get("lr") == args.lr
    run.config.update({"tools": ["python"]}, allow_val_change=True)
    run.config.update(SimpleNamespace(sandbox="local"))
    run.config["judge_api_key"] = "sk-live-1234567890abcdef1234567890"
    wandb.summary["best"] = 0.5
    assert sl.wandb_run(args).summary["best"] == 0.5
    sl.finish_tracking(args)
    values = held(args).config.values
    assert (values["tools"], values["sandbox"]) == (["python"], "local")
    assert values["summary/best"] == 0.5
    assert "sk-live" not in repr(values)


def test_a_mistake_of_the_caller_is_told_and_training_goes_on(args, caplog):
    with caplog.at_level(logging.ERROR):
        sl.wandb_run(args).log(3)
        sl.wandb_run(args).config.update(3)
    assert "training goes on" in caplog.text


def test_where_nothing_is_tracked_there_is_no_run():
    assert sl.wandb_run() is None
    assert wandb.run is None
    wandb.log({"a": 1})
    with pytest.raises(AttributeError):
        wandb.no_such_name  # noqa: B018
    assert wandb.Image is __import__("wandb").Image


@needs_peers
def test_retool_with_the_documented_line_logs_its_turns(slime, args):
    file = slime / "examples/retool/generate_with_retool.py"
    changed = file.read_text().replace("            import wandb\n", f"            {LINE}\n")
    (asks,) = [
        node
        for node in ast.walk(ast.parse(changed))
        if isinstance(node, ast.Try) and LINE in ast.unparse(node.body[0])
    ]
    for turn in range(2):
        names = {"tool_specs": [1], "prompt": "p", "turn": turn, "response": "<interpreter>1"}
        exec(compile(ast.Module([asks], []), file.name, "exec"), names)
    assert [(step_key, step, row["debug/turn"]) for step_key, step, row in rows(args)] == [
        (STEP_KEY, 0, 0),
        (STEP_KEY, 1, 1),
    ]


@needs_peers
def test_the_rollout_buffer_with_the_documented_line_logs_over_the_rollout(slime, args):
    file = slime / "slime_plugins/rollout_buffer/rollout_buffer_example.py"
    assert "import wandb\n" in file.read_text()
    (log_raw_info,) = [
        node
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "log_raw_info"
    ]
    names: dict = {}
    exec(LINE, names)
    exec(compile(ast.Module([log_raw_info], []), file.name, "exec"), names)
    asked = SimpleNamespace(
        use_wandb=True, use_tensorboard=False, wandb_always_use_train_step=False
    )
    names["log_raw_info"](asked, [{"total_samples": 4, "avg_reward": 0.5}], 3)
    ((step_key, step, row),) = rows(args)
    assert (step_key, step, row["rollout/no_filter/avg_reward"]) == ("rollout/step", 3, 0.5)


def test_the_line_of_these_tests_is_the_documented_one():
    text = (Path(__file__).parents[2] / "docs/slime.md").read_text()
    assert LINE in text
    assert "examples/retool" in text
