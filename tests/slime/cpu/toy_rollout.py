"""A rollout function and a data source of slime, without an engine: the same samples in every run."""

from __future__ import annotations

import random

from slime.rollout.base_types import RolloutFnEvalOutput, RolloutFnTrainOutput
from slime.utils.types import Sample


def _sample(group: int, index: int, dice: random.Random) -> Sample:
    length = dice.randint(4, 12)
    return Sample(
        group_index=group,
        index=index,
        prompt="p",
        tokens=[dice.randrange(60) for _ in range(6 + length)],
        response="x" * length,
        response_length=length,
        reward=float(dice.random() < 0.5),
        status=Sample.Status.COMPLETED,
        rollout_log_probs=[-0.5] * length,
    )


def generate(args, rollout_id, data_source, evaluation=False):
    dice = random.Random(rollout_id)
    if evaluation:
        samples = [_sample(0, index, dice) for index in range(4)]
        toy = {
            "rewards": [one.reward for one in samples],
            "truncated": [False] * 4,
            "samples": samples,
        }
        return RolloutFnEvalOutput(data={"toy": toy})
    width = args.n_samples_per_prompt
    groups = [
        [_sample(group, group * width + index, dice) for index in range(width)]
        for group in range(args.rollout_batch_size)
    ]
    return RolloutFnTrainOutput(samples=groups, metrics={"custom/ratio": 0.25})


class Source:
    def __init__(self, args) -> None: ...

    def get_samples(self, count):
        return []

    def add_samples(self, samples) -> None: ...

    def save(self, rollout_id) -> None: ...

    def load(self, rollout_id=None) -> None: ...

    def __len__(self) -> int:
        return 8
