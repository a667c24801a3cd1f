"""The driver of the explorer-trainer job: one run for both roles, or a run of its own for one that
is started alone.

Policy: neither role waits for the other. The driver keeps the buffer between them, and asks each
for its next step as soon as the last one is done.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import slime_logging
from slime_logging.demo.crew import Child, Crew, Service
from slime_logging.demo.job import JobResult, choose_tracking
from slime_logging.demo.screen import Progress, Screen

if TYPE_CHECKING:
    from slime_logging.demo.explorer_trainer import Buffer

DEFAULT_STEPS = 400


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """What a user chooses. `only` is the role to start alone; `num_steps` counts the trainer's
    steps (the explorer goes on as long), or those of the role alone.
    """

    only: str | None = None
    num_steps: int = DEFAULT_STEPS
    trackers: tuple[str, ...] = ("wandb", "trackio")
    directory: Path | None = None
    is_online: bool = False
    seed: int = 1234


def run_pair(options: PairOptions, screen: Screen) -> JobResult:
    """Run both roles, or the chosen one, to the end and return what there is to tell.

    Raises:
        JobFailed: a process of the job died or failed.
    """
    started_s = time.monotonic()
    crew = None if options.only else Crew(preload=["slime_logging.demo.explorer_trainer"])
    from slime_logging.demo.explorer_trainer import bandit_namespace

    base = bandit_namespace()
    base.seed = options.seed
    choose_tracking(base, options.trackers, options.directory, options.is_online)
    base.wandb_group = options.only or "explorer-trainer"
    if crew is None:
        result = _run_alone(base, options, screen)
    else:
        result = JobResult(args=base)
        with slime_logging.tracked(base), crew:
            screen.run = Path(base.tracking_run_dir)
            _Pair(base, crew, screen, result).run(options.num_steps)
    result.seconds = time.monotonic() - started_s
    return result


def _run_alone(base: Namespace, options: PairOptions, screen: Screen) -> JobResult:
    from slime_logging.demo import explorer_trainer as roles

    role = str(options.only)
    args = roles.role_arguments(base, role)
    service = (
        roles.Explorer(args, is_primary=True)
        if role == "explorer"
        else roles.Trainer(args, is_primary=True)
    )
    result = JobResult(args=args, course_name="reward" if role == "explorer" else "loss")
    exit_code = 1
    screen.run = Path(args.tracking_run_dir)
    screen.stage(f"run {args.wandb_run_id}: the {role} alone, as primary")
    try:
        experience = roles.RandomExperience(args)
        for step in range(options.num_steps):
            if isinstance(service, roles.Explorer):
                result.course.append(float(service.explore(0, None)["rewards"].mean()))
            else:
                service.train([experience.batch(args.batch_size)])
                result.course.append(service.loss)
            result.num_rows[role] = service.num_rows
            screen.show(_progress(result, step + 1, options.num_steps, {}))
        exit_code = 0
    except KeyboardInterrupt:
        exit_code = 130
        raise
    finally:
        service.close(exit_code)
    return result


@dataclass
class _Pair:
    base: Namespace
    crew: Crew
    screen: Screen
    result: JobResult
    version: int = 0
    weights: Any = None
    num_steps: dict[str, int] = field(default_factory=lambda: {"explorer": 0, "trainer": 0})

    def run(self, num_steps: int) -> None:
        from slime_logging.demo import explorer_trainer as roles

        self.buffer = roles.Buffer(self.base)
        services: dict[str, Callable[..., Service]] = {
            "explorer": roles.Explorer,
            "trainer": roles.Trainer,
        }
        started = {role: roles.role_arguments(self.base, role) for role in roles.ROLES}
        self.batch_size = started["trainer"].batch_size
        self.children = {
            role: self.crew.start(role, services[role], args, False)
            for role, args in started.items()
        }
        self.screen.stage(
            f"run {self.base.wandb_run_id}: starting"
            f" {', '.join(child.title for child in self.children.values())}"
        )
        self.crew.answers(dict.fromkeys(self.children.values(), ("ready",)))
        busy: set[Child] = set()
        while self.num_steps["trainer"] < num_steps:
            busy |= {
                child
                for role, child in self.children.items()
                if child not in busy and self._ask(role)
            }
            child, answer = self.crew.next_answer()
            busy.discard(child)
            self._take(child, answer)
            self.screen.show(
                _progress(self.result, self.num_steps["trainer"], num_steps, self.num_steps)
            )
        for _ in busy:
            self._take(*self.crew.next_answer())
        self.crew.end()

    def _ask(self, role: str) -> bool:
        if role == "explorer":
            self.crew.ask(self.children[role], "explore", self.version, self.weights)
            self.weights = None
            return True
        batches = self.buffer.newest(self.batch_size)
        if batches:
            self.crew.ask(self.children[role], "train", batches)
        return bool(batches)

    def _take(self, child: Child, answer: Any) -> None:
        role = child.name
        self.num_steps[role] += 1
        self.result.num_rows[role] = self.num_steps[role]
        if role == "explorer":
            self.buffer.add(answer)
            self.result.course.append(float(answer["rewards"].mean()))
        elif self.num_steps[role] % self.base.sync_interval == 0:
            self.version, self.weights = self.num_steps[role], answer

    buffer: Buffer = field(init=False)
    batch_size: int = field(init=False)
    children: dict[str, Child] = field(init=False)


def _progress(result: JobResult, done: int, total: int, num_steps: dict[str, int]) -> Progress:
    return Progress(
        done=done,
        total=total,
        label="step",
        course_name=result.course_name,
        course=result.course,
        numbers=tuple((f"{role} step", float(count)) for role, count in num_steps.items()),
        num_rows=sum(result.num_rows.values()),
    )
