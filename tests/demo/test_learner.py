"""Megatron on a CPU: the models learn, alone and split over two tensor-parallel ranks. No tracking is on here."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slime_logging.demo.crew import Crew
from slime_logging.demo.job import JobOptions, job_arguments
from slime_logging.demo.rollout import RolloutManager
from slime_logging.demo.worker import Worker

PRELOAD = ["slime_logging.demo.preload"]


def _arguments(tensor_parallel_size: int, num_rollouts: int) -> Namespace:
    args = job_arguments(JobOptions(trackers=(), tensor_parallel_size=tensor_parallel_size))
    args.num_rollout, args.start_rollout_id = num_rollouts, 0
    return args


def _train(tmp_path: Path, tensor_parallel_size: int, num_rollouts: int) -> tuple[list[float], dict[str, Any]]:
    """Train both roles on their own; return the rewards and the actor's and critic's last metrics."""
    args = _arguments(tensor_parallel_size, num_rollouts)
    rewards, last = [], {}
    with Crew(PRELOAD) as crew:
        rollout = crew.start("rollout", RolloutManager, args, num_rollouts)
        groups = {
            role: [
                crew.start(f"{role} rank {rank}", Worker, args, role, rank, tmp_path / role)
                for rank in range(tensor_parallel_size)
            ]
            for role in ("actor", "critic")
        }
        actor, critic = groups["actor"], groups["critic"]
        for rollout_id in range(num_rollouts):
            weights = crew.answers(dict.fromkeys(actor, ("weights",)))[actor[0]]
            crew.answer(rollout, "load", weights)
            samples = crew.answer(rollout, "generate", rollout_id)
            values = crew.answers(dict.fromkeys(critic, ("values", samples)))[critic[0]]
            learned = crew.answers(dict.fromkeys(actor + critic, ("learn", rollout_id, samples, values)))
            last = {role: learned[group[0]] for role, group in groups.items()}
            rewards.append(float(samples["rewards"].mean()))
        crew.end()
    return rewards, last


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[float], dict[str, Any]]:
    """Eight rollouts of PPO on one rank a role."""
    return _train(tmp_path_factory.mktemp("one"), 1, 8)


def test_the_reward_rises(trained: tuple[list[float], dict[str, Any]]) -> None:
    """From chance, 0.125, to twice of that in eight rollouts."""
    rewards, _ = trained
    assert rewards[0] == pytest.approx(0.125, abs=0.02)
    assert rewards[-1] > 0.25


def test_the_engine_agrees_with_megatron(trained: tuple[list[float], dict[str, Any]]) -> None:
    """The rollout engine and Megatron's forward give the same log probabilities to five digits."""
    _, last = trained
    assert last["actor"]["train_rollout_logprob_abs_diff"] < 1e-5


def test_the_roles_train_with_their_own_learning_rates(trained: tuple[list[float], dict[str, Any]]) -> None:
    """The rates that the optimizers used are those of the role file: the actor's decays, the critic's warmed up."""
    _, last = trained
    assert last["critic"]["lr-pg_0"] == 5e-3
    assert 4e-4 < last["actor"]["lr-pg_0"] < 2e-3


def test_two_tensor_parallel_ranks_train_as_one(tmp_path: Path, trained: tuple[list[float], dict[str, Any]]) -> None:
    """The first two rollouts give the same rewards and losses, to four digits, however the model is split."""
    rewards, _ = trained
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    _, one = _train(tmp_path / "one", 1, 2)
    split_rewards, two = _train(tmp_path / "two", 2, 2)
    assert split_rewards == pytest.approx(rewards[:2])
    for role in ("actor", "critic"):
        assert two[role]["loss"] == pytest.approx(one[role]["loss"], rel=1e-3, abs=1e-4)
        assert two[role]["grad_norm"] == pytest.approx(one[role]["grad_norm"], rel=1e-3)
    assert np.isfinite(two["critic"]["loss"])
