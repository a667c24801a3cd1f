"""A vendor's client in a process of its own: what reaches it, what does not get out of it, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from slime_logging.backends.vendor_process import VendorProcess
from slime_logging.errors import TryAgain, WillNeverWork

MODULE = "tests.backends.fake_vendor"
WAIT_S = 30.0


@pytest.fixture
def vendor() -> Iterator[VendorProcess]:
    process = VendorProcess("fake", MODULE, {})
    yield process
    process.close(5.0)


def test_values_come_back_as_they_went(vendor: VendorProcess) -> None:
    """JSON values cross both ways, whatever is in a text."""
    value = [None, True, 1, 2**70, 0.1, "a\nb\u2028\ud800", {"k": []}]
    assert vendor.call("echo", value=value) == value


def test_long_answer_comes_in_chunks(vendor: VendorProcess) -> None:
    """An iterator's items all come, in order, and a call in between ends it."""
    assert list(vendor.stream("count", num=2500)) == list(range(2500))


def test_empty_answer_in_chunks(vendor: VendorProcess) -> None:
    """An iterator without items is an answer too."""
    assert list(vendor.stream("count", num=0)) == []


def test_environment_is_the_childs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are set or removed for the child only."""
    monkeypatch.setenv("FAKE_KEPT", "kept")
    monkeypatch.setenv("FAKE_GONE", "gone")
    vendor = VendorProcess("fake", MODULE, {"FAKE_NEW": "new", "FAKE_GONE": None})
    seen = [
        vendor.call("environment", name=name) for name in ("FAKE_KEPT", "FAKE_NEW", "FAKE_GONE")
    ]
    vendor.close(5.0)
    assert (seen, os.environ.get("FAKE_NEW"), os.environ["FAKE_GONE"]) == (
        ["kept", "new", None],
        None,
        "gone",
    )


def test_module_beside_the_script_hides_none_of_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process finds first, the child finds last."""
    (tmp_path / "secrets.py").write_text("raise ImportError('not the one')")
    monkeypatch.syspath_prepend(str(tmp_path))
    vendor = VendorProcess("fake", MODULE, {})
    place = vendor.call("place", module="secrets")
    vendor.close(5.0)
    assert not place.startswith(str(tmp_path))


def test_chatter_goes_nowhere(vendor: VendorProcess, capfd: pytest.CaptureFixture[str]) -> None:
    """What the vendor prints reaches neither the answers nor the job's output, and a prompt finds no input."""
    assert (vendor.call("chatter"), capfd.readouterr()) == ("", ("", ""))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"is_passing": True}, TryAgain),
        ({"is_passing": False}, WillNeverWork),
    ],
)
def test_foreign_error_is_mapped(
    vendor: VendorProcess, arguments: dict[str, bool], error: type[Exception]
) -> None:
    """The module's `is_passing` decides."""
    with pytest.raises(error, match="fake: "):
        vendor.call("fail", **arguments)


def test_process_goes_on_after_an_error(vendor: VendorProcess) -> None:
    """A refused call leaves the client usable."""
    with pytest.raises(WillNeverWork):
        vendor.call("fail", is_passing=False)
    assert vendor.call("echo", value=1) == 1


def test_hanging_call_is_ended(vendor: VendorProcess) -> None:
    """A call that does not return in its time is TryAgain, and its process is gone."""
    with pytest.raises(TryAgain):
        vendor.call("hang", timeout_s=0.2)
    assert not vendor.is_alive


def test_died_process_is_try_again(vendor: VendorProcess) -> None:
    """A client that ends by itself is TryAgain, in this call and in the next."""
    for _ in range(2):
        with pytest.raises(TryAgain):
            vendor.call("die")


def test_close_after_death(vendor: VendorProcess) -> None:
    """Closing what is gone already is harmless."""
    with pytest.raises(TryAgain):
        vendor.call("die")
    vendor.close(1.0)
    assert not vendor.is_alive


def test_child_ends_with_its_killed_parent(tmp_path: Path) -> None:
    """After kill -9 of the parent the child stores what it has and ends."""
    mark = tmp_path / "mark"
    code = (
        "import time; from slime_logging.backends.vendor_process import VendorProcess as V;"
        f"v = V('fake', {MODULE!r}, {{}}); print(v.call('mark', path={str(mark)!r}), flush=True); time.sleep(3600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert _becomes(
        lambda: psutil.pid_exists(child) and psutil.Process(child).status() != "zombie", False
    )
    assert mark.read_text() == "abandoned"


def _becomes(state: object, wanted: bool, wait_s: float = WAIT_S) -> bool:
    """Whether a condition takes the wanted value in time."""
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            is_so = bool(state())  # type: ignore[operator]
        except psutil.NoSuchProcess:
            is_so = False
        if is_so == wanted or time.monotonic() >= deadline_s:
            return is_so == wanted
        time.sleep(0.02)
