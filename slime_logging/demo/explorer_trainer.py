"""Two roles that never wait for each other: an explorer that gathers experience, and a trainer that
learns from it.

Policy: each has a process, arguments and a step counter of its own, `explorer/*` on `explorer/step`
and `trainer/*` on `trainer/step`, in one run. Started alone, a role is the primary of a run of its
own: the explorer explores with the weights it began with, the trainer learns from experience of a
policy that chooses at random. The task is a contextual bandit: for each context one of 16 actions
earns 1.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import torch

import slime_logging
from slime_logging.demo import cpu

cpu.pin_to_one_thread()

ROLES = ("explorer", "trainer")
NUM_ACTIONS = 16
Batch = dict[str, Any]


def bandit_namespace() -> Namespace:
    """Return the arguments that both roles share."""
    return Namespace(
        context_size=12,
        hidden_size=64,
        num_actions=NUM_ACTIONS,
        seed=1234,
        sync_interval=4,
        buffer_batches=8,
        use_critic=False,
    )


def role_arguments(base: Namespace, role: str) -> Namespace:
    """Return the arguments of one role: the shared ones and its own."""
    args = copy(base)
    own = {
        "explorer": {"batch_size": 64, "temperature": 1.0},
        "trainer": {
            "batch_size": 256,
            "lr": 5e-3,
            "weight_decay": 1e-4,
            "clip_grad": 1.0,
            "entropy_coef": 0.01,
        },
    }
    for name, value in own[role].items():
        setattr(args, name, value)
    return args


class Explorer:
    """Samples actions with the newest weights it was given, and meets the reward."""

    def __init__(self, args: Namespace, is_primary: bool) -> None:
        self._args = args
        slime_logging.init_tracking(args, primary=is_primary, role="explorer")
        self._random = torch.Generator().manual_seed(args.seed + 1)
        self._best = _best_actions(args)
        self._policy = _policy(args)
        self._version = 0
        self.num_rows = 0

    def commands(self) -> Mapping[str, Callable[..., Any]]:
        """`ready`, `explore`."""
        return {"ready": lambda: True, "explore": self.explore}

    def explore(self, version: int, weights: Batch | None) -> Batch:
        """Take over new weights, if there are any, act once for each context of a batch, and return
        what happened.
        """
        args, started_s = self._args, time.perf_counter()
        if weights is not None:
            self._policy.load_state_dict(
                {name: torch.from_numpy(values) for name, values in weights.items()}
            )
            self._version = version
        contexts = torch.randn(args.batch_size, args.context_size, generator=self._random)
        with torch.no_grad():
            log_probs = torch.log_softmax(self._policy(contexts) / args.temperature, dim=-1)
        actions = torch.multinomial(log_probs.exp(), 1, generator=self._random)
        rewards = (actions.squeeze(1) == self._best(contexts)).float()
        metrics = {
            "explorer/reward": rewards.mean().item(),
            "explorer/entropy": -(log_probs.exp() * log_probs).sum(-1).mean().item(),
            "explorer/weights_version": self._version,
            "explorer/samples_per_s": args.batch_size / (time.perf_counter() - started_s),
        }
        slime_logging.log(args, {**metrics, "explorer/step": self.num_rows}, "explorer/step")
        self.num_rows += 1
        found = {
            "contexts": contexts,
            "actions": actions,
            "rewards": rewards,
            "log_probs": log_probs.gather(1, actions),
        }
        return {name: values.numpy() for name, values in found.items()} | {"version": self._version}

    def close(self, exit_code: int) -> None:
        """Finish tracking."""
        slime_logging.finish_tracking(self._args, exit_code)


class Trainer:
    """Improves the policy on batches of whatever age, by the policy gradient with clipped
    importance weights.
    """

    def __init__(self, args: Namespace, is_primary: bool) -> None:
        self._args = args
        slime_logging.init_tracking(args, primary=is_primary, role="trainer")
        self._policy = _policy(args)
        self._optimizer = torch.optim.AdamW(
            self._policy.parameters(), lr=args.lr, weight_decay=args.weight_decay
        )
        self.loss = 0.0
        self.num_rows = 0

    def commands(self) -> Mapping[str, Callable[..., Any]]:
        """`ready`, `train`."""
        return {"ready": lambda: True, "train": self.train}

    def train(self, batches: list[Batch]) -> Batch:
        """Train one step on all batches together and return the new weights."""
        args = self._args
        contexts, actions, rewards, old_log_probs = (
            torch.cat([torch.from_numpy(batch[name]) for batch in batches])
            for name in ("contexts", "actions", "rewards", "log_probs")
        )
        every = torch.log_softmax(self._policy(contexts), dim=-1)
        weights = (every.gather(1, actions) - old_log_probs).exp().clamp(max=2.0)
        entropy = -(every.exp() * every).sum(-1).mean()
        loss = (
            -(weights.squeeze(1) * (rewards - rewards.mean())).mean() - args.entropy_coef * entropy
        )
        self._optimizer.zero_grad()
        self.loss = loss.item()
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(self._policy.parameters(), args.clip_grad)
        self._optimizer.step()
        metrics = {
            "trainer/loss": self.loss,
            "trainer/grad_norm": grad_norm.item(),
            "trainer/entropy": entropy.item(),
            "trainer/age": self.num_rows
            - sum(batch["version"] for batch in batches) / len(batches),
        }
        slime_logging.log(args, {**metrics, "trainer/step": self.num_rows}, "trainer/step")
        self.num_rows += 1
        return {name: values.numpy().copy() for name, values in self._policy.state_dict().items()}

    def close(self, exit_code: int) -> None:
        """Finish tracking."""
        slime_logging.finish_tracking(self._args, exit_code)


class RandomExperience:
    """Experience of a policy that chooses at random: what a trainer alone learns from."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._random = torch.Generator().manual_seed(args.seed + 2)
        self._best = _best_actions(args)

    def batch(self, size: int) -> Batch:
        """Return `size` samples, of version 0."""
        contexts = torch.randn(size, self._args.context_size, generator=self._random)
        actions = torch.randint(NUM_ACTIONS, (size, 1), generator=self._random)
        found = {
            "contexts": contexts,
            "actions": actions,
            "rewards": (actions[:, 0] == self._best(contexts)).float(),
        }
        found["log_probs"] = torch.full((size, 1), 1 / NUM_ACTIONS).log()
        return {name: values.numpy() for name, values in found.items()} | {"version": 0}


class Buffer:
    """The newest batches of experience, between the two roles."""

    def __init__(self, args: Namespace) -> None:
        self._batches: deque[Batch] = deque(maxlen=args.buffer_batches)

    def add(self, batch: Batch) -> None:
        """Add a batch; the oldest falls out when there are too many."""
        self._batches.append(batch)

    def newest(self, num_samples: int) -> list[Batch]:
        """Return the newest batches that hold `num_samples` together, or fewer if there are not as
        many.
        """
        chosen: list[Batch] = []
        for batch in reversed(self._batches):
            if sum(len(each["rewards"]) for each in chosen) >= num_samples:
                break
            chosen.append(batch)
        return chosen


def _policy(args: Namespace) -> Any:
    torch.manual_seed(args.seed)
    hidden = torch.nn.Linear(args.context_size, args.hidden_size)
    return torch.nn.Sequential(
        hidden, torch.nn.Tanh(), torch.nn.Linear(args.hidden_size, args.num_actions)
    )


def _best_actions(args: Namespace) -> Callable[[Any], Any]:
    truth = torch.randn(
        args.context_size, NUM_ACTIONS, generator=torch.Generator().manual_seed(args.seed)
    )
    return lambda contexts: (contexts @ truth).argmax(dim=1)
