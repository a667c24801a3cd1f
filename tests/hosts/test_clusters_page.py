"""The script of docs/clusters.md for Ray without a shared directory, on two hosts; test_relay kills what it can there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from slime_logging.delivery.status import journal_rows
from slime_logging.record.run import RunDirectory
from tests.hosts.machines import RAY, ROOT, Machines, needs_namespaces

pytestmark = [needs_namespaces(), pytest.mark.xdist_group("machines")]


def test_the_script_for_ray_without_a_shared_directory_is_one_run_on_two_hosts() -> None:
    """The critic's host keeps its journals, one of a process that was killed too; the run has all of its rows."""
    pytest.importorskip("ray")
    page = (ROOT / "docs/clusters.md").read_text()
    (program,) = re.findall(r"(?ms)^cat > on_ray.py <<'END'$.*?^END$", page)
    section = page.partition("\n## Ray, without a shared directory\n")[2]
    (typed,) = re.findall(r"(?ms)^```text\n(export RAY_ADDRESS=auto.*?)^```$", section)
    with Machines(2) as machines:
        machines.start_ray(1, 2, num_cpus=1)
        script = f"cd {machines.disk}\n{program}\n{typed}"
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = machines.run(1, "bash", "-euc", script, env={**RAY, "PATH": path})
        assert done.returncode == 0, done.stdout + done.stderr
        own, run = (RunDirectory(machines.on_disk(n) / "on_ray/example") for n in (2, 1))
        assert own.read().outpost_of is not None
        for directory in (own, run):
            rows = [row.step for row in journal_rows(directory) if row.role == "critic"]
            assert sorted(rows) == list(range(100))
