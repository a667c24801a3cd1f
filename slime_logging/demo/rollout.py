"""The rollout process: the prompts, the engine that answers them, and the reward.

Policy: joins the run as a secondary without a role, as slime's rollout manager does, and logs
`rollout/*`, `perf/*` and `eval/*`. It knows how many rollouts the data give; the driver does not.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

import torch

import slime_logging
from slime_logging.demo import ppo, preload, toy  # noqa: F401 - quiet and one thread, also where spawned
from slime_logging.demo.engine import Engine


class Prompts:
    """Random prompts, the same for the same seed: `rollouts` batches for training, and one batch
    for evaluation.
    """

    def __init__(self, args: Namespace, num_rollouts: int) -> None:
        generator = torch.Generator().manual_seed(args.rollout_seed)
        size = (num_rollouts + 1, args.rollout_batch_size, args.rollout_max_prompt_len)
        every = torch.randint(toy.VOCAB_SIZE, size, generator=generator)
        self.held_out, self._batches = every[0], every[1:]

    def __len__(self) -> int:
        return len(self._batches)

    def batch(self, rollout_id: int) -> Any:
        """Return the prompts of one rollout: int64 [rollout_batch_size, prompt tokens]."""
        return self._batches[rollout_id % len(self)]


class RolloutManager:
    """Serves the driver's commands: tells the number of rollouts, takes weights, generates,
    evaluates.
    """

    def __init__(self, args: Namespace, num_rollouts: int) -> None:
        self._args = args
        slime_logging.init_tracking(args, primary=False)
        self._prompts = Prompts(args, num_rollouts)
        # The vocabulary is the tokenizer's, which this process has too.
        args.vocab_size = toy.VOCAB_SIZE
        self._engine = Engine(args)
        self._num_rows = 0

    def commands(self) -> Mapping[str, Callable[..., Any]]:
        """`num_rollout_per_epoch`, `load`, `generate`, `evaluate`, `num_rows`."""
        return {
            "num_rollout_per_epoch": lambda: len(self._prompts),
            "load": self._engine.load,
            "generate": self._generate,
            "evaluate": self._evaluate,
            "num_rows": lambda: self._num_rows,
        }

    def close(self, exit_code: int) -> None:
        """Finish tracking."""
        slime_logging.finish_tracking(self._args, exit_code)

    def _generate(self, rollout_id: int) -> dict[str, Any]:
        args = self._args
        started_s = time.perf_counter()
        prompts = self._prompts.batch(rollout_id).repeat_interleave(
            args.n_samples_per_prompt, dim=0
        )
        tokens, log_probs = self._engine.write(
            prompts, args.rollout_max_response_len, args.rollout_temperature
        )
        rewards = ppo.reward(tokens[:, prompts.shape[1] :])
        took_s = time.perf_counter() - started_s
        groups = rewards.view(-1, args.n_samples_per_prompt)
        self._log(
            "rollout/step",
            rollout_id,
            {
                "rollout/raw_reward": rewards.mean().item(),
                "rollout/raw_reward_std": rewards.std().item(),
                "rollout/raw_reward_best_of_group": groups.max(dim=1).values.mean().item(),
                "rollout/response_len/mean": float(log_probs.shape[1]),
                "rollout/truncated_ratio": 1.0,
                "perf/rollout_time": took_s,
                "perf/rollout_tokens_per_s": log_probs.numel() / took_s,
            },
        )
        batch = {"tokens": tokens, "log_probs": log_probs, "rewards": rewards}
        return {name: values.numpy() for name, values in batch.items()}

    def _evaluate(self, rollout_id: int) -> float:
        args, prompts = self._args, self._prompts.held_out
        tokens, log_probs = self._engine.write(
            prompts, args.eval_max_response_len, args.eval_temperature
        )
        result = float(ppo.reward(tokens[:, prompts.shape[1] :]).mean())
        self._log(
            "eval/step",
            rollout_id,
            {"eval/toy": result, "eval/toy/log_probs": log_probs.mean().item()},
        )
        return result

    def _log(self, step_key: str, step: int, metrics: Mapping[str, float]) -> None:
        slime_logging.log(self._args, {**metrics, step_key: step}, step_key)
        self._num_rows += 1
