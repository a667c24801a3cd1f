"""slime's own call sites, in their order, against the modules that stand in for its own."""

from __future__ import annotations

import copy
import pickle
from argparse import Namespace
from types import SimpleNamespace

import pytest

import slime_logging as sl
from slime_logging.delivery.status import journal_rows
from slime_logging.slime import logging_utils, wandb_utils
from slime_logging.slime.arguments import parse_megatron_role_args
from tests.test_tracking import KEY, ROLES, directory, held, job


@pytest.fixture
def args(tmp_path):
    path = tmp_path / "roles.yaml"
    path.write_text(ROLES)
    return job(tmp_path, megatron_config_path=str(path), wandb_key=KEY)


def test_a_ppo_job_as_slime_runs_it(args):
    # the driver: tracking first, then placement, then the actors with pickled arguments
    logging_utils.init_tracking(args)
    manager = pickle.loads(pickle.dumps(args))
    logging_utils.init_tracking(manager, primary=False)
    groups = {}
    for role in ("actor", "critic"):
        role_args = parse_megatron_role_args(args, args.megatron_config_path, role=role)
        groups[role] = pickle.loads(pickle.dumps(role_args))
        logging_utils.init_tracking(groups[role], primary=False, role=role)
    # the loop: rollout, its statistics, then the critic and the actor train
    for rollout_id in range(3):
        logging_utils.log(
            manager, {"rollout/step": rollout_id, "rollout/raw_reward": 0.5}, "rollout/step"
        )
        logging_utils.log(
            manager, {"rollout/step": rollout_id, "perf/rollout_time": 1.5}, "rollout/step"
        )
        logging_utils.log(
            groups["critic"],
            {"train/step": rollout_id, "train/critic-value_loss": 1.0},
            "train/step",
        )
        logging_utils.log(
            groups["actor"], {"train/step": rollout_id, "train/loss": 0.1}, "train/step"
        )
    logging_utils.log(manager, {"eval/step": 2, "eval/aime": 0.25}, "eval/step")
    # the end: the train actors are killed, the manager and the driver finish
    logging_utils.finish_tracking(manager)
    logging_utils.finish_tracking(args)
    assert len(list(journal_rows(directory(args)))) == 13
    assert len(held(args).rows) == 13
    assert (held(args).config.values["lr"], held(args).config.values["critic/lr"]) == (2e-6, 1e-5)
    assert held(args).exit_code == 0


def test_a_trainer_that_is_released_and_woken_joins_once(args):
    logging_utils.init_tracking(args)
    actor = copy.copy(args)
    for _ in range(5):
        logging_utils.init_tracking(actor, primary=False, role="actor")
    assert len(directory(args).journal_paths()) == 2


def test_what_another_version_passes_on_is_used_or_named_and_does_no_harm(args, caplog):
    logging_utils.init_tracking(args, router_addr="http://127.0.0.1:1", colour="blue")
    assert "colour" in caplog.text
    assert "router_addr" not in caplog.text
    logging_utils.finish_tracking(args)
    endpoint = held(args).config.values["open_metrics/sgl_engine"]
    assert endpoint == "http://127.0.0.1:1/engine_metrics"


def test_a_job_that_calls_as_miles_does(args, caplog):
    """Trainers join without a role, the router is named before it is there, and nobody hands arguments to the end."""
    sl.init_tracking(args)
    manager, trainer = copy.copy(args), copy.copy(args)
    sl.init_tracking(manager, primary=False, router_addr="http://None:None")
    sl.init_tracking(trainer, primary=False)
    sl.define_step_key_metric_group(prefix="adapter", step_key="adapter/step")
    sl.log(trainer, {"adapter/step": 2, "adapter/loss": 0.5}, step_key="adapter/step")
    sl.log(trainer, {"adapter/loss": 0.25}, step_key="adapter/step")
    sl.log(trainer, {"adapter/step": None, "adapter/loss": 0.125}, step_key="adapter/step")
    sl.log(manager, {"eval/aime": 1.0}, step_key="eval/step")
    for _ in range(4):
        sl.finish_tracking()
    rows = [(row.step_key, row.step, *row.metrics.values()) for row in held(args).rows]
    assert sorted(rows)[:2] == [("adapter/step", 2, 0.125), ("adapter/step", 2, 0.25)]
    assert (len(rows), held(args).exit_code) == (4, 0)
    assert "not sampled from http://None:None" in caplog.text
    assert "open_metrics/sgl_engine" not in held(args).config.values


def test_the_primarys_config_has_the_globals_and_the_critics_under_its_prefix(args):
    config = wandb_utils._compute_config_for_logging(args)
    assert (config["lr"], config["critic/lr"]) == (2e-6, 1e-5)
    assert config["env_vars"] == {}
    assert KEY not in repr(config)


def test_without_a_critic_there_is_no_prefixed_key(args):
    args.use_critic = False
    assert not [
        key for key in wandb_utils._compute_config_for_logging(args) if key.startswith("critic/")
    ]


def test_a_critic_secondary_is_prefixed_and_others_are_not():
    args = Namespace(lr=1e-6, wandb_key=KEY)
    assert wandb_utils._compute_secondary_config_for_logging(args, role="critic") == {
        "critic/lr": 1e-6,
        "critic/wandb_key": "<hidden: wandb_key>",
    }
    assert wandb_utils._compute_secondary_config_for_logging(args, role="actor")["lr"] == 1e-6
    assert wandb_utils._compute_secondary_config_for_logging(args)["lr"] == 1e-6


def test_the_small_helpers():
    args = SimpleNamespace(lr=1e-6, nested={"a": [1]}, megatron_config_path=None)
    assert wandb_utils._args_to_config_dict(args) == {
        "lr": 1e-6,
        "nested": {"a": [1]},
        "megatron_config_path": None,
    }
    assert wandb_utils._prefix_config_keys({"lr": 1}, "critic") == {"critic/lr": 1}
    assert wandb_utils._get_role_args_for_logging(args, "critic") is args


def test_role_arguments_for_logging_come_from_the_role_file(args):
    assert wandb_utils._get_role_args_for_logging(args, role="critic").lr == 1e-5


def test_the_config_of_a_small_namespace_with_a_critic(tmp_path):
    path = tmp_path / "roles.yaml"
    path.write_text(
        "megatron:\n  - name: default\n    role: critic\n    overrides:\n      lr: 1.0e-5\n"
    )
    args = SimpleNamespace(lr=1e-6, use_critic=True, megatron_config_path=str(path))
    config = wandb_utils._compute_config_for_logging(args)
    assert (config["lr"], config["critic/lr"]) == (1e-6, 1e-5)


def test_w_and_b_off_sets_the_id_to_none():
    args = Namespace(use_wandb=False)
    wandb_utils.init_wandb_primary(args)
    assert args.wandb_run_id is None
    wandb_utils.init_wandb_secondary(args, role="critic")
