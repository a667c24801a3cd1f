"""What docs/slime.md says of slime and of us in it, tried in a process in which slime and Megatron-LM are installed.

Run with the flags of a job; what was found is printed as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

import slime.utils.arguments as arguments
from slime.observability import logging_utils, wandb_utils

import slime_logging

ROLE_FILE = """
megatron:
  - role: critic
    overrides: {lr_warmup_fraction: 1e-2, use_kl_loss: "false", learning_rate: 1.0e-5, weight_decay: 0.0}
"""
OURS = ["--use-trackio", "--tracking-dir", "here"]


def refusal(call, *args, **options):
    """The name of the exception that a call ends in; None where it ends well."""
    try:
        call(*args, **options)
    except Exception as error:
        return type(error).__name__
    return None


def flags(found: dict) -> Namespace:
    plain = list(sys.argv)
    sys.argv = [*plain, *OURS]
    found["flags that slime does not know"] = hasattr(arguments.parse_args(), "use_trackio")
    hook = partial(slime_logging.add_tracking_arguments, only_ours=True)
    args = arguments.parse_args(add_custom_arguments=hook)
    found["flags by the hook"] = [args.use_trackio, args.tracking_dir]
    everything = slime_logging.add_tracking_arguments
    refused = refusal(arguments.parse_args, add_custom_arguments=everything)
    found["all flags by the hook"] = refused == argparse.ArgumentError.__name__
    sys.argv = plain
    return arguments.parse_args()


def roles(found: dict, args: Namespace) -> None:
    path = Path("roles.yaml")
    path.write_text(ROLE_FILE)
    theirs = arguments.parse_megatron_role_args(args, str(path), "critic")
    names = ("lr_warmup_fraction", "use_kl_loss", "learning_rate", "end_weight_decay")
    found["slime's roles"] = [getattr(theirs, name) for name in names]
    exec("from slime_logging import parse_megatron_role_args", vars(arguments))
    try:
        arguments.parse_megatron_role_args(args, str(path), "critic")
    except ValueError as error:
        found["our mistakes"] = str(error)
    path.write_text(ROLE_FILE.replace("learning_rate: 1.0e-5, ", ""))
    ours = arguments.parse_megatron_role_args(args, str(path), "critic")
    found["our roles"] = [getattr(ours, name, None) for name in names]


def calls(found: dict, args: Namespace) -> None:
    """slime's own calls of tracking, before ours take their place."""
    args.use_wandb, args.wandb_mode, args.wandb_group = True, "offline", None
    found["no group"] = refusal(wandb_utils.init_wandb_primary, args)
    row = {"train/step": 1, "train/loss": 0.5}
    found["never joined"] = refusal(logging_utils.log, args, row, "train/step") is not None
    args.use_wandb, args.use_tensorboard, args.tb_project_name = False, True, "p"
    args.tb_experiment_name = "e"
    found["no step"] = refusal(logging_utils.log, args, {"train/loss": 0.5}, "train/step")
    args.wandb_key = "0123456789abcdef" * 2
    config = wandb_utils._compute_config_for_logging(args)
    found["key in the configuration"] = sum(value == args.wandb_key for value in config.values())
    for name in ("log", "init_tracking", "finish_tracking"):
        exec(f"from slime_logging import {name}", vars(logging_utils))
    found["our calls"] = [
        refusal(logging_utils.log, args, row, "train/step"),
        refusal(logging_utils.finish_tracking, args),
    ]


def main() -> None:
    found: dict = {}
    args = flags(found)
    roles(found, args)
    calls(found, args)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
