"""The algorithms, as pure functions of tensors: rewards, advantages, and the two losses.

Policy: no state, no arguments namespace, no logging. All tensors are float32 of shape [samples,
response tokens] unless said otherwise; PPO is Schulman et al. 2017 with clipped values, GRPO is
Shao et al. 2024.
"""

from __future__ import annotations

from typing import Any

import torch

NUM_GOOD_TOKENS = 16
"""The toy's task: write tokens with an id below this. With a vocabulary of 128, chance gives a
reward of 0.125.
"""


def reward(responses: Any) -> Any:
    """Return the share of good tokens of each response: int64 [samples, tokens] -> float32
    [samples].
    """
    return (responses < NUM_GOOD_TOKENS).float().mean(dim=1)


def log_probs_and_entropy(logits: Any, chosen: Any) -> tuple[Any, Any]:
    """Return each chosen token's log probability and the entropy there; logits are [samples,
    tokens, vocabulary].
    """
    every = torch.log_softmax(logits.float(), dim=-1)
    return every.gather(-1, chosen.unsqueeze(-1)).squeeze(-1), -(every.exp() * every).sum(dim=-1)


def generalized_advantages(
    rewards: Any, values: Any, gamma: float, lambd: float
) -> tuple[Any, Any]:
    """Return GAE's advantages and the returns, for a reward [samples] that comes with the last
    token.
    """
    advantages = torch.zeros_like(values)
    following = torch.zeros_like(rewards)
    next_value = torch.zeros_like(rewards)
    for token in reversed(range(values.shape[1])):
        reward_here = rewards if token == values.shape[1] - 1 else torch.zeros_like(rewards)
        delta = reward_here + gamma * next_value - values[:, token]
        following = delta + gamma * lambd * following
        advantages[:, token] = following
        next_value = values[:, token]
    return advantages, advantages + values


def group_advantages(rewards: Any, group_size: int, num_tokens: int, divide_by_std: bool) -> Any:
    """Return GRPO's advantages: each reward against the mean of its group of samples of one prompt,
    for every token.
    """
    groups = rewards.view(-1, group_size)
    centred = groups - groups.mean(dim=1, keepdim=True)
    if divide_by_std:
        centred = centred / (groups.std(dim=1, keepdim=True) + 1e-6)
    return centred.view(-1, 1).expand(-1, num_tokens).clone()


def whiten(advantages: Any) -> Any:
    """Return the advantages with mean 0 and standard deviation 1 over the whole batch."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def policy_loss(
    log_probs: Any, old_log_probs: Any, advantages: Any, eps_clip: float, eps_clip_high: float
) -> Any:
    """Return the clipped policy loss (a scalar) and its metrics `pg_clipfrac` and `ppo_kl`."""
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1.0 - eps_clip, 1.0 + eps_clip_high)
    metrics = {
        "pg_clipfrac": (clipped > plain).float().mean(),
        "ppo_kl": -log_ratio.detach().mean(),
    }
    return torch.maximum(plain, clipped).mean(), metrics


def value_loss(values: Any, old_values: Any, returns: Any, value_clip: float) -> Any:
    """Return the clipped value loss (a scalar) and its metric `value_clipfrac`."""
    kept_near = old_values + (values - old_values).clamp(-value_clip, value_clip)
    plain = (values - returns) ** 2
    clipped = (kept_near - returns) ** 2
    return 0.5 * torch.maximum(plain, clipped).mean(), {
        "value_clipfrac": (clipped > plain).float().mean()
    }
