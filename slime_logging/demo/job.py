"""The driver of the PPO and the GRPO job: the primary of the run, and the loop over rollouts.

Policy: the order is slime's: join as primary, start the rollout process, learn from it how many
rollouts there are, start the train actors with pickled arguments, then generate, train, and hand
the new weights over, again and again. The driver itself computes nothing.
"""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import slime_logging
from slime_logging.demo.crew import Child, Crew
from slime_logging.demo.screen import Progress, Screen
from slime_logging.layout.diff import Difference, set_differences
from slime_logging.roles.roles import parse_role_file
from slime_logging.settings.settings import Settings

DEFAULT_ROLLOUTS = 25


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What a user chooses. `directory` is the tracking directory; `role_file` None means
    `configs/ppo_roles.yaml`; `arguments` are more arguments of the job, which stand above all
    others.
    """

    algorithm: str = "ppo"
    num_rollouts: int = DEFAULT_ROLLOUTS
    tensor_parallel_size: int = 1
    trackers: tuple[str, ...] = ("wandb", "trackio")
    directory: Path | None = None
    role_file: Path | None = None
    is_online: bool = False
    seed: int = 1234
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class JobResult:
    """What a job has to tell at its end. `course` is the number to watch, `num_rows` has one a
    process that logs, `differences` what differs between the roles.
    """

    args: Namespace
    course_name: str = "reward"
    course: list[float] = field(default_factory=list)
    num_rows: dict[str, int] = field(default_factory=dict)
    differences: Sequence[Difference] = ()
    seconds: float = 0.0


def job_arguments(options: JobOptions) -> Namespace:
    """Return the driver's arguments: the full-size namespace with the toy job's values and the
    user's choices.
    """
    from slime_logging.demo import toy
    from slime_logging.demo.namespace import grpo_namespace, ppo_namespace

    args = ppo_namespace() if options.algorithm == "ppo" else grpo_namespace()
    toy.apply_toy_settings(args, options.tensor_parallel_size, options.seed)
    args.megatron_config_path = str(options.role_file or role_file(options.algorithm))
    choose_tracking(args, options.trackers, options.directory, options.is_online)
    vars(args).update(options.arguments)
    return args


def choose_tracking(
    args: Namespace, trackers: Sequence[str], directory: Path | None, is_online: bool
) -> None:
    """Set the tracking options of any demo in `args`, in place; W&B stays offline unless
    `is_online`.
    """
    args.use_wandb = "wandb" in trackers
    for tracker in trackers:
        setattr(args, f"use_{tracker}", True)
    args.wandb_mode = "online" if is_online else "offline"
    args.wandb_project = "slime-demo"
    # With a directory of its own the job is tracked without any tracker too: by its journals.
    args.tracking_dir = str(Settings.of(Namespace(tracking_dir=directory)).directory)


def role_file(algorithm: str) -> Path:
    """Return the path of `configs/<algorithm>_roles.yaml`: of the source tree, else as installed
    with the package.
    """
    name = f"{algorithm}_roles.yaml"
    source = Path(__file__).resolve().parents[2] / "configs" / name
    return (
        source
        if source.is_file()
        else Path(str(resources.files("slime_logging.demo"))) / "data" / name
    )


def run_job(options: JobOptions, screen: Screen, crew: Crew | None = None) -> JobResult:
    """Run the whole job and return what it has to tell; its run is finished then, with the right
    exit code.

    Args:
        options: what the user chooses.
        screen: shows how far it is.
        crew: who starts its processes; by default they are children of this one.

    Raises:
        JobFailed: a process of the job died or failed.
    """
    crew = crew or Crew(preload=["slime_logging.demo.preload"])
    started_s = time.monotonic()
    screen.stage(
        "loading torch and megatron-core; trackers:"
        f" {', '.join(options.trackers) or 'none, journals only'}"
    )
    args = job_arguments(options)
    result = JobResult(args=args, differences=_differences(args))
    with (
        tempfile.TemporaryDirectory(prefix="slime-demo-") as scratch,
        slime_logging.tracked(args),
        crew,
    ):
        screen.run = Path(args.tracking_run_dir)
        _Driver(args, crew, screen, result, Path(scratch)).run(options.num_rollouts)
        result.seconds = time.monotonic() - started_s
    return result


def _differences(args: Namespace) -> Sequence[Difference]:
    if not args.use_critic:
        return ()
    return set_differences(parse_role_file(args, args.megatron_config_path), vars(args))


class _Driver:
    def __init__(
        self, args: Namespace, crew: Crew, screen: Screen, result: JobResult, scratch: Path
    ) -> None:
        self._args = args
        self._crew = crew
        self._screen = screen
        self._result = result
        self._scratch = scratch
        self._groups: dict[str, list[Child]] = {}

    def run(self, num_rollouts: int) -> None:
        from slime_logging.demo.rollout import RolloutManager

        args = self._args
        self._screen.stage(
            f"run {args.wandb_run_id}: the driver has joined as primary, starting the rollout"
            " process"
        )
        self._rollout = self._crew.start("rollout", RolloutManager, args, num_rollouts)
        args.num_rollout = (
            self._crew.answer(self._rollout, "num_rollout_per_epoch") * args.num_epoch
        )
        slime_logging.log_config(args, {"num_rollout": args.num_rollout})
        self._start_groups()
        for rollout_id in range(args.start_rollout_id, args.num_rollout):
            self._one_rollout(rollout_id)
        self._count_rows()
        self._crew.end()

    def _start_groups(self) -> None:
        from slime_logging.demo.worker import Worker

        args = self._args
        for role in ("actor", "critic") if args.use_critic else ("actor",):
            self._groups[role] = [
                self._crew.start(
                    f"{role} rank {rank}", Worker, args, role, rank, self._scratch / role
                )
                for rank in range(args.world_size)
            ]
        ranks = [child for group in self._groups.values() for child in group]
        self._screen.stage(f"starting {', '.join(child.title for child in ranks)}")
        ready = self._crew.answers(dict.fromkeys(ranks, ("ready",)))
        args.start_rollout_id = ready[ranks[0]]
        slime_logging.log_config(args, {"start_rollout_id": args.start_rollout_id})
        self._hand_over_weights()

    def _one_rollout(self, rollout_id: int) -> None:
        args, started_s = self._args, time.perf_counter()
        samples = self._crew.answer(self._rollout, "generate", rollout_id)
        values = self._ask_group("critic", "values", samples) if args.use_critic else None
        learning = ["critic"] if args.use_critic else []
        if rollout_id >= args.num_critic_only_steps:
            learning.append("actor")
        question = ("learn", rollout_id, samples, values)
        learned = self._crew.answers(
            {child: question for role in learning for child in self._groups[role]}
        )
        losses = {role: learned[self._groups[role][0]] for role in learning}
        if "actor" in learning:
            self._hand_over_weights()
        if (rollout_id + 1) % args.eval_interval == 0:
            self._crew.answer(self._rollout, "evaluate", rollout_id)
        took_s = time.perf_counter() - started_s
        slime_logging.log(
            args, {"perf/step_time": took_s, "rollout/step": rollout_id}, "rollout/step"
        )
        self._show(rollout_id, float(samples["rewards"].mean()), losses)

    def _show(
        self, rollout_id: int, reward: float, losses: Mapping[str, Mapping[str, float]]
    ) -> None:
        result = self._result
        result.course.append(reward)
        result.num_rows["driver"] = len(result.course)
        self._count_rows()
        self._screen.show(
            Progress(
                done=rollout_id + 1,
                total=self._args.num_rollout,
                label="rollout",
                course_name="reward",
                course=result.course,
                numbers=tuple(
                    (f"{role} loss", metrics["loss"]) for role, metrics in losses.items()
                ),
                num_rows=sum(result.num_rows.values()),
            )
        )

    def _hand_over_weights(self) -> None:
        self._crew.answer(self._rollout, "load", self._ask_group("actor", "weights"))

    def _ask_group(self, role: str, *question: Any) -> Any:
        group = self._groups[role]
        return self._crew.answers(dict.fromkeys(group, question))[group[0]]

    def _count_rows(self) -> None:
        loggers = {
            "rollout": self._rollout,
            **{role: group[0] for role, group in self._groups.items()},
        }
        counts = self._crew.answers(dict.fromkeys(loggers.values(), ("num_rows",)))
        self._result.num_rows |= {name: counts[child] for name, child in loggers.items()}
