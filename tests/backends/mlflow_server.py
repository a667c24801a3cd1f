"""A real `mlflow server` on SQLite, on loopback, for the tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

START_TIMEOUT_S = 60.0


class MlflowServer:
    """A running server; between `freeze` and `thaw` it accepts connections but does not answer."""

    def __init__(self, directory: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{port}"
        options = {
            "backend-store-uri": f"sqlite:///{directory / 'server.db'}",
            "host": "127.0.0.1",
            "port": str(port),
        }
        options |= {"artifacts-destination": str(directory / "artifacts"), "workers": "1"}
        environment = os.environ | {
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }
        self._log = (directory / "server.log").open("wb")
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "mlflow",
                "server",
                *(f"--{key}={value}" for key, value in options.items()),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self._wait()

    def freeze(self) -> None:
        os.killpg(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def stop(self) -> None:
        self.thaw()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def _wait(self) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=2).read()
                return
            except (urllib.error.URLError, OSError):
                assert self._process.poll() is None, "mlflow server ended"
                time.sleep(0.1)
        raise AssertionError(f"mlflow server did not answer within {START_TIMEOUT_S} s")
