"""The PPO demo with its processes as actors of Ray, the critic on host 2, which sees nothing of the run's directory.

python -m tests.hosts.ppo_job DISK TRACKERS NUM_ROLLOUTS
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ray
from rich.console import Console

from slime_logging.demo.crew import Crew
from slime_logging.demo.job import JobOptions, run_job
from slime_logging.demo.screen import Screen


class Process:
    """What a child of the crew does, in an actor: it opens a service, and obeys."""

    def __init__(self, open_service: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._service = open_service(*arguments)

    def do(self, command: str, *details: Any) -> Any:
        return self._service.commands()[command](*details)

    def close(self) -> None:
        self._service.close(0)


class RayChild:
    """One actor, by the name that the driver gave it."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = self.title = name
        self.actor = actor


class RayCrew(Crew):
    """The demo's crew, where Ray starts the processes: each critic on host 2, the others on host 1."""

    def __init__(self) -> None:
        self._actors: list[RayChild] = []

    def start(self, name: str, open_service: Callable[..., Any], *arguments: Any) -> Any:
        host = "host2" if name.startswith("critic") else "host1"
        environment = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        made = ray.remote(num_cpus=0)(Process).options(
            resources={host: 1}, runtime_env={"env_vars": environment}
        )
        self._actors.append(RayChild(name, made.remote(open_service, arguments)))
        return self._actors[-1]

    def answers(self, questions: Mapping[Any, tuple[Any, ...]]) -> dict[Any, Any]:
        asked = {child: child.actor.do.remote(*words) for child, words in questions.items()}
        return {child: ray.get(answer) for child, answer in asked.items()}

    def end(self) -> None:
        ray.get([child.actor.close.remote() for child in self._actors])

    def __exit__(self, *_: object) -> None:
        for child in self._actors:
            ray.kill(child.actor)


def main() -> None:
    """Run the driver."""
    disk, trackers, num_rollouts = sys.argv[1:4]
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    ray.init(address="auto", log_to_driver=True)
    options = JobOptions(
        num_rollouts=int(num_rollouts),
        trackers=tuple(trackers.split(",")),
        directory=Path(disk) / "tracking",
        arguments={"wandb_run_id": "ppo", "tracking_finish_timeout": 120},
    )
    with Screen(Console()) as screen:
        result = run_job(options, screen, RayCrew())
    print("ROWS", sum(result.num_rows.values()))


if __name__ == "__main__":
    main()
