"""The process of one rank of the actor or the critic.

Policy: resolves its own arguments from the role file, as slime's train actors do, trains with
exactly those, and lets only the main rank of the role join the run and log. What it logs has
slime's names: `train/<key>` for the actor, `train/critic-<key>` for the critic.
"""

from __future__ import annotations

import logging
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import slime_logging
from slime_logging.demo import cpu, ppo, preload, toy  # noqa: F401 - quiet and one thread, also where spawned
from slime_logging.demo.learner import Learner, Metrics

WORLD_TIMEOUT_S = 60.0


class Worker:
    """Serves the commands of the driver for one rank; every rank of a role gets the same ones."""

    def __init__(self, base_args: Namespace, role: str, rank: int, rendezvous: Path) -> None:
        self._role = role
        with _quiet():
            self._args = slime_logging.parse_megatron_role_args(
                base_args, base_args.megatron_config_path, role
            )
        self._args.rank = self._args.local_rank = rank
        cpu.patch_megatron()
        cpu.open_world(rendezvous, rank, self._args.tensor_model_parallel_size, WORLD_TIMEOUT_S)
        self._is_main = cpu.is_main_rank()
        self._num_rows = 0
        if self._is_main:
            slime_logging.init_tracking(self._args, primary=False, role=role)
        self._learn_sizes()
        self._learner = Learner(self._args, role)

    def commands(self) -> Mapping[str, Callable[..., Any]]:
        """`ready`, `weights`, `values` (critic), `learn`, `num_rows`."""
        return {
            "ready": lambda: self._args.start_rollout_id,
            "weights": self._weights,
            "values": self._values,
            "learn": self._learn_critic if self._role == "critic" else self._learn_actor,
            "num_rows": lambda: self._num_rows,
        }

    def close(self, exit_code: int) -> None:
        """Finish tracking, and leave the role's gloo world."""
        if self._is_main:
            slime_logging.finish_tracking(self._args, exit_code)
        if exit_code == 0:
            cpu.close_world()

    def _learn_sizes(self) -> None:
        # As in slime, only here are these known: from the tokenizer, and from the number of
        # rollouts.
        args = self._args
        args.vocab_size = toy.VOCAB_SIZE
        args.padded_vocab_size = toy.padded(toy.VOCAB_SIZE, args)
        args.train_iters = args.num_rollout * args.num_steps_per_rollout
        args.start_rollout_id = 0
        if self._is_main:
            names = ("vocab_size", "padded_vocab_size", "train_iters", "start_rollout_id")
            slime_logging.log_config(
                args, {name: getattr(args, name) for name in names}, role=self._role
            )

    def _weights(self) -> dict[str, Any] | None:
        weights = self._learner.whole_weights()
        return weights if self._is_main else None

    def _values(self, samples: dict[str, Any]) -> Any:
        values = self._learner.predict(torch.from_numpy(samples["tokens"]))
        return values.numpy() if self._is_main else None

    def _learn_critic(self, rollout_id: int, samples: dict[str, Any], values: Any) -> Metrics:
        tokens, old_values = torch.from_numpy(samples["tokens"]), torch.from_numpy(values)
        rewards = torch.from_numpy(samples["rewards"])
        _, returns = ppo.generalized_advantages(
            rewards, old_values, self._args.gamma, self._args.lambd
        )
        return self._learn(rollout_id, {"tokens": tokens, "values": old_values, "returns": returns})

    def _learn_actor(self, rollout_id: int, samples: dict[str, Any], values: Any | None) -> Metrics:
        args = self._args
        tokens, rewards = torch.from_numpy(samples["tokens"]), torch.from_numpy(samples["rewards"])
        rollout_log_probs = torch.from_numpy(samples["log_probs"])
        started_s = time.perf_counter()
        log_probs = self._learner.predict(tokens)
        seen = {"log_probs": log_probs, "rollout_log_probs": rollout_log_probs}
        if values is None:
            num_tokens = log_probs.shape[1]
            advantages = ppo.group_advantages(
                rewards, args.n_samples_per_prompt, num_tokens, args.grpo_std_normalization
            )
        else:
            old_values = torch.from_numpy(values)
            advantages, returns = ppo.generalized_advantages(
                rewards, old_values, args.gamma, args.lambd
            )
            seen |= {"values": old_values, "returns": returns}
        seen["advantages"] = advantages
        log_probs_s = time.perf_counter() - started_s
        self._log(
            "rollout/step",
            rollout_id,
            {f"rollout/{name}": each.mean().item() for name, each in seen.items()},
        )
        if args.normalize_advantages:
            advantages = ppo.whiten(advantages)
        batch = {"tokens": tokens, "log_probs": log_probs, "rollout_log_probs": rollout_log_probs}
        metrics = self._learn(rollout_id, {**batch, "advantages": advantages})
        train_s = time.perf_counter() - started_s
        speed = {"perf/log_probs_time": log_probs_s, "perf/train_time": train_s}
        self._log(
            "rollout/step",
            rollout_id,
            {**speed, "perf/train_tokens_per_s": tokens.numel() / train_s},
        )
        return metrics

    def _learn(self, rollout_id: int, batch: dict[str, Any]) -> Metrics:
        prefix = "train/critic-" if self._role == "critic" else "train/"
        metrics: Metrics = {}
        for number, metrics in enumerate(self._learner.learn(batch)):
            step = rollout_id * self._args.num_steps_per_rollout + number
            self._log("train/step", step, {prefix + name: value for name, value in metrics.items()})
        return metrics

    def _log(self, step_key: str, step: int, metrics: Mapping[str, float]) -> None:
        if self._is_main:
            slime_logging.log(self._args, {**metrics, step_key: step}, step_key)
            self._num_rows += 1


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what there is to say of the role file: the driver has said it, and each rank would
    say it again.
    """
    logger = logging.getLogger("slime_logging")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
