"""`log_samples` of 64 samples of 16 KiB: a step's completions, whole, redacted and with the operating system when it returns.

Beside it the least that durable samples take: the same texts as JSON lines, in one write. Prose has next to no place
where a secret could stand; code has many (long names, assignments).
"""

from __future__ import annotations

import random
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

import slime_logging
from tests.bench import Figure, figure, quantile, ratios, take_turns

NUM_SAMPLES, SAMPLE_CHARS, NUM_ROUNDS = 64, 16_384, 60
PROMISED_MS = 10.0
PROSE = [
    "the",
    "of",
    "let",
    "x",
    "=",
    "3",
    "solve:",
    "model",
    "token",
    "answer,",
    "therefore",
    "because",
    "we",
    "have",
    "(a+b)",
    "\\frac{1}{2}",
    "and",
    "3.14",
    "so",
    "that",
    "each",
    "step",
    "of",
    "it",
    "follows",
]
CODE = [
    *PROSE,
    *["train_rollout_logprob_diff", "self.model.forward(hidden)", "for_each(value)", "return"],
]
SECRETS = {"wandb_key": "0123456789abcdef0123456789abcdef01234567", "db_password": "hunter2x9"}


def run(quick: bool = False) -> list[Figure]:
    """Milliseconds a call."""
    with tempfile.TemporaryDirectory(
        prefix="bench-samples-", ignore_cleanup_errors=True
    ) as directory:
        return [
            _figure(f"64 samples of 16 KiB, {name}", words, Path(directory) / name, quick=quick)
            for name, words in (("prose", PROSE), ("code", CODE))
        ]


def _figure(name: str, words: Sequence[str], directory: Path, *, quick: bool) -> Figure:
    chosen = random.Random(1)
    texts = [
        " ".join(chosen.choices(words, k=SAMPLE_CHARS // 4))[:SAMPLE_CHARS]
        for _ in range(NUM_SAMPLES)
    ]
    args = Namespace(tracking_dir=str(directory), tracking_system_metrics="off", **SECRETS)
    steps = iter(range(1_000_000))

    def samples() -> list[dict[str, Any]]:
        step = next(steps)
        return [
            {"rollout/step": step, "prompt": "p", "completion": text, "reward": 0.5}
            for text in texts
        ]

    def floor() -> None:
        data = b"".join(orjson.dumps(sample) + b"\n" for sample in samples())
        (directory / f"floor-{next(steps)}").write_bytes(data)

    with slime_logging.tracked(args):
        rounds = take_turns(
            {
                "ours": lambda: slime_logging.log_samples(args, samples(), "rollout/step"),
                "orjson + one write": floor,
            },
            2 if quick else NUM_ROUNDS,
        )
    ours = quantile(rounds["ours"], 0.5) * 1000
    return figure(
        name,
        ours,
        "ms",
        n=len(rounds["ours"]),
        others={"orjson + one write": quantile(rounds["orjson + one write"], 0.5) * 1000},
        ratio=ratios(rounds, "ours"),
        target=f"<= {PROMISED_MS:g} ms",
        is_met=ours <= PROMISED_MS,
    )
