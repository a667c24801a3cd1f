"""The smallest job with everything: a driver and two roles in processes of their own, in one run.

    python configs/own_job.py --use-trackio --megatron-config-path configs/own_roles.yaml

Replace `train` by your training. Nothing here needs torch.
"""

from __future__ import annotations

import argparse
import multiprocessing

import slime_logging


def main() -> None:
    """The driver: makes the run, starts the roles, and finishes the run with the right exit
    code.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-6)
    parser.add_argument("--clip-grad", type=float, default=1.0)
    parser.add_argument("--num-steps", type=int, default=20)
    parser.add_argument("--use-critic", action="store_true", default=True)
    parser.add_argument("--megatron-config-path", default=None)
    slime_logging.add_tracking_arguments(parser)
    args = parser.parse_args()

    with slime_logging.tracked(args):
        # The arguments carry the run to the other processes, pickled as Ray would do it.
        context = multiprocessing.get_context("spawn")
        roles = [context.Process(target=train, args=(args, role)) for role in ("actor", "critic")]
        for role in roles:
            role.start()
        for role in roles:
            role.join()
        if any(role.exitcode for role in roles):
            raise SystemExit("a role failed")


def train(base_args: argparse.Namespace, role: str) -> None:
    """One role: its arguments are the job's with the role file's overrides, and are what it logs
    and what it uses.
    """
    args = slime_logging.parse_megatron_role_args(base_args, base_args.megatron_config_path, role)
    prefix = "train/critic-" if role == "critic" else "train/"
    with slime_logging.tracked(args, primary=False, role=role):
        for step in range(args.num_steps):
            loss = 1.0 / (1.0 + args.lr * 1e5 * step)
            slime_logging.log(args, {prefix + "loss": loss, "train/step": step}, "train/step")


if __name__ == "__main__":
    main()
