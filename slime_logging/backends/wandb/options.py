"""What W&B's client is told: its settings, its place on disk and the environment of its process.

Policy: pure functions of the run's facts and of the environment. The client gets everything
explicitly and collects
nothing: no argv, program, code, git remote, requirements or console output, each of which can hold
a key. Its process sees only the variables of `KEPT_VARIABLES`, so neither what a parent left there
(`WANDB_SERVICE`, `WANDB_RUN_ID`, sweeps, SLURM's tokens) nor anything else of the job's environment
can change the run or reach the service.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.place import WANDB_HOST, run_place, wandb_mode
from slime_logging.values.run import RunFacts

MAX_NAME_CHARS = 128
MAX_TAG_CHARS = 64
FLUSH_INTERVAL_S = 2.0
TRANSMIT_INTERVAL_S = 5.0

KEPT_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|LD_LIBRARY_PATH|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES"
    r"|PYTHON(?!PATH|STARTUP|INSPECT|WARNINGS)\w*|(?:https?|all|no)_proxy|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_\w+|REQUESTS_CA_BUNDLE"
    r"|CURL_CA_BUNDLE|NETRC|XDG_\w+|SYSTEMROOT"
    r"|WANDB_(?:BASE_URL|ENTITY|CACHE_DIR|DATA_DIR|CONFIG_DIR|CREDENTIALS_FILE|IDENTITY_TOKEN_FILE|HTTP_TIMEOUT|INSECURE_DISABLE_SSL"
    r"|CORE_DEBUG|X_\w+)"
)


def is_online(run: RunFacts, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the run goes to a server."""
    return wandb_mode(run.options, environ) == "online"


def api_key(run: RunFacts, environ: Mapping[str, str] = os.environ) -> str | None:
    """The key that was given, None where the client has to look for one itself."""
    return run.options.get("wandb_key") or environ.get("WANDB_API_KEY") or None


def host(run: RunFacts, environ: Mapping[str, str] = os.environ) -> str:
    """The server's address."""
    return str(run.options.get("wandb_host") or environ.get("WANDB_BASE_URL") or WANDB_HOST).rstrip(
        "/"
    )


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
    num_before: int = 0,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """The settings of this writer's client, by the names of `wandb.Settings`; `num_before` clients
    of this process were opened before it.
    """
    online = is_online(run, environ)
    shared = online and writer.is_shared and not writer.is_sync
    return {
        **{
            key: value
            for key, value in connection(run, environ).items()
            if key != "api_key" or online
        },
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
        "x_sync_dir_suffix": re.sub(r"[^\w.-]", "_", writer.label)
        + (f"-{num_before:03d}" if num_before else ""),
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


def client_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of the client's process: `KEPT_VARIABLES`, and this process's import path."""
    kept = {key: value for key, value in environ.items() if KEPT_VARIABLES.fullmatch(key)}
    # The script's own folder comes last: a module of the user's there must not hide one of Python's
    # or of W&B's.
    kept["PYTHONPATH"] = os.pathsep.join(
        str(Path(entry or ".").absolute()) for entry in [*sys.path[1:], *sys.path[:1]]
    )
    kept["WANDB_ERROR_REPORTING"] = "false"
    return kept
