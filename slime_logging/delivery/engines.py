"""The inference engines' own metrics: what their router shows to Prometheus, under
`system/engines/`.

Policy: the server is foreign. It is asked for one address, without redirects, proxies or
credentials, and has `TIMEOUT_S` for an answer of at most `MAX_BYTES`; what is no line of
Prometheus' text form is passed over. Labels tell engines apart and nothing else: one with a
secret's name, or a value that looks generated, is left out. So are the buckets of histograms, whose
sum and count are kept.
"""

from __future__ import annotations

import io
import logging
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from slime_logging.record.engines import read_engines
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.redact import Redactor
from slime_logging.redaction.secret_names import Verdict, judge

logger = logging.getLogger("slime_logging")

PREFIX = "system/engines"
TIMEOUT_S = 2.0
MAX_BYTES = 4 * 2**20
MAX_LINE_BYTES = 4_000
MAX_NUMBERS = 2_000
LEFT_OUT = ("_bucket", "_created")
"""Ends of names: buckets are dozens of numbers each, and a time of creation is none."""
LABELS_LEFT_OUT = ("model_name", "engine_type")
"""The same for all engines of a job."""

_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]{0,199}(?![A-Za-z0-9_:])")
_LABEL = re.compile(r"""[\s,]*([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)\"""")
_END = re.compile(r"[\s,]*\}")
_ODD = re.compile(r"[^A-Za-z0-9_.:\[\]-]+")


def engines_lock(directory: RunDirectory) -> Path:
    """The lock of the one process of the run that asks the engines."""
    return directory.path / "engines.lock"


class EngineProbe:
    """Asks the address that a process of the job published in the run's directory."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._is_told = False

    def sample(self) -> dict[str, float]:
        """The numbers of all engines, by metric and labels; empty where no address is known, and
        where there is no answer, which is told once.
        """
        url = read_engines(self._directory)
        if url is None:
            return {}
        try:
            return numbers(fetch(url))
        except (OSError, HTTPException, ValueError) as error:
            if not self._is_told:
                self._is_told = True
                logger.warning(
                    "slime_logging: no metrics of the engines from %s (%s); it is asked again",
                    url,
                    _ODD.sub(" ", str(error))[:200] or type(error).__name__,
                )
            return {}


def fetch(url: str) -> bytes:
    """What the address answers.

    Raises:
        OSError, HTTPException, ValueError: no answer, one that is not 200, too long or too slow.
    """
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port or 80, timeout=TIMEOUT_S)
    connection.connect()
    deadline_s = time.monotonic() + TIMEOUT_S
    guard = threading.Timer(TIMEOUT_S, _cut, (connection.sock,))
    guard.start()
    try:
        connection.request("GET", place.path)
        answer = connection.getresponse()
        if answer.status != 200:
            raise OSError(f"it answers {answer.status} {answer.reason}")
        body = answer.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise OSError(f"it answers more than {MAX_BYTES} bytes")
        if answer.length or time.monotonic() > deadline_s:
            raise OSError(f"no whole answer within {TIMEOUT_S} s")
        return body
    finally:
        guard.cancel()
        connection.close()


def _cut(sock: socket.socket) -> None:
    """End an exchange whose other side sends a byte from time to time."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def numbers(page: bytes) -> dict[str, float]:
    """The numbers of a page in Prometheus' form, as
    `system/engines/<metric>/<label>=<value>,...`; the first `MAX_NUMBERS`.

    Raises:
        ValueError: there are none, so it is some other page.
    """
    found: dict[str, float] = {}
    times: Counter[str] = Counter()
    redactor = Redactor.of({}, {})
    for line in io.BytesIO(page):
        number = _number(line.decode("utf-8", "replace")) if len(line) <= MAX_LINE_BYTES else None
        if number is not None:
            name = redactor.key(number[0])
            times[name] += 1
            found[name if times[name] == 1 else f"{name}~{times[name]}"] = number[1]
            if len(found) == MAX_NUMBERS:
                break
    if not found:
        raise ValueError("no line of the answer is a metric of Prometheus")
    return found


def _number(line: str) -> tuple[str, float] | None:
    metric = _NAME.match(line)
    if metric is None or metric[0].endswith(LEFT_OUT):
        return None
    labels: list[str] = []
    at = metric.end()
    if line[at : at + 1] == "{":
        at += 1
        while label := _LABEL.match(line, at):
            at = label.end()
            labels += _shown(label[1], label[2])
        end = _END.match(line, at)
        if end is None:
            return None
        at = end.end()
    try:
        value = float(line[at:].split(maxsplit=1)[0])
    except (IndexError, ValueError):
        return None
    return "/".join([PREFIX, metric[0], *filter(None, [",".join(sorted(labels))])]), value


def _shown(name: str, value: str) -> Iterator[str]:
    value = (value.partition("://")[2] or value).rpartition("@")[2][:64]
    is_secret = judge(name) is not Verdict.SHOWN or looks_random(value)
    if name not in LABELS_LEFT_OUT and not is_secret:
        yield f"{name}={_ODD.sub('-', value)}"
