"""Starting a process of ours that outlives the one that starts it.

Policy: it is no child of the training process, so nobody there waits for it by mistake; it is in a
session of its own, so Ctrl-C in a terminal is not for it; it holds none of the job's descriptors.
What it is told goes through a pipe.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import orjson

from slime_logging.backends.table import common_environment
from slime_logging.delivery.spec import DeliverySpec

_DETACHED = """import os
held = [os.pidfd_open(os.getppid())] if hasattr(os, "pidfd_open") else []
if os.fork():
    os._exit(0)
"""
"""Run before anything is imported: what is started ends at once, and its child goes on, holding on
to the process that started it.
"""

_START = """import json, sys
paths, module = json.loads(sys.argv[1])
sys.path += [path for path in paths if path not in sys.path]
from importlib import import_module
import_module(module).main(*globals().get("held", ()))
"""
"""The places of modules come last: a script's folder with a `secrets.py` in it must not hide
Python's own.
"""


def start_supervisor(spec: DeliverySpec, *inherited: int) -> None:
    """Start the process that delivers a run; it goes on whatever becomes of this one.

    Args:
        spec: what to deliver.
        inherited: descriptors that it is to hold, for the locks on them.

    Raises:
        OSError: no process can be started.
    """
    _start(_DETACHED + _START, spec, inherited).wait()


def start_follower(spec: DeliverySpec, *inherited: int) -> subprocess.Popen[bytes]:
    """Start the process that delivers a run as a child of this one, in a session of its own.

    Raises:
        OSError: no process can be started.
    """
    return _start(_START, spec, inherited)


def start_tracker(
    module: str, environment: Mapping[str, str], errors: int
) -> subprocess.Popen[bytes]:
    """Start a child that delivers to one tracker; it is told what through its standard input.

    Raises:
        OSError: no process can be started.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START, _arguments(module)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env={**common_environment(), **environment},
    )


def _start(code: str, spec: DeliverySpec, inherited: Sequence[int]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", code, _arguments("slime_logging.delivery.supervisor")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=common_environment(),
        pass_fds=inherited,
        start_new_session=True,
        umask=0o077,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(orjson.dumps(asdict(spec), default=str))
        process.stdin.close()
    return process


def _arguments(module: str) -> str:
    places = [path or str(Path.cwd()) for path in sys.path]
    return json.dumps([places, module])
