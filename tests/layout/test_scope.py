"""The run's configuration has one owner for each key, and nothing of the arguments is changed on the way to it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.layout.scope import (
    flatten,
    own_values,
    possible_scopes,
    primary_scopes,
    run_roles,
    scope_of,
)
from slime_logging.redaction.redact import Redactor

SECRET = "a9f3c1d7e5b2046881f0d3b7c6e4a2958d1f7c3b"


def config_of(args: Namespace, **env_vars: str):
    return flatten(primary_scopes(args, Redactor.of(args, {}), env_vars), ("actor", "critic"))


@pytest.fixture
def args(tmp_path: Path) -> Namespace:
    path = tmp_path / "roles.yaml"
    path.write_text(
        "megatron:\n"
        "  - role: actor\n    overrides: {lr: 2e-6}\n"
        "  - role: critic\n    overrides: {lr: 1e-5, kl_coef: 0.5, num_nodes: 4}\n"
    )
    args = ppo_namespace()
    args.megatron_config_path = str(path)
    args.wandb_key = SECRET
    return args


@pytest.mark.parametrize(
    ("role", "scope"), [(None, ""), ("actor", ""), ("critic", "critic"), ("explorer", "explorer")]
)
def test_the_actor_is_the_unprefixed_role(role, scope):
    assert scope_of(role) == scope


def test_the_actors_overrides_are_applied_to_the_unprefixed_keys(args):
    config = config_of(args)
    assert (config.values["lr"], config.values["critic/lr"]) == (2e-6, 1e-5)
    assert (config.roles["actor"]["lr"], config.roles["critic"]["lr"]) == (2e-6, 1e-5)


def test_every_name_of_the_namespace_is_there_for_both_roles(args):
    config = config_of(args)
    assert not [
        name
        for name in vars(args)
        if name not in config.values or f"critic/{name}" not in config.values
    ]


def test_an_override_keeps_the_base_the_value_and_where_it_came_from(args):
    values = config_of(args).values
    assert values["overrides/critic/lr"] == {"base": args.lr, "value": 1e-5, "source": "file"}
    assert values["overrides/critic/untie_embeddings_and_output_weights"]["source"] == "forced"


def test_what_the_role_file_asked_for_in_vain_is_kept_beside_what_holds(args):
    values = config_of(args).values
    assert values["overrides/critic/kl_coef"]["value"] == 0
    assert values["overrides/critic/kl_coef"]["asked"] == 0.5
    assert values["overrides/critic/num_nodes"]["source"] == "ignored"


def test_a_role_says_nothing_of_what_differs_between_its_processes(args):
    values = own_values(args, Redactor.of(args, {}))
    assert "lr" in values
    assert not {"rank", "local_rank", "wandb_run_id"} & set(values)


def test_environment_variables_stand_in_one_key(args):
    assert config_of(args, SLURM_JOB_ID="7").values["env_vars"] == {"SLURM_JOB_ID": "7"}


def test_no_secret_is_in_any_scope(args):
    config = config_of(args)
    assert SECRET not in repr(config)
    assert config.values["critic/wandb_key"] == "<hidden: wandb_key>"
    assert args.wandb_key == SECRET


def test_a_role_view_holds_no_key_of_the_run_itself(args):
    assert not [key for key in config_of(args).roles["actor"] if "/" in key or key == "env_vars"]


@pytest.mark.parametrize(
    ("use_critic", "estimator", "expected"),
    [(True, "ppo", True), (True, "grpo", False), (False, "ppo", False), (True, None, True)],
)
def test_a_critic_is_expected_where_slime_would_start_one(args, use_critic, estimator, expected):
    """Else what is known of it waits until it joins."""
    args.use_critic, args.advantage_estimator = use_critic, estimator
    redactor = Redactor.of(args, {})
    certain, possible = primary_scopes(args, redactor, {}), possible_scopes(args, redactor)
    assert ("critic" in run_roles(args), "critic" in certain) == (expected, expected)
    assert ("critic" in possible) is not expected
    known = possible if not expected else certain
    assert known["critic"]["lr"] == 1e-5 and "overrides/critic/lr" in known[""]


def test_a_third_role_of_the_file_is_known(args):
    """It counts once it joins, with its overrides."""
    with Path(args.megatron_config_path).open("a") as file:
        file.write("  - role: reward\n    overrides: {lr: 3e-5}\n")
    known = possible_scopes(args, Redactor.of(args, {}))
    assert known["reward"]["lr"] == 3e-5
    assert known[""]["overrides/reward/lr"]["value"] == 3e-5
    assert "overrides/reward/kl_coef" not in known[""]
