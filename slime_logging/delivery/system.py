"""CPU, memory, disk, network and GPUs of a host, under `system/<host>/`.

Policy: no device is touched but by reading counters; a sample takes under 2 ms, so that at the
default interval it costs far less than 0.5 % of a core.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from slime_logging.record.locks import is_taken
from slime_logging.record.run import RunDirectory

logger = logging.getLogger("slime_logging")

MIB = 2**20
GIB = 2**30


def is_sampled(directory: RunDirectory, host: str) -> bool:
    """Whether a process samples this host for the run now."""
    return is_taken(host_lock(directory, host)) is True


def host_lock(directory: RunDirectory, host: str) -> Path:
    """The lock of the one that samples this host; odd characters of its name are replaced."""
    return directory.path / f"system-{_as_name(host)}.lock"


def _as_name(host: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", host)[:64] or "host"


class HostProbe:
    """Reads the host's counters; rates are means since the last call (or the construction).

    Args:
        host: the host's name; odd characters are replaced.
    """

    def __init__(self, host: str) -> None:
        import psutil

        self._prefix = f"system/{_as_name(host)}"
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
        values = {
            "cpu_percent": float(self._psutil.cpu_percent()),
            "memory_used_gib": memory.used / GIB,
            "memory_percent": float(memory.percent),
            **{name: round(rate, 4) for name, rate in rates.items()},
            **self._gpus.sample(),
        }
        return {f"{self._prefix}/{name}": value for name, value in values.items()}

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
