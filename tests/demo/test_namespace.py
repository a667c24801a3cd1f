"""The full-size namespace: names, types and independence."""

from __future__ import annotations

import pickle
import signal
from collections import Counter

import torch
from megatron.core.transformer.enums import AttnBackend

from slime_logging.demo.namespace import grpo_namespace, ppo_namespace


def test_has_the_873_names_of_the_validated_job() -> None:
    """Not one name more or less."""
    assert len(vars(ppo_namespace())) == 873


def test_has_the_types_of_the_validated_job() -> None:
    """The counts by type are those that were measured by running the real parsers."""
    counts = Counter(type(value).__name__ for value in vars(ppo_namespace()).values())
    assert counts == {
        "bool": 316, "NoneType": 232, "int": 155, "str": 82, "float": 69, "list": 10, "dtype": 5, "dict": 2,
        "AttnBackend": 1, "Signals": 1,
    }  # fmt: skip


def test_rebuilds_what_json_has_no_type_for() -> None:
    """The torch dtypes, Megatron's enum and the signal are the real objects."""
    args = ppo_namespace()
    assert (args.params_dtype, args.attention_backend, args.exit_signal) == (
        torch.bfloat16,
        AttnBackend.unfused,
        signal.SIGTERM,
    )


def test_keeps_small_numbers_exact() -> None:
    """Floats are those of the source, to the last bit."""
    args = ppo_namespace()
    assert (args.lr, args.adam_eps, args.moe_router_bias_update_rate) == (1e-06, 1e-08, 0.001)


def test_two_namespaces_share_nothing() -> None:
    """Changing a list of one leaves the next one as it was."""
    ppo_namespace().profile_ranks.append(7)
    assert ppo_namespace().profile_ranks == [0]


def test_survives_the_way_into_another_process() -> None:
    """It pickles, as Ray would send it."""
    args = ppo_namespace()
    assert vars(pickle.loads(pickle.dumps(args))) == vars(args)


def test_grpo_has_the_same_names_and_no_critic() -> None:
    """The parser's names stay; the critic's counts are 0."""
    args = grpo_namespace()
    assert set(vars(args)) == set(vars(ppo_namespace()))
    assert (args.advantage_estimator, args.use_critic, args.critic_num_nodes) == ("grpo", False, 0)
