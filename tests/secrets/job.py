"""The PPO demo job with canaries in every place, as a process: `python -m tests.secrets.job TRACKERS FLAGS...`.

What it logs beside the job's own rows comes from the screen that the job tells its progress to. The flags are there
to be on the command line.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from rich.console import Console

import slime_logging
from slime_logging.demo.crew import JobFailed
from slime_logging.demo.job import JobOptions, run_job
from slime_logging.demo.screen import Progress, Screen
from tests.secrets import canaries


class LoudScreen(Screen):
    """Logs everything that holds a secret while the job runs, and at last fails as a training does."""

    def show(self, progress: Progress) -> None:
        super().show(progress)
        row = {**canaries.metrics(), "rollout/step": progress.done}
        slime_logging.log(None, row, "rollout/step")
        slime_logging.log_samples(None, canaries.samples(), "rollout/step")
        slime_logging.log_config(None, canaries.late_config(), role="critic")
        slime_logging.log(None, row, f"{canaries.SECRETS['env password']}/step")
        if progress.done == progress.total:
            raise RuntimeError(f"lost the judge: password={canaries.SECRETS['training exception']}")


def main() -> None:
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("PIL").setLevel(
        logging.INFO
    )  # prints the texts of a picture when the job itself writes them
    given = Path(os.environ["GIVEN"])
    options = JobOptions(
        num_rollouts=2,
        trackers=tuple(sys.argv[1].split(",")),
        directory=Path("tracking"),
        role_file=given / "roles.yaml",
        is_online=bool(os.environ.get("ONLINE")),
        arguments={
            **canaries.arguments(),
            "wandb_host": os.environ.get("ONLINE"),
            "mlflow_tracking_uri": os.environ.get("MLFLOW"),
            "tracking_system_metrics": 1,
            "tracking_finish_timeout": 20,
        },
    )
    try:
        run_job(options, LoudScreen(Console()))
    except RuntimeError as error:
        print(f"the job ended as planned: {type(error).__name__}")
    except JobFailed as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
