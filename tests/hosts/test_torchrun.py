"""What the workers of one torchrun have in common where its agents' store is not asked."""

from __future__ import annotations

import subprocess
import sys

WORKER = "from slime_logging.hosts.torchrun import torchrun_job; print(torchrun_job())"

AGENT = f"""
import os, subprocess, sys
def job(port, *before):
    environ = dict(os.environ, TORCHELASTIC_RUN_ID="none", MASTER_ADDR="h", MASTER_PORT=port)
    command = [*before, sys.executable, "-c", {WORKER!r}]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
print({{job("29501"), job("29502"), job("29502", "bash", "-c", '"$@"; true', "bash")}})
"""


def jobs() -> set[str]:
    """The jobs that an agent's workers see."""
    done = subprocess.run([sys.executable, "-c", AGENT], capture_output=True, text=True, check=True)
    return eval(done.stdout)


def test_an_agents_workers_are_one_job_whatever_their_port_and_what_runs_them() -> None:
    """A restart has another port where the agents share no store; a script may be between. Another agent is another."""
    one, other = jobs(), jobs()
    assert len(one) == len(other) == 1
    assert one != other
    assert "\n" not in one | other
