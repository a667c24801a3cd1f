"""What W&B's client is told: its settings and its place on disk.

Policy: pure functions of the run's facts and of the environment. The client gets everything
explicitly and collects nothing: no argv, program, code, git remote, requirements or console output,
each of which can hold a key.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.place import run_place
from slime_logging.backends.wandb.place import HOST, mode
from slime_logging.values.run import RunFacts

MAX_NAME_CHARS = 128
MAX_TAG_CHARS = 64
FLUSH_INTERVAL_S = 2.0
TRANSMIT_INTERVAL_S = 5.0


def is_online(run: RunFacts, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the run goes to a server."""
    return mode(run.options, environ) == "online"


def api_key(run: RunFacts, environ: Mapping[str, str] = os.environ) -> str | None:
    """The key that was given, None where the client has to look for one itself."""
    return run.options.get("wandb_key") or environ.get("WANDB_API_KEY") or None


def host(run: RunFacts, environ: Mapping[str, str] = os.environ) -> str:
    """The server's address."""
    return str(run.options.get("wandb_host") or environ.get("WANDB_BASE_URL") or HOST).rstrip("/")


def project(run: RunFacts) -> str:
    """The project's name without the characters that W&B refuses."""
    return re.sub(
        r"[/\\#?%:\x00-\x1f\x7f]", "-", str(run.options.get("wandb_project") or run.project)
    )[:MAX_NAME_CHARS]


def short_name(name: str) -> str:
    """The name as W&B takes it: cut in its middle, since it ends in the run's id."""
    if len(name) <= MAX_NAME_CHARS:
        return name
    return f"{name[: MAX_NAME_CHARS - MAX_TAG_CHARS - 1]}…{name[-MAX_TAG_CHARS:]}"


def clean_tags(text: object) -> list[str] | None:
    """Tags as W&B takes them: 1 to 64 characters, each once; one bad tag would cost the run."""
    tags = [tag.strip()[:MAX_TAG_CHARS].strip() for tag in str(text or "").split(",")]
    return list(dict.fromkeys(filter(None, tags))) or None


def local_root(run: RunFacts) -> Path:
    """The directory that holds the client's own `wandb` directory: `wandb_dir`, else the run's
    directory.
    """
    offline = replace(run, options={**run.options, "wandb_mode": "offline"})
    return Path(run_place("wandb", offline).address)


def connection(run: RunFacts, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Where the run is on the server, and the key to it."""
    return {
        "base_url": host(run, environ)
        if run.options.get("wandb_host") or environ.get("WANDB_BASE_URL")
        else None,
        "api_key": api_key(run, environ),
        "entity": run.options.get("wandb_team") or environ.get("WANDB_ENTITY") or None,
        "project": project(run),
        "run_id": run.run_id,
    }


def client_settings(
    run: RunFacts,
    writer: Writer,
    *,
    init_timeout_s: float,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """The settings of this writer's client, by the names of `wandb.Settings`."""
    online = is_online(run, environ)
    shared = online and writer.is_shared and not writer.is_sync
    where = connection(run, environ)
    return {
        **(where if online else {**where, "api_key": None}),
        "mode": ("shared" if shared else "online") if online else "offline",
        "resume": "allow",
        "reinit": "create_new",
        "run_name": short_name(run.name),
        "run_group": run.group[:MAX_NAME_CHARS] if run.group else None,
        "run_tags": clean_tags(run.options.get("tracking_tags")),
        "run_notes": run.options.get("tracking_notes"),
        "run_job_type": run.options.get("tracking_job_type"),
        "root_dir": str(local_root(run)),
        # Told only where it matters, because clients before 0.27 fail when they are told.
        "use_dot_wandb": False if (local_root(run) / ".wandb").exists() else None,
        # Two clients of one run that start in the same second would share a directory, and one's
        # data would vanish. The names are in the order of the openings, which decides what a run's
        # files say in the end.
        "x_sync_dir_suffix": _directory_suffix(run, writer),
        "symlink": False,
        **_system_metrics(run, writer),
        "x_label": writer.label if shared else None,
        "x_primary": writer.is_primary or not shared,
        "x_update_finish_state": writer.is_primary or not shared,
        # Each shared writer would post its whole summary, with stale copies of the others' values.
        "x_server_side_derived_summary": shared,
        "init_timeout": init_timeout_s,
        "x_transaction_log_flush_interval": FLUSH_INTERVAL_S,
        "x_file_stream_transmit_interval": TRANSMIT_INTERVAL_S,
        **COLLECT_NOTHING,
    }


def _directory_suffix(run: RunFacts, writer: Writer) -> str:
    """The writer's label, and behind that how many of the run's directories it has already."""
    label = re.sub(r"[^\w.-]", "_", writer.label)
    before = Path(local_root(run), "wandb").glob(f"*run-*-{glob.escape(run.run_id)}-{label}*")
    num_before = sum(1 for _ in before)
    return label + (f"-{num_before:03d}" if num_before else "")


def _system_metrics(run: RunFacts, writer: Writer) -> dict[str, Any]:
    """W&B's own page of system metrics is for the host of the job's primary: the other hosts have
    our sampler, and the host that a run is synchronised from is none of the job's.
    """
    interval_s = run.options.get("tracking_system_metrics")
    if writer.is_sync or not writer.is_primary or interval_s == "off":
        return {"x_disable_stats": True}
    return {"x_stats_pid": os.getpid(), "x_stats_sampling_interval": interval_s}


COLLECT_NOTHING: Mapping[str, Any] = {
    "console": "off",
    "silent": True,
    "save_code": False,
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "label_disable": True,
    "x_save_requirements": False,
    "program": "slime-logging",
    "program_relpath": None,
}
