"""SwanLab's client: one run a process.

Rows go to its event queue rather than to `swanlab.log`, which would stamp them with the time of
arrival. Of a metric SwanLab keeps one value a step and drops every other without a word (a lower
one too after a resume): such a value goes to a column of its own, `<key>~2`. Checked with swanlab
0.10.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from slime_logging.values.json_value import Json
from slime_logging.values.samples import as_table, read_samples

TEXT_SUFFIX = "/text"
TABLE_SUFFIX = "/table"
_FIRST_SERVER_ERROR, _PASSING_STATUS = 500, frozenset({408, 429})
_LOGIN_TIMEOUT_S = 10.0
_AGAIN = re.compile(r"~\d+$")


class SwanlabRun:
    """A run of SwanLab's, from `open` to `finish`."""

    def __init__(self) -> None:
        self._run: Any = None
        self._seen: dict[str, tuple[int, Any]] = {}
        self._config: dict[str, Json] = {}
        self._refused: list[str] = []

    def open(self, mode: str, log_dir: str, facts: Mapping[str, Any], run_id: str) -> None:
        """Start a run, or online continue the one with this id."""
        import swanlab

        off = dict.fromkeys(
            ("hardware", "runtime", "requirements", "conda", "git", "swanlab", "monitor"), False
        )
        settings = swanlab.Settings(interactive=False, probe=off, terminal={"proxy_type": "none"})
        if mode == "online" and settings.api_key:
            _log_in(settings.api_host, settings.api_key)
        self._run = swanlab.init(
            mode=mode,
            log_dir=log_dir,
            id=run_id,
            resume="allow" if mode == "online" else "never",
            parallel="none",
            settings=settings,
            **facts,
        )
        if mode == "online":
            _watch(self._run, self._refused)

    def set_config(self, values: Mapping[str, Json]) -> None:
        """Update the run's configuration with what changed."""
        new = {
            key: value
            for key, value in values.items()
            if key not in self._config or self._config[key] != value
        }
        if new:
            self._run.config.update(new)
            self._config |= new

    def write(self, rows: Sequence[tuple[int, int, Mapping[str, float | str]]]) -> None:
        """Queue rows of step, microseconds and values; a text's key ends in `TEXT_SUFFIX`."""
        import swanlab
        from google.protobuf.timestamp_pb2 import Timestamp  # type: ignore[import-untyped, unused-ignore]
        from swanlab.sdk.internal.bus import MetricLogEvent

        # What was queued before; its own file buffer waits for 8 KiB.
        self._run._core._store.ensure_flushed()
        for step, microseconds, values in rows:
            timestamp = Timestamp()
            timestamp.FromMicroseconds(microseconds)
            data = {
                self._unused(key, step): swanlab.Text(value) if isinstance(value, str) else value
                for key, value in values.items()
            }
            event = MetricLogEvent(data=data, step=step, timestamp=timestamp)
            self._run._components.emitter.emit(event)

    def samples(self, key: str, step: int, directory: Path, file: str) -> None:
        """Queue samples of the run in `directory` as a table."""
        import swanlab

        try:
            columns, data = as_table(read_samples(directory, file))
        except (OSError, ValueError):  # gone, or never ours: the row that refers to it is there
            return
        table = swanlab.echarts.Table()
        table.add(columns, data)
        self._run.log({key: table}, step=step)

    def finish(self, state: str | None, error: str | None) -> None:
        """End the run; with None leave it open, everything so far in its file (an online run can
        only be ended).
        """
        run = self._run
        if state is None and run.mode != "online":
            # Its consumer writes what is queued before it ends; the run gets no end record.
            run._components.consumer.stop()
            run._components.consumer.join()
            run._core._store.ensure_flushed()
        else:
            run.finish(state=state or "success", error=error)
        if self._refused:
            raise RuntimeError(
                f"the server refused {len(self._refused)} batches for good: {self._refused[0]}"
            )

    def _unused(self, key: str, step: int) -> str:
        """The first of `key`, `key~2`, ... that has no value at this step yet, nor one that SwanLab
        knew at the start.
        """
        from pyroaring import BitMap64

        column, number = key, 2
        while True:
            if column not in self._seen:
                known = self._run._core._metrics.get(column)
                self._seen[column] = (known.min_step if known else -1, BitMap64())
            lowest, steps = self._seen[column]
            if step > lowest and step not in steps:
                steps.add(step)
                return column
            column, number = f"{key}~{number}", number + 1


def _watch(run: Any, refused: list[str]) -> None:
    """Note what SwanLab's client only prints: batches that the server refused, and an end that it
    did not take.
    """
    from swanlab.sdk.internal.core_python.transport.sender import HttpRecordSender

    upload, confirm = HttpRecordSender.upload, run._core.confirm_run_finish

    def watched_upload(sender: Any, record_type: str, records: Any) -> Any:
        result = upload(sender, record_type, records)
        refused.extend(one.message for one in result.failures if not result.remaining_records)
        return result

    def watched_confirm(*arguments: Any) -> Any:
        answer = confirm(*arguments)
        if not answer.success:
            raise ConnectionError(answer.message)
        return answer

    HttpRecordSender.upload = watched_upload
    run._core.confirm_run_finish = watched_confirm


def _log_in(host: str, key: str) -> None:
    """Try the key first: SwanLab takes a server that is down, like any other trouble, for a wrong
    key.
    """
    import requests

    url = f"{host.rstrip('/')}/api/login/api_key"
    requests.post(url, headers={"authorization": key}, timeout=_LOGIN_TIMEOUT_S).raise_for_status()


def read_points(log_dir: str, run_id: str) -> Iterator[tuple[str, int, int, float | str]]:
    """Key, microseconds, step and value of everything in the run's local files, in the order of
    their names.
    """
    for directory, kind, held in _held(log_dir, run_id):
        if not held.key.endswith(TABLE_SUFFIX):
            value = held.value.number if kind == "scalar" else _text(directory, "text", held)
            yield _AGAIN.sub("", held.key), held.timestamp.ToMicroseconds(), held.step, value


def read_tables(log_dir: str, run_id: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Key, step and content of the tables in the run's local files."""
    for directory, kind, held in _held(log_dir, run_id):
        if kind == "media" and held.key.endswith(TABLE_SUFFIX):
            yield held.key, held.step, json.loads(_text(directory, "echarts", held))


def _held(log_dir: str, run_id: str) -> Iterator[tuple[Path, str, Any]]:
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record

    for directory in _directories(log_dir, run_id):
        for data in _records(directory):
            record = Record.FromString(data)
            kind = record.WhichOneof("record_type")
            if kind in ("scalar", "media"):
                yield directory, kind, getattr(record, kind)


def _text(directory: Path, folder: str, held: Any) -> str:
    name: str = held.value.items[0].filename
    return (directory / "media" / folder / name).read_bytes().decode()


def read_config(log_dir: str, run_id: str) -> dict[str, Json]:
    """The configuration in the newest of the run's local directories."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    for directory in reversed(_directories(log_dir, run_id)):
        path = directory / "files" / "config.yaml"
        if path.exists():
            held = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
            return {key: entry["value"] for key, entry in held.items()}
    return {}


def _directories(log_dir: str, run_id: str) -> list[Path]:
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record

    found = []
    for path in sorted(Path(log_dir).glob("run-*/*.swanlab")):
        first = next(iter(_records(path.parent)), b"")
        if Record.FromString(first).start.id == run_id:
            found.append(path.parent)
    return found


def _records(directory: Path) -> Iterator[bytes]:
    """The whole records of a run's file; half a one at its end is the mark of a killed writer."""
    from swanlab.sdk.internal.core_python.store import DataStoreError, DataStoreReader

    for path in directory.glob("*.swanlab"):
        reader = DataStoreReader()
        # Its reader asserts where a file is cut off; behind that nothing can be found.
        with suppress(AssertionError, DataStoreError):
            reader.open(path)
            while (data := reader.scan()) is not None:
                yield data


def is_passing(error: Exception) -> bool:
    """No connection, no answer, 429 and 5xx may pass; a wrong key or name never does."""
    from requests import HTTPError

    status = getattr(error.response, "status_code", None) if isinstance(error, HTTPError) else None
    if status is not None:
        return status >= _FIRST_SERVER_ERROR or status in _PASSING_STATUS
    return isinstance(error, OSError)
