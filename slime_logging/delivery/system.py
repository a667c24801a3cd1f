"""CPU, memory, disk, network and GPUs of a host, as rows under `system/<host>/`.

Policy: one sampler a host, however many processes of the job run there: the one that holds the
host's lock samples, the others ask for the lock once an interval and take over when it dies. It
writes a journal of its own and touches no device but by reading counters; a sample takes under 2
ms, so that at the default interval it costs far less than 0.5 % of a core. It never raises.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from slime_logging.record.locks import is_taken
from slime_logging.record.recorder import Recorder
from slime_logging.record.run import RunDirectory

logger = logging.getLogger("slime_logging")

STEP_KEY = "system/elapsed_s"
"""The axis of all system rows: whole seconds since the run was made."""

MIB = 2**20
GIB = 2**30


class SystemSampler:
    """A background thread that samples this host while no other process of the run does.

    Args:
        directory: the run's; the lock lies there.
        host: the host's name; odd characters are replaced in keys and file names.
        created_s: when the run was made, Unix seconds.
        interval_s: seconds between samples.
        new_recorder: makes the journal, once this process is the one that samples.
    """

    def __init__(
        self,
        directory: RunDirectory,
        host: str,
        created_s: float,
        interval_s: float,
        new_recorder: Callable[[], Recorder],
    ) -> None:
        self._host = _as_name(host)
        self._lock_path = _lock_path(directory, host)
        self._created_s = created_s
        self._interval_s = interval_s
        self._new_recorder = new_recorder
        self._fd = -1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slime-logging-system", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Take a last sample if this process is the sampler, and end; at most a few seconds."""
        self._stop.set()
        self._thread.join(timeout=5)

    def abandon(self) -> None:
        """In a forked child: let go of the inherited lock. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _run(self) -> None:
        try:
            while not self._is_mine():
                if self._stop.wait(self._interval_s):
                    return
            self._sample_until_stopped()
        except (
            Exception
        ) as error:  # a counter that cannot be read must cost nothing but its numbers
            logger.warning(
                "slime_logging: system metrics stop: %s: %s", type(error).__name__, error
            )
        finally:
            if self._fd >= 0:
                os.close(self._fd)

    def _is_mine(self) -> bool:
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def _sample_until_stopped(self) -> None:
        recorder = self._new_recorder()
        probe = HostProbe()
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._interval_s)
            sample = {
                f"system/{self._host}/{name}": value for name, value in probe.sample().items()
            }
            recorder.row({**sample, STEP_KEY: int(time.time() - self._created_s)}, STEP_KEY)
        recorder.finish(0)


def is_sampled(directory: RunDirectory, host: str) -> bool:
    """Whether a process samples this host for the run now."""
    return is_taken(_lock_path(directory, host)) is True


def _as_name(host: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", host)[:64] or "host"


def _lock_path(directory: RunDirectory, host: str) -> Path:
    return directory.path / f"system-{_as_name(host)}.lock"


class HostProbe:
    """Reads the host's counters; rates are means since the last call (or the construction)."""

    def __init__(self) -> None:
        import psutil

        self._psutil = psutil
        self._gpus = GpuProbe()
        psutil.cpu_percent()
        self._before = self._counters()

    def sample(self) -> dict[str, float]:
        """`cpu_percent` (of all cores), `memory_used_gib`, `memory_percent`, disk and network
        MiB/s, and each GPU's numbers.
        """
        memory = self._psutil.virtual_memory()
        now = self._counters()
        seconds = max(1e-6, now["time_s"] - self._before["time_s"])
        rates = {
            f"{name}_mib_per_s": max(0.0, now[name] - self._before[name]) / MIB / seconds
            for name in now
            if name != "time_s"
        }
        self._before = now
        return {
            "cpu_percent": float(self._psutil.cpu_percent()),
            "memory_used_gib": memory.used / GIB,
            "memory_percent": float(memory.percent),
            **{name: round(rate, 4) for name, rate in rates.items()},
            **self._gpus.sample(),
        }

    def _counters(self) -> dict[str, float]:
        counters = {"time_s": time.monotonic()}
        disk, network = self._psutil.disk_io_counters(), self._psutil.net_io_counters()
        if disk is not None:
            counters |= {"disk_read": float(disk.read_bytes), "disk_write": float(disk.write_bytes)}
        if network is not None:
            counters |= {
                "network_sent": float(network.bytes_sent),
                "network_received": float(network.bytes_recv),
            }
        return counters


class GpuProbe:
    """NVIDIA GPUs by nvidia-ml-py, where it is installed and there are any; else samples are
    empty.
    """

    def __init__(self) -> None:
        self._nvml: Any = None
        self._devices: list[Any] = []
        if "pynvml" not in sys.modules and find_spec("pynvml") is None:
            return
        try:
            import pynvml

            pynvml.nvmlInit()
            self._devices = [
                pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())
            ]
            self._nvml = pynvml
        except (
            Exception
        ) as error:  # no driver: the library raises its own, version-dependent errors
            logger.debug("slime_logging: no GPU metrics: %s", error)

    def sample(self) -> dict[str, float]:
        """`gpu<i>/utilisation_percent`, `memory_used_gib`, `memory_percent`, `power_w`,
        `temperature_c`; what a GPU lacks is left out.
        """
        values: dict[str, float] = {}
        for number, device in enumerate(self._devices):
            for name, read in self._readers(device).items():
                try:
                    values[f"gpu{number}/{name}"] = float(read())
                except Exception as error:
                    logger.debug("slime_logging: gpu%d/%s: %s", number, name, error)
        return values

    def _readers(self, device: Any) -> Mapping[str, Callable[[], float]]:
        nvml = self._nvml
        return {
            "utilisation_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(device).gpu,
            "memory_used_gib": lambda: nvml.nvmlDeviceGetMemoryInfo(device).used / GIB,
            "memory_percent": lambda: _share(nvml.nvmlDeviceGetMemoryInfo(device)),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
            "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(
                device, nvml.NVML_TEMPERATURE_GPU
            ),
        }


def _share(memory: Any) -> float:
    return float(100.0 * memory.used / memory.total)
