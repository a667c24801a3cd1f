"""Parsing a role file with 50 overrides against 873 arguments, beside `yaml.safe_load` and a deep copy of them.

Both take turns in one process, on the same file. The namespace is a new object each time, so that ours reads the file
each time. Ours checks every value, derives, and resolves and compares both roles; slime's way sets one role's.
"""

from __future__ import annotations

import copy
import functools
import tempfile
from argparse import Namespace
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.megatron.requirements import REQUIREMENTS
from slime_logging.roles.roles import parse_megatron_role_args
from slime_logging.roles.rules import TOPOLOGY, rejection
from tests.bench import Figure, figure, ratios, take_turns

NUM_OVERRIDES = 50
NUM_ROUNDS = 30
LIMIT_MS = 20.0
OTHER = "yaml.safe_load + deepcopy"


def overrides(base: Namespace) -> dict[str, Any]:
    """Numbers and texts of the job that a role may have of its own, with other values."""
    # slime takes `load` from `ref_load` where there is no checkpoint yet.
    refused = {"load", *TOPOLOGY, *(key for rule in REQUIREMENTS for key in rule.keys)}
    found: dict[str, Any] = {"lr": 2e-6, "weight_decay": 0.0}
    for name, option in OptionTable.shipped().items():
        value = getattr(base, name, None)
        if (
            name in refused
            or rejection(name)
            or option.choices
            or option.is_list
            or len(found) == NUM_OVERRIDES
        ):
            continue
        if isinstance(value, float):
            found.setdefault(name, value + 0.25)
        elif isinstance(value, str) and option.kind == "str":
            found.setdefault(name, f"{value}-more")
    return found


def as_slime_does(base: Namespace, path: str) -> Namespace:
    """Read with PyYAML, copy the namespace deeply, set the attributes; no value is checked."""
    with Path(path).open() as file:
        entries = yaml.safe_load(file)["megatron"]
    args = copy.deepcopy(base)
    for name, value in entries[0]["overrides"].items():
        setattr(args, name, value)
    return args


def ours(base: Namespace, path: str) -> Namespace:
    """The actor's arguments, read anew."""
    return parse_megatron_role_args(copy.copy(base), path, "actor")


def run(quick: bool = False) -> list[Figure]:
    """One figure: the median time of ours, beside the other's."""
    base = ppo_namespace()
    wanted = overrides(base)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "roles.yaml")
        Path(path).write_text(
            yaml.safe_dump({"megatron": [{"role": "actor", "overrides": wanted}]})
        )
        resolved = ours(base, path)
        if any(getattr(resolved, key) != value for key, value in wanted.items()):
            raise AssertionError("a value was not set")
        contestants = {
            "ours": functools.partial(ours, base, path),
            OTHER: functools.partial(as_slime_does, base, path),
        }
        rounds = take_turns(contestants, 2 if quick else NUM_ROUNDS)
    ours_ms = median(rounds["ours"]) * 1e3
    return [
        figure(
            f"parse a role file with {len(wanted)} overrides, {len(vars(base))} arguments",
            ours_ms,
            "ms",
            n=len(rounds["ours"]),
            others={OTHER: median(rounds[OTHER]) * 1e3},
            ratio=ratios(rounds, "ours"),
            target=f"below {LIMIT_MS:g} ms",
            is_met=ours_ms < LIMIT_MS,
        )
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
