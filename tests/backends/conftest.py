"""What the tests of all trackers share: the trackers under test, each with a run of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slime_logging.backends.process import backend_of_anyone
from slime_logging.values.run import RunFacts
from tests.backends.mlflow_server import MlflowServer

TRACKERS = ("memory", "trackio", "tensorboard", "mlflow", "swanlab", "wandb")
AXES = {
    "train": "train/step",
    "rollout": "rollout/step",
    "perf": "rollout/step",
    "eval": "eval/step",
}
VARIABLES = ("WANDB_", "TRACKIO_", "MLFLOW_", "SWANLAB_", "TENSORBOARD_", "HF_")


@dataclass(frozen=True, kw_only=True)
class Tracker:
    """One tracker under test."""

    name: str
    options: Mapping[str, Any]

    def new(self) -> Any:
        """A fresh backend of it."""
        return backend_of_anyone(self.name)

    def run(self, directory: Path, run_id: str) -> RunFacts:
        """Facts of a run that keeps its local files in `directory`."""
        return RunFacts(
            run_id=run_id,
            project="contract",
            name=f"job {run_id}",
            group="group",
            directory=directory,
            created_s=1_790_000_000.0,
            axes=AXES,
            roles=("actor", "critic"),
            options=self.options,
        )


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    server = MlflowServer(tmp_path_factory.mktemp("mlflow-server"))
    yield server
    server.stop()


def _params() -> list[Any]:
    """Tests of one tracker stay in one worker, where they share what is costly: a server, and a run delivered once."""
    return [
        pytest.param(name, marks=pytest.mark.xdist_group(f"backends-{name}")) for name in TRACKERS
    ]


@pytest.fixture(scope="session", params=_params())
def tracker(request: pytest.FixtureRequest) -> Iterator[Tracker]:
    """Each tracker in turn, with an environment that points at none."""
    options: dict[str, Any] = {"wandb_mode": "offline", "swanlab_mode": "offline"}
    if request.param == "mlflow":
        options["mlflow_tracking_uri"] = request.getfixturevalue("mlflow_server").uri
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(VARIABLES)]:
            patch.delenv(name)
        yield Tracker(name=request.param, options=options)
