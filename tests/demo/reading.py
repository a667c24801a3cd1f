"""Runs a demo as a user does, and reads its run back from disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slime_logging.delivery.backlog import Backlog
from slime_logging.record.run import RunDirectory, newest_run
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts

SLIME_LOGGING = str(Path(sys.executable).with_name("slime-logging"))
COMMAND = [SLIME_LOGGING, "demo"]


@dataclass
class Run:
    """A demo's run: what the demo printed, and what is on disk."""

    output: str
    directory: RunDirectory
    facts: RunFacts
    rows: list[Row]
    config: RunConfig

    @property
    def job_rows(self) -> list[Row]:
        """The rows that the job logged, without those of the hosts' sampler."""
        return [row for row in self.rows if not row.journal.startswith("system")]

    def rows_of(self, process: str) -> list[Row]:
        """The rows of one process, by the beginning of its journal's name."""
        return [row for row in self.rows if row.journal.startswith(process)]


def environment(directory: Path) -> dict[str, str]:
    """This process's environment without anything that changes where a run goes."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not re.match("WANDB_|TRACKIO_|SLIME_|MLFLOW_|SWANLAB_|SLURM_", k)
    }
    return {**kept, "SLIME_LOGGING_DIR": str(directory), "COLUMNS": "120"}


def run_demo(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> Run:
    """Run a demo to its end, with more environment variables if given, and read its run from disk."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        env={**environment(directory), **(variables or {})},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return read_run(directory, done.stdout)


def start_demo(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a demo in a process group of its own, with its output and errors to be read."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(directory),
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def read_run(directory: Path, output: str = "") -> Run:
    """Read the newest run below a directory."""
    found = newest_run(directory)
    assert found is not None
    file = found.read()
    backlog = Backlog(found, lambda _: True, lambda _: 0)
    backlog.discover()
    rows: list[Row] = []
    while (batch := backlog.take()).rows:
        rows += batch.rows
    config = backlog.config(file.roles)
    backlog.close()
    return Run(
        output=output,
        directory=found,
        facts=file.facts(found.path, file.options),
        rows=rows,
        config=config,
    )


def finish_code(directory: Path) -> int | None:
    """The exit code that the newest run's primary ended with; None when it did not end."""
    found = newest_run(directory)
    assert found is not None
    for journal in found.journal_paths():
        first, *records = [json.loads(line) for line in journal.read_bytes().splitlines()]
        if first["is_primary"]:
            return next(
                (record["exit_code"] for record in records if record["kind"] == "finish"), None
            )
    return None
