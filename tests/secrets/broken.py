"""A job whose W&B and MLflow servers are not there, with secrets in their addresses."""

from __future__ import annotations

import logging
import time
from argparse import Namespace

import slime_logging
from tests.secrets import canaries


def main() -> None:
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("PIL").setLevel(logging.INFO)
    args = Namespace(
        **canaries.arguments(),
        use_wandb=True,
        wandb_mode="online",
        wandb_host=canaries.address("address of wandb"),
        use_mlflow=True,
        mlflow_tracking_uri=canaries.address("address of mlflow"),
        tracking_dir="tracking",
        tracking_finish_timeout=4,
        tracking_system_metrics="off",
        use_critic=False,
    )
    try:
        with slime_logging.tracked(args):
            slime_logging.log(args, {**canaries.metrics(), "rollout/step": 1}, "rollout/step")
            time.sleep(4)  # for the client to find out
            raise RuntimeError(f"lost the judge: password={canaries.SECRETS['training exception']}")
    except RuntimeError:
        print("the job ended as planned")


if __name__ == "__main__":
    main()
