"""One process a host samples it, another takes over when that one dies, and GPUs are read where there are any."""

from __future__ import annotations

import time
import types
from pathlib import Path

import pytest

from slime_logging.delivery.sampler import STEP_KEY, Sampler
from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.system import GpuProbe, HostProbe, host_lock
from slime_logging.record.entries import Opening
from slime_logging.record.journal import journal_name
from slime_logging.record.recorder import Recorder
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.redact import Redactor
from tests.record.test_run import made


def sampler(directory: RunDirectory, host: str = "h") -> Sampler:
    def new_recorder() -> Recorder:
        opening = Opening(
            run_id="abc",
            journal=journal_name("system"),
            role="system",
            is_primary=False,
            host=host,
            pid=1,
            start=1,
            time_s=0.0,
        )
        return Recorder(directory, opening, Redactor.of(None, {}))

    lock = host_lock(directory, host)
    return Sampler(lock, time.time() - 100, 0.05, new_recorder, lambda: HostProbe(host))


def stop(*samplers: Sampler) -> None:
    for one in samplers:
        one.stop()
    for one in samplers:
        one.wait()


def wait_for_rows(directory: RunDirectory, num: int) -> list:
    deadline = time.monotonic() + 10
    while len(rows := list(journal_rows(directory))) < num and time.monotonic() < deadline:
        time.sleep(0.02)
    return rows


def test_a_sample_has_the_hosts_numbers_on_its_own_axis(tmp_path):
    directory = made(tmp_path)
    one = sampler(directory)
    one.start()
    rows = wait_for_rows(directory, 2)
    stop(one)
    assert {
        "cpu_percent",
        "memory_used_gib",
        "memory_percent",
        "disk_read_mib_per_s",
        "network_sent_mib_per_s",
    } <= {name.removeprefix("system/h/") for name in rows[0].metrics}
    assert (rows[0].step_key, rows[0].role) == (STEP_KEY, "system")
    assert 100 <= rows[0].step < 200
    assert all(0 <= row.metrics["system/h/memory_percent"] <= 100 for row in rows)


def test_one_process_a_host_samples_and_the_next_takes_over(tmp_path):
    directory = made(tmp_path)
    first, second = sampler(directory), sampler(directory)
    first.start()
    wait_for_rows(directory, 1)
    second.start()
    time.sleep(0.3)
    assert len(directory.journal_paths()) == 1
    stop(first)
    wait_for_rows(directory, len(list(journal_rows(directory))) + 1)
    stop(second)
    assert len(directory.journal_paths()) == 2


def test_each_host_has_a_sampler_of_its_own(tmp_path):
    directory = made(tmp_path)
    both = [sampler(directory, host) for host in ("a", "b")]
    for one in both:
        one.start()
    wait_for_rows(directory, 4)
    stop(*both)
    hosts = {name.split("/")[1] for row in journal_rows(directory) for name in row.metrics}
    assert hosts == {"a", "b"}


def test_a_hosts_odd_name_makes_no_path(tmp_path):
    directory = made(tmp_path)
    one = sampler(directory, "../../x\n")
    one.start()
    wait_for_rows(directory, 1)
    stop(one)
    assert not (tmp_path.parent / "x").exists()
    assert all(
        "\n" not in name and name.count("/") == 2
        for row in journal_rows(directory)
        for name in row.metrics
    )


def test_rates_are_differences_over_time(monkeypatch):
    import psutil

    probe = HostProbe("h")
    reads = iter(
        [types.SimpleNamespace(read_bytes=7 * 2**20 + probe._before["disk_read"], write_bytes=0)]
    )
    monkeypatch.setattr(psutil, "disk_io_counters", lambda: next(reads))
    probe._before["time_s"] -= 7.0
    assert probe.sample()["system/h/disk_read_mib_per_s"] == pytest.approx(1.0, abs=0.05)


class FakeNvml(types.ModuleType):
    """The calls of nvidia-ml-py that are made, with one device that lacks a power sensor."""

    NVML_TEMPERATURE_GPU = 0

    def nvmlInit(self) -> None: ...
    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUtilizationRates(self, device: int):
        return types.SimpleNamespace(gpu=87, memory=3)

    def nvmlDeviceGetMemoryInfo(self, device: int):
        return types.SimpleNamespace(used=2 * 2**30, total=8 * 2**30)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:
        raise RuntimeError("not supported")

    def nvmlDeviceGetTemperature(self, device: int, kind: int) -> int:
        return 61


def test_gpus_are_read_and_what_one_lacks_is_left_out(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pynvml", FakeNvml("pynvml"))
    assert GpuProbe().sample() == {
        "gpu0/utilisation_percent": 87.0,
        "gpu0/memory_used_gib": 2.0,
        "gpu0/memory_percent": 25.0,
        "gpu0/temperature_c": 61.0,
    }


def test_without_a_gpu_library_there_are_no_gpu_numbers():
    assert GpuProbe().sample() == {}


def test_a_directory_that_vanishes_ends_the_sampling_without_a_word_into_training(tmp_path: Path):
    import shutil

    directory = made(tmp_path)
    shutil.rmtree(directory.path)
    one = sampler(directory)
    one.start()
    stop(one)
