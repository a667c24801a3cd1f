"""What tells one job from all others, whoever starts it again: a scheduler's allocation, torchrun's
agent, an actor of Ray.

    slurm          cluster, allocation (of a heterogeneous job its leader's) and array task;
                   starts are told apart by SLURM_RESTART_COUNT
    torchelastic   a token in the store of torchrun's agents, which outlives the workers; without
                   that store the agent of this host; TORCHELASTIC_RESTART_COUNT
    ray            the cluster's session and the Ray job, with the actor or task in it

Policy: what these systems do not say themselves is not guessed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from slime_logging.errors import SettingsError
from slime_logging.hosts.torchrun import torchrun_job
from slime_logging.record.run import check_run_id

Environ = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job, the same in each of its starts. `attempt` tells its starts apart; `name` is its
    readable part, "" where there is none. `part` tells parts of a job that are runs of their own.
    """

    kind: str
    key: tuple[str, ...]
    attempt: str
    name: str = ""
    part: str = ""

    @property
    def run_id(self) -> str:
        """An id for the job's run, the same in each process and each start of it."""
        digest = hashlib.sha256("\0".join(self.key).encode()).hexdigest()[:12]
        try:
            return check_run_id(f"{self.kind}-{self.name or digest}")
        except SettingsError:
            return f"{self.kind}-{digest}"


def jobs_of(environ: Environ = os.environ) -> list[Job]:
    """The jobs that this process is part of, the innermost first."""
    found = (find(environ) for find in _FINDERS.values())
    return [job for job in found if job is not None]


def job_of(kind: str, environ: Environ = os.environ) -> Job:
    """The job of one kind that this process is part of.

    Raises:
        SettingsError: it is part of none.
    """
    job = _FINDERS[kind](environ)
    if job is None:
        raise SettingsError(
            f"--tracking-run-id-from {kind}: this process is part of no such job"
            f" ({_LACKING[kind]}). Use auto, or name the run with --wandb-run-id."
        )
    return job


def _slurm(environ: Environ) -> Job | None:
    allocation = environ.get("SLURM_HET_JOB_ID") or environ.get("SLURM_JOB_ID")
    if not allocation:
        return None
    task = environ.get("SLURM_ARRAY_TASK_ID", "")
    if task:
        allocation = environ.get("SLURM_ARRAY_JOB_ID") or allocation
    cluster = environ.get("SLURM_CLUSTER_NAME", "")
    return Job(
        kind="slurm",
        key=(cluster, allocation, task),
        attempt=environ.get("SLURM_RESTART_COUNT") or "0",
        name="-".join(filter(None, (allocation, task, cluster))),
    )


def _torchelastic(environ: Environ) -> Job | None:
    token = torchrun_job(environ)
    if not token:
        return None
    attempt = environ.get("TORCHELASTIC_RESTART_COUNT") or "0"
    return Job(kind="torchelastic", key=(token,), attempt=attempt)


def _ray(_: Environ) -> Job | None:
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return Job(
        kind="ray",
        key=(context.get_session_name(), context.get_job_id()),
        attempt=str(os.getpid()),
        part=context.get_actor_id() or context.get_task_id() or "",
    )


_FINDERS = {"torchelastic": _torchelastic, "slurm": _slurm, "ray": _ray}
_LACKING = {
    "torchelastic": "TORCHELASTIC_RUN_ID is not set",
    "slurm": "SLURM_JOB_ID is not set",
    "ray": "Ray is not initialised here",
}
