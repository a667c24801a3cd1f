"""Megatron on a CPU: the models learn, alone and split over two tensor-parallel ranks. No tracking is on here."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slime_logging.demo.crew import Crew
from slime_logging.demo.job import JobOptions, job_arguments
from slime_logging.demo.rollout import RolloutManager
from slime_logging.demo.worker import Worker

pytestmark = pytest.mark.xdist_group("demo-learner")

PRELOAD = ["slime_logging.demo.preload"]


def _arguments(tensor_parallel_size: int, num_rollouts: int) -> Namespace:
    args = job_arguments(JobOptions(trackers=(), tensor_parallel_size=tensor_parallel_size))
    args.num_rollout, args.start_rollout_id = num_rollouts, 0
    return args


@dataclass
class Training:
    """The reward of each rollout, and the last metrics of each role in it."""

    rewards: list[float] = field(default_factory=list)
    metrics: list[dict[str, dict[str, float]]] = field(default_factory=list)


def _train(tmp_path: Path, tensor_parallel_size: int, num_rollouts: int) -> Training:
    args = _arguments(tensor_parallel_size, num_rollouts)
    training = Training()
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
            learned = crew.answers(
                dict.fromkeys(actor + critic, ("learn", rollout_id, samples, values))
            )
            training.metrics.append({role: learned[group[0]] for role, group in groups.items()})
            training.rewards.append(float(samples["rewards"].mean()))
        crew.end()
    return training


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Eight rollouts of PPO on one rank a role."""
    return _train(tmp_path_factory.mktemp("one"), 1, 8)


def test_the_reward_rises(trained: Training) -> None:
    """From chance, 0.125, to twice of that in eight rollouts."""
    assert trained.rewards[0] == pytest.approx(0.125, abs=0.02)
    assert trained.rewards[-1] > 0.25


def test_the_engine_agrees_with_megatron(trained: Training) -> None:
    """The rollout engine and Megatron's forward give the same log probabilities to five digits."""
    assert max(each["actor"]["train_rollout_logprob_abs_diff"] for each in trained.metrics) < 1e-5


def test_the_roles_train_with_their_own_learning_rates(trained: Training) -> None:
    """The rates that the optimizers used are those of the role file: the actor's decays, the critic's warmed up."""
    assert trained.metrics[-1]["critic"]["lr-pg_0"] == 5e-3
    assert 4e-4 < trained.metrics[-1]["actor"]["lr-pg_0"] < 2e-3


@pytest.mark.parametrize("role", ["actor", "critic"])
def test_two_tensor_parallel_ranks_train_as_one(
    split: Training, trained: Training, role: str
) -> None:
    """The first two rollouts give the same rewards, losses and gradients, to three digits, however split."""
    assert split.rewards == pytest.approx(trained.rewards[:2])
    for two, one in zip(split.metrics, trained.metrics, strict=False):
        assert two[role]["loss"] == pytest.approx(one[role]["loss"], rel=1e-3, abs=1e-4)
        assert two[role]["grad_norm"] == pytest.approx(one[role]["grad_norm"], rel=1e-3)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Two rollouts of PPO on two tensor-parallel ranks a role."""
    return _train(tmp_path_factory.mktemp("two"), 2, 2)
