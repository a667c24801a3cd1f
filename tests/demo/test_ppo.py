"""The algorithms, against values worked out by hand."""

from __future__ import annotations

import pytest
import torch

from slime_logging.demo import ppo


def test_reward_is_the_share_of_good_tokens() -> None:
    """Ids below 16 are good, 16 is not."""
    assert ppo.reward(torch.tensor([[0, 15, 16, 127]])).tolist() == [0.5]


def test_advantages_without_discount_are_reward_minus_value() -> None:
    """With gamma and lambda 1, GAE is the difference between the final reward and the value."""
    values = torch.tensor([[0.25, 0.5, 0.75]])
    advantages, returns = ppo.generalized_advantages(
        torch.tensor([1.0]), values, gamma=1.0, lambd=1.0
    )
    assert advantages.tolist() == [[0.75, 0.5, 0.25]]
    assert returns.tolist() == [[1.0, 1.0, 1.0]]


def test_advantages_with_lambda_zero_are_the_next_value_minus_this_one() -> None:
    """With lambda 0, GAE is the one-step error."""
    values = torch.tensor([[0.25, 0.5, 0.75]])
    advantages, _ = ppo.generalized_advantages(torch.tensor([1.0]), values, gamma=1.0, lambd=0.0)
    assert advantages.tolist() == [[0.25, 0.25, 0.25]]


def test_group_advantages_compare_samples_of_one_prompt_only() -> None:
    """Each group is centred by itself."""
    advantages = ppo.group_advantages(
        torch.tensor([1.0, 0.0, 5.0, 5.0]), 2, num_tokens=2, divide_by_std=False
    )
    assert advantages.tolist() == [[0.5, 0.5], [-0.5, -0.5], [0.0, 0.0], [0.0, 0.0]]


def test_policy_loss_is_clipped_where_the_ratio_left_the_range() -> None:
    """A ratio of 2 with a positive advantage counts as 1.2 only."""
    loss, metrics = ppo.policy_loss(
        torch.tensor([[2.0]]).log(),
        torch.tensor([[1.0]]).log(),
        torch.tensor([[1.0]]),
        eps_clip=0.2,
        eps_clip_high=0.2,
    )
    assert loss.item() == pytest.approx(-1.2)
    assert metrics["pg_clipfrac"].item() == 1.0


def test_value_loss_takes_the_worse_of_the_clipped_and_the_plain_error() -> None:
    """A value that moved towards its return by more than the clip still has the error of the clipped one."""
    loss, _ = ppo.value_loss(
        torch.tensor([[1.0]]), torch.tensor([[0.0]]), torch.tensor([[1.0]]), value_clip=0.2
    )
    assert loss.item() == pytest.approx(0.5 * 0.8**2)
