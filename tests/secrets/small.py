"""A small job in one process, which fails: `python -m tests.secrets.small broken|offline FLAGS...`.

`broken`: its W&B and MLflow servers are not there, with secrets in their addresses. `offline`: W&B offline, MLflow in a
file.
"""

from __future__ import annotations

import logging
import sys
import time
from argparse import Namespace

import slime_logging
from tests.secrets import canaries


def main() -> None:
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("PIL").setLevel(logging.INFO)
    is_offline = sys.argv[1] == "offline"
    args = Namespace(
        **canaries.arguments(),
        use_wandb=True,
        use_mlflow=True,
        wandb_mode="offline" if is_offline else "online",
        wandb_host=None if is_offline else canaries.address("address of wandb"),
        mlflow_tracking_uri=None if is_offline else canaries.address("address of mlflow"),
        tracking_dir="tracking",
        tracking_finish_timeout=30 if is_offline else 4,
        tracking_system_metrics="off",
        use_critic=False,
    )
    try:
        with slime_logging.tracked(args):
            row = {**canaries.metrics(), "rollout/long": canaries.long_text(), "rollout/step": 1}
            slime_logging.log(args, row, "rollout/step")
            slime_logging.log_samples(args, canaries.samples(), "rollout/step")
            slime_logging.log_config(args, canaries.late_config())
            if not is_offline:
                time.sleep(4)  # for the clients to find out
            raise RuntimeError(f"lost the judge: password={canaries.SECRETS['training exception']}")
    except RuntimeError:
        print("the job ended as planned")


if __name__ == "__main__":
    main()
