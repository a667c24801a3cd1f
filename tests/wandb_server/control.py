"""The server as a test holds it: started, told to misbehave, killed, restarted and asked what it holds."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.wandb_server.service import DEFAULT_KEY

ROOT = Path(__file__).parents[2]


class WandbServer:
    """A server process on a loopback port of its own; its state stays in `path` over restarts."""

    def __init__(self, path: Path, *, key: str = DEFAULT_KEY) -> None:
        self.path = path
        self.key = key
        self._process: subprocess.Popen[str] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address, the same after a restart."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Everything received so far: op, method, path, headers (without the key), body (decompressed), fault."""
        return self._lines("requests.jsonl")

    @property
    def problems(self) -> list[str]:
        """What no right client would have sent."""
        return self._lines("problems.jsonl")

    @property
    def options(self) -> dict[str, Any]:
        """The tracking options that point at this server."""
        return {"wandb_mode": "online", "wandb_host": self.url, "wandb_key": self.key}

    def start(self) -> WandbServer:
        """Start it and wait until it listens."""
        command = [
            sys.executable,
            "-m",
            "tests.wandb_server",
            "--dir",
            str(self.path),
            "--key",
            self.key,
        ]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the W&B server for tests did not start")
        self._port = int(line.rsplit(":", 1)[1])
        return self

    def kill(self) -> None:
        """End it as `kill -9` does; its state stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    stop = kill

    def restart(self) -> None:
        """Kill it and start it again on the same port with what it had stored."""
        self.kill()
        self.start()

    def behave(self, **changes: Any) -> None:
        """Change how it treats what it is sent: `config`, `offsets`, `lose_early`, `lag_s` (see `Behaviour`)."""
        self._order("behave", changes)

    def fail(
        self, op: str, status: int | None = None, times: int | None = None, **fault: Any
    ) -> None:
        """Have requests of `op` answered with `status`, or meet `action="hang" | "cut" | ...` (see `Fault`)."""
        if status is not None:
            fault["status"] = status
        self._order("fault", {"op": op, "times": times, **fault})

    def heal(self) -> None:
        """Lift all faults."""
        self._order("clear", None)

    def run(self, run_id: str) -> dict[str, Any] | None:
        """All that it holds of the run."""
        runs = self._order("state", None)["runs"]
        return next((run for run in runs if run["name"] == run_id), None)

    def rows(self, run_id: str) -> list[dict[str, Any]]:
        """The run's history, in order."""
        run = self.run(run_id)
        return run["history"] if run else []

    def config(self, run_id: str) -> dict[str, Any]:
        """The run's configuration without W&B's own part."""
        run = self.run(run_id)
        return (
            {key: item["value"] for key, item in run["config"].items() if key != "_wandb"}
            if run
            else {}
        )

    def _order(self, name: str, content: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}/_control/{name}", data=json.dumps(content).encode()
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as reply:
            return json.load(reply)

    def _lines(self, name: str) -> list[Any]:
        path = self.path / name
        return (
            [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        )
