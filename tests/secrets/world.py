"""A place of its own for a job with canaries: home, working and temporary directory, all searched afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.secrets import canaries
from tests.secrets.search import Search

ROOT = Path(__file__).parents[2]
POLL_S = 0.1


@dataclass
class World:
    """The directories of a job, and what its processes showed of themselves: command lines, and environments by pid."""

    root: Path
    commands: dict[int, list[str]] = field(default_factory=dict)
    environments: dict[int, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "work", "tmp", "given"):
            (self.root / name).mkdir(parents=True)
        self.given = canaries.write_home(self.root / "home")
        (self.root / "given" / "roles.yaml").write_text(canaries.role_file())

    @property
    def run(self) -> Path:
        """The directory of the newest run."""
        found = sorted(
            self.root.glob("work/tracking/*/run.json"), key=lambda path: path.stat().st_mtime
        )
        return found[-1].parent

    def environment(self, **more: str) -> dict[str, str]:
        """What a process of the job sees, with canaries."""
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "GIVEN": str(self.root / "given"),
            "NO_PROXY": "127.0.0.1,localhost",
            "COLUMNS": "200",
            **canaries.environment(),
            **more,
        }

    def start(
        self,
        *command: str,
        timeout_s: float = 120.0,
        is_watched: bool = False,
        **environment: str,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a process to its end in this world, and keep an eye on its children if wanted: a look at every process
        of the machine, ten times a second, is not for nothing.
        """
        with (self.root / "out").open("ab") as out, (self.root / "err").open("ab") as err:
            process = subprocess.Popen(
                command,
                env=self.environment(**environment),
                cwd=self.root / "work",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                umask=0,
            )
            watch = threading.Thread(target=self._watch, args=(process.pid,), daemon=True)
            if is_watched:
                watch.start()
            code = process.wait(timeout_s)
            if is_watched:
                watch.join()
        return subprocess.CompletedProcess(
            command, code, (self.root / "out").read_bytes(), (self.root / "err").read_bytes()
        )

    def leaks(self, search: Search) -> dict[str, set[str]]:
        """What is found in all files of the world but those that were given to it."""
        roots = [self.root / name for name in ("home", "work", "tmp", "out", "err")]
        found = search.tree(*(root for root in roots if root.is_dir()), but=self.given)
        for name in ("out", "err"):
            if leaks := search.bytes((self.root / name).read_bytes()):
                found[name] = leaks
        return found

    def _watch(self, pid: int) -> None:
        """Note what shows of the processes of this world, those that are not its children too: they
        have its home.
        """
        parent = psutil.Process(pid)
        home = self.environment()["HOME"]
        while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
            for process in psutil.process_iter():
                try:
                    command, environment = process.cmdline(), process.environ()
                    if process.pid != pid and command and environment.get("HOME") == home:
                        self.commands[process.pid] = command
                        self.environments[process.pid] = environment
                except psutil.Error:
                    continue
            time.sleep(POLL_S)
