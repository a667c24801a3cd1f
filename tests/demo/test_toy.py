"""The toy's values in the full-size namespace."""

from __future__ import annotations

import pytest
import torch

from slime_logging.demo import toy
from slime_logging.demo.namespace import grpo_namespace, ppo_namespace


def test_no_name_is_added_to_the_validated_ones() -> None:
    """What the toy sets are arguments that slime and Megatron have."""
    args = ppo_namespace()
    toy.apply_toy_settings(args, 1, 1234)
    assert set(vars(args)) == set(vars(ppo_namespace()))


def test_what_is_known_late_is_not_claimed_early() -> None:
    """The vocabulary and the number of rollouts are open until a process knows them."""
    args = ppo_namespace()
    toy.apply_toy_settings(args, 1, 1234)
    assert (args.vocab_size, args.padded_vocab_size, args.num_rollout, args.start_rollout_id) == (
        None,
    ) * 4


def test_it_says_that_it_runs_in_float32_on_gloo() -> None:
    """Nothing of the original's bfloat16, NCCL and GPUs is left."""
    args = ppo_namespace()
    toy.apply_toy_settings(args, 2, 1234)
    assert (args.params_dtype, args.bf16, args.distributed_backend) == (
        torch.float32,
        False,
        "gloo",
    )
    assert (args.tensor_model_parallel_size, args.world_size) == (2, 2)


def test_grpo_has_no_critic_only_rollouts() -> None:
    """Its actor learns from the first rollout on."""
    args = grpo_namespace()
    toy.apply_toy_settings(args, 1, 1234)
    assert (args.use_critic, args.num_critic_only_steps, args.critic_num_gpus_per_node) == (
        False,
        0,
        0,
    )


@pytest.mark.parametrize(("ranks", "size"), [(1, 128), (2, 128), (4, 256)])
def test_the_vocabulary_is_padded_so_that_ranks_can_share_it(ranks: int, size: int) -> None:
    """A multiple of 64 a rank, by Megatron's rule."""
    args = ppo_namespace()
    toy.apply_toy_settings(args, ranks, 1234)
    assert toy.padded(128, args) == size
