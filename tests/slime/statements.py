"""What docs/slime.md says of slime and of us in it, tried in a process in which slime and Megatron-LM are installed.

Run with the flags of a job; what was found is printed as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from argparse import Namespace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import slime.utils.arguments as arguments
import wandb
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


class Door(BaseHTTPRequestHandler):
    """A W&B server that lets nobody in, and counts who knocks."""

    num_asked = 0

    def do_POST(self) -> None:
        Door.num_asked += 1
        self.send_error(401)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass


def runs_of_wandb(found: dict, args: Namespace) -> None:
    """slime's own W&B runs: offline two of them, one after the other, then one that says it is off."""
    server = HTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {
        "WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "WANDB_API_KEY": "0123456789" * 4,
        "WANDB_INIT_TIMEOUT": "5",
    }
    args = Namespace(**vars(args) | {"use_wandb": True, "wandb_group": "g", "wandb_dir": "."})
    args.wandb_random_suffix = False
    args.wandb_project, args.wandb_mode, args.wandb_run_id = "p", "offline", "mine"
    wandb_utils.init_wandb_primary(args)
    found["run id"] = args.wandb_run_id == "mine"
    wandb.finish()
    wandb_utils.init_wandb_secondary(args, role="actor")
    wandb.finish()
    folders = [path.name for path in Path("wandb").glob("offline-run-*")]
    found["offline runs"] = sum(name.endswith(args.wandb_run_id) for name in folders)
    args.wandb_mode = "disabled"
    found["refused at the start"] = refusal(wandb_utils.init_wandb_primary, args) is not None
    found["asked though disabled"] = Door.num_asked > 0
    server.shutdown()


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
    runs_of_wandb(found, args)
    calls(found, args)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
