"""Several hosts on one machine: each has a host name, processes, a network and a disk of its own.

A host is a set of Linux namespaces held by one process, which is its process 1: when that dies, all of its processes
die with it, as when a node dies; its disk stays. All hosts see the code, and each its own files under one and the same
path. Addresses exist only inside of the namespaces. Needs root; nothing is left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def needs_namespaces() -> pytest.MarkDecorator:
    """Skip where no namespaces can be made; in CI that is an error instead."""
    can = shutil.which("ip") and shutil.which("unshare") and shutil.which("nsenter")
    probe = ["unshare", "-n", "-m", "-u", "-p", "--fork", "true"]
    if not can:
        why = "no ip, unshare or nsenter here"
    else:
        done = subprocess.run(probe, capture_output=True, text=True)
        why = f"namespaces cannot be made here: {done.stderr.strip()}" if done.returncode else ""
    return pytest.mark.skipif(bool(why) and not os.environ.get("CI"), reason=why)


class Machines:
    """The hosts, by number from 1 on; a context manager.

    `disk` is the path at which every host has its own disk; `on_disk` is the same from outside.
    """

    def __init__(self, num_hosts: int) -> None:
        self.place = Path(
            tempfile.mkdtemp(prefix="hosts", dir="/tmp")
        )  # short: Ray's sockets lie below it
        self.disk = self.place / "d"
        self.disk.mkdir()
        self._holders: dict[int, subprocess.Popen[bytes]] = {}
        self._switch = _hold("ip link set lo up; ip link add br0 type bridge; ip link set br0 up")
        for number in range(1, num_hosts + 1):
            self.on_disk(number).mkdir(parents=True)
            self.boot(number)

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._holders):
            self.crash(number)
        _end(self._switch)
        shutil.rmtree(self.place, ignore_errors=True)

    def on_disk(self, number: int) -> Path:
        """A host's disk, seen from outside."""
        return self.place / "all" / f"h{number}"

    @staticmethod
    def address(number: int) -> str:
        return f"10.231.77.{number}"

    def boot(self, number: int) -> None:
        """Start a host, the first time or again."""
        self._holders[number] = _hold(
            f"hostname host{number}; mount --bind {self.on_disk(number)} {self.disk};"
            f" mount -t tmpfs none {self.place}/all; mount -t tmpfs none /dev/shm; ip link set lo up"
        )
        pid = self._holders[number].pid
        inner = _child_of(pid)
        _in(
            _child_of(self._switch.pid),
            f"ip link add v{number} type veth peer name eth0 netns {inner};"
            f" ip link set v{number} master br0; ip link set v{number} up",
        )
        _in(inner, f"ip addr add {self.address(number)}/24 dev eth0; ip link set eth0 up")

    def crash(self, number: int) -> None:
        """All processes of a host die at once; its disk stays."""
        _end(self._holders.pop(number))
        switch = _child_of(self._switch.pid)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not _in(
            switch, f"ip link show v{number}", check=False
        ):
            time.sleep(0.05)

    def popen(
        self, number: int, *command: str, env: dict[str, str] | None = None, log: str = "log"
    ) -> subprocess.Popen[bytes]:
        """Start a process on a host; what it prints goes to a file of that host's disk."""
        with (self.on_disk(number) / log).open("ab") as out:
            return subprocess.Popen(
                [*_enter(_child_of(self._holders[number].pid)), *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def run(
        self, number: int, *command: str, env: dict[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a process on a host to its end."""
        return subprocess.run(
            [*_enter(_child_of(self._holders[number].pid)), *command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def processes(self, number: int) -> dict[int, str]:
        """The processes of a host: their ids as seen from outside, and their command lines."""
        space = Path(f"/proc/{_child_of(self._holders[number].pid)}/ns/pid").readlink()
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if (path / "ns/pid").readlink() == space:
                    found[int(path.name)] = (
                        (path / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                    )
            except OSError:
                continue
        return found

    def start_ray(self, *numbers: int, num_cpus: int = 4) -> None:
        """Start a Ray node on each of these hosts at once: host 1 is the head."""
        for number in numbers:
            self._begin_ray(number, num_cpus)
        deadline = time.monotonic() + 90
        for number in numbers:
            log = self.on_disk(number) / "ray.log"
            while "Ray runtime started" not in log.read_text():
                if time.monotonic() > deadline:
                    raise TimeoutError(log.read_text()[-3000:])
                time.sleep(0.1)

    def _begin_ray(self, number: int, num_cpus: int) -> None:
        role = ["--head", "--port=6379", f"--temp-dir={self.disk}/r", "--include-dashboard=false"]
        if number > 1:
            role = [f"--address={self.address(1)}:6379"]
        command = [
            str(Path(sys.executable).with_name("ray")),
            "start",
            *role,
            "--block",
            "--disable-usage-stats",
            f"--node-ip-address={self.address(number)}",
            f"--num-cpus={num_cpus}",
            f'--resources={{"host{number}": 100}}',
            "--object-store-memory=100000000",
        ]
        self.popen(number, *command, env=RAY, log="ray.log")


RAY = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
    "RAY_AUTH_MODE": "disabled",
}
"""A dead node is noticed within some seconds instead of a minute."""


def _hold(setup: str) -> subprocess.Popen[bytes]:
    """A process in namespaces of its own, whose child is their process 1 and collects the dead."""
    script = f"set -e; mount --make-rprivate /; {setup}; echo ready; sleep infinity & while :; do wait; done"
    process = subprocess.Popen(
        [
            "unshare",
            "-n",
            "-m",
            "-u",
            "-p",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "bash",
            "-c",
            script,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    inner = _child_of(process.pid)
    os.kill(inner, signal.SIGKILL)
    process.wait(timeout=30)


def _child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _enter(pid: int) -> list[str]:
    return ["nsenter", "-t", str(pid), "-n", "-m", "-u", "-p"]


def _in(pid: int, script: str, *, check: bool = True) -> bool:
    done = subprocess.run(
        ["nsenter", "-t", str(pid), "-n", "bash", "-ec", script], capture_output=True, text=True
    )
    assert not check or done.returncode == 0, done.stderr
    return done.returncode != 0
