"""How long serialising and redacting the configuration of a PPO job takes, beside slime's way of making one.

Run by hand for more figures: `python -m tests.bench.bench_config`. The configuration is that of two roles with 873
arguments each, with secrets in the arguments and a dozen in the environment. Each figure is the median of 30 runs;
"first" is the first time in a process, when no name is remembered yet and no pattern compiled, which is what a job pays
at its start. slime deep-copies the arguments once a role and hands dictionaries to its tracker, which writes JSON;
unlike here, no value is looked at and nothing is hidden.
"""

from __future__ import annotations

import copy
import json
import statistics
import time
from argparse import Namespace
from collections.abc import Callable

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.redaction.redact import Redactor
from slime_logging.values.serialize import arguments_to_json
from tests.bench import Figure, figure, ratios, take_turns

ENVIRON = {
    f"SERVICE_{number}_API_KEY": f"canary-{number:02d}-0123456789abcdef" for number in range(12)
} | {f"SOME_VARIABLE_{number}": f"/some/path/{number}" for number in range(100)}
NUM_RUNS = 30
LIMIT_MS = 25.0
OTHER = "deepcopy + json.dumps"


def roles() -> tuple[Namespace, Namespace]:
    """The arguments of the actor and of the critic, with secrets in them."""
    actor, critic = ppo_namespace(), ppo_namespace()
    for args in (actor, critic):
        args.wandb_key = "canary-wandb-0123456789abcdef0123456789abcdef"
        args.train_env_vars = '{"HF_TOKEN": "canary-env-0123456789", "NCCL_DEBUG": "INFO"}'
    return actor, critic


def median_ms(run: Callable[[], object]) -> float:
    """Milliseconds of the median run."""
    times = []
    for _ in range(NUM_RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def as_slime(args: Namespace) -> str:
    """A deep copy of the arguments as JSON text, as slime and its tracker make it."""
    return json.dumps(vars(copy.deepcopy(args)), default=str)


def first_ms(actor: Namespace, critic: Namespace) -> tuple[float, float]:
    """Milliseconds of a process's first redactor, and of its first two configurations."""
    start = time.perf_counter()
    redactor = Redactor.of(actor, ENVIRON)
    learned = time.perf_counter()
    for args in (actor, critic):
        redactor.config(arguments_to_json(args))
    return (learned - start) * 1000, (time.perf_counter() - learned) * 1000


def run(quick: bool = False) -> list[Figure]:
    """Two figures: the configuration of both roles beside slime's way, and what the first one in a process costs."""
    actor, critic = roles()
    first_of, first_config = first_ms(actor, critic)
    redactor = Redactor.of(actor, ENVIRON)
    contestants: dict[str, Callable[[], object]] = {
        "ours": lambda: [redactor.config(arguments_to_json(args)) for args in (actor, critic)],
        OTHER: lambda: [as_slime(args) for args in (actor, critic)],
    }
    rounds = take_turns(contestants, 2 if quick else NUM_RUNS)
    ours_ms = statistics.median(rounds["ours"]) * 1000
    others = {OTHER: statistics.median(rounds[OTHER]) * 1000}
    num_names = len(vars(actor))
    return [
        figure(
            f"serialise and redact a configuration of 2 x {num_names} names",
            ours_ms,
            "ms",
            n=len(rounds["ours"]),
            others=others,
            ratio=ratios(rounds, "ours"),
            target=f"below {LIMIT_MS:g} ms",
            is_met=ours_ms < LIMIT_MS,
        ),
        figure("the same, the first time in a process", first_config, "ms", n=1, others=others),
        figure(
            "learn the secrets of arguments and environment, the first time in a process",
            first_of,
            "ms",
            n=1,
        ),
    ]


def main() -> None:
    """Print the figures."""
    actor, critic = roles()
    first_of, first_config = first_ms(actor, critic)
    redactor = Redactor.of(actor, ENVIRON)
    row = {f"train/critic-metric_{number}": 0.5 for number in range(40)}
    figures = {
        "Redactor.of, first (once a process)": first_of,
        "Redactor.of, median": median_ms(lambda: Redactor.of(actor, ENVIRON)),
        "serialise + redact, first": first_config,
        "serialise + redact, median": median_ms(
            lambda: [redactor.config(arguments_to_json(args)) for args in (actor, critic)]
        ),
        "serialise alone, median": median_ms(
            lambda: [arguments_to_json(args) for args in (actor, critic)]
        ),
        "deepcopy + json.dumps, median": median_ms(
            lambda: [as_slime(args) for args in (actor, critic)]
        ),
        "row of 40 metrics, median": median_ms(lambda: redactor.row(row)),
    }
    for name, ms in figures.items():
        print(f"{name:40} {ms:8.3f} ms")
    ratio = figures["serialise + redact, median"] / figures["deepcopy + json.dumps, median"]
    print(
        f"serialise + redact is {ratio:.2f} times deepcopy + json.dumps of the same two namespaces"
    )


if __name__ == "__main__":
    main()
