"""Parsing a role file with 50 overrides against 873 arguments, beside `yaml.safe_load` and a deep copy of them; and
the same by a job's own parser, which parses its command line with and without them, beside one such parse.

All take turns in one process, on the same file. The namespace is a new object each time, so that ours reads the file
each time. Ours checks every value, derives, and resolves and compares both roles; slime's way sets one role's.
"""

from __future__ import annotations

import copy
import functools
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.flags import arguments_of_flags
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.megatron.requirements import REQUIREMENTS
from slime_logging.roles.roles import EXACT, parse_megatron_role_args, parse_role_file
from slime_logging.roles.rules import TOPOLOGY, rejection
from tests.bench import Figure, figure, ratios, take_turns

NUM_OVERRIDES = 50
NUM_ROUNDS = 30
LIMIT_MS = 20.0
OTHER = "yaml.safe_load + deepcopy"
ONE_PARSE = "one parse of the command line"
FLAGS = ["--lr", "1e-6", "--advantage-estimator", "ppo", "--num-layers", "4", "--hidden-size", "64"]


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


def reparse(words: list[str]) -> Namespace:
    """A parser of the size of a job's, and what follows from its values."""
    return arguments_of_flags(words)[0]


def exact(base: Namespace, path: str) -> Namespace:
    """The actor's arguments by the job's parser, which has not been asked before."""
    found = parse_role_file(copy.copy(base), path, reparse=functools.partial(reparse))
    if found.basis != EXACT:
        raise AssertionError(found.warnings)
    return found.args["actor"]


def run(quick: bool = False) -> list[Figure]:
    """The median times of ours, each beside the other's."""
    return [by_the_tables(quick), by_the_jobs_parser(quick)]


def by_the_jobs_parser(quick: bool) -> Figure:
    """Two parses in processes of their own, and the comparison."""
    own, sys.argv = sys.argv, ["train.py", *FLAGS]
    try:
        base = reparse(FLAGS)
        wanted = overrides(base)
        with tempfile.TemporaryDirectory() as folder:
            path = written(folder, wanted)
            contestants = {
                "ours": functools.partial(exact, base, path),
                ONE_PARSE: functools.partial(reparse, FLAGS),
            }
            rounds = take_turns(contestants, 2 if quick else NUM_ROUNDS)
    finally:
        sys.argv = own
    return figure(
        f"the same by the job's own parser, {len(wanted)} overrides",
        median(rounds["ours"]) * 1e3,
        "ms",
        n=len(rounds["ours"]),
        others={ONE_PARSE: median(rounds[ONE_PARSE]) * 1e3},
        ratio=ratios(rounds, "ours"),
    )


def written(folder: str, wanted: dict[str, Any]) -> str:
    """The role file, in a folder."""
    path = Path(folder) / "roles.yaml"
    path.write_text(yaml.safe_dump({"megatron": [{"role": "actor", "overrides": wanted}]}))
    return str(path)


def by_the_tables(quick: bool) -> Figure:
    """Without a parser of the job's."""
    base = ppo_namespace()
    wanted = overrides(base)
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, wanted)
        resolved = ours(base, path)
        if any(getattr(resolved, key) != value for key, value in wanted.items()):
            raise AssertionError("a value was not set")
        contestants = {
            "ours": functools.partial(ours, base, path),
            OTHER: functools.partial(as_slime_does, base, path),
        }
        rounds = take_turns(contestants, 2 if quick else NUM_ROUNDS)
    ours_ms = median(rounds["ours"]) * 1e3
    return figure(
        f"parse a role file with {len(wanted)} overrides, {len(vars(base))} arguments",
        ours_ms,
        "ms",
        n=len(rounds["ours"]),
        others={OTHER: median(rounds[OTHER]) * 1e3},
        ratio=ratios(rounds, "ours"),
        target=f"below {LIMIT_MS:g} ms",
        is_met=ours_ms < LIMIT_MS,
    )


if __name__ == "__main__":
    for row in run():
        print(row)
