"""The server's runs: in memory, and in an append-only file from which a killed server rebuilds them."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


def parse_line(text: str) -> dict[str, Any]:
    """A line of a file_stream, whose NaN and infinities become text."""
    content: dict[str, Any] = json.loads(text, parse_constant=str)
    return content


@dataclass
class Behaviour:
    """How the server treats what it is sent; every field may be changed while it runs.

    `config`: "replace" (the last upload stands) or "merge" (top-level keys are added up).
    `offsets`: "append" (every line is kept) or "honour" (a line overwrites the one at its offset).
    `lose_early`: how many of the first writer's rows vanish when a second shared writer logs for the first time.
    `lag_s`: how old the line counts in replies are.
    """

    config: str = "replace"
    offsets: str = "append"
    lose_early: int = 0
    lag_s: float = 0.0


@dataclass
class Run:
    """One run as the server holds it; `history` maps a line number to the line's JSON text."""

    entity: str
    project: str
    name: str
    number: int
    config: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: dict[int, str] = field(default_factory=dict)
    writers: dict[int, str] = field(default_factory=dict)
    counts: list[tuple[float, int]] = field(default_factory=list)
    num_events: int = 0
    num_logs: int = 0
    events_tail: str | None = None
    state: str = "running"
    exit_code: int | None = None
    is_preempting: bool = False
    files: list[str] = field(default_factory=list)

    def num_lines(self, lag_s: float = 0.0) -> int:
        """One more than the last line's number, as it was `lag_s` ago."""
        if not lag_s:
            return max(self.history, default=-1) + 1
        known = [count for time_s, count in self.counts if time_s <= time.monotonic() - lag_s]
        return known[-1] if known else 0

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """History rows by line number; `_step` is the client's own, or the line's number where it sent none.

        NaN and infinities are text, since replies are JSON.
        """
        lines = sorted(
            line for line in self.history if line >= start and (stop is None or line < stop)
        )
        return [{"_step": line, **parse_line(self.history[line])} for line in lines]


class Store:
    """All runs; every change is on disk before it is answered."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.behaviour = Behaviour()
        self.runs: dict[tuple[str, str, str], Run] = {}
        self.lock = threading.RLock()
        self._path = directory / "state.jsonl"
        if self._path.exists():
            for line in self._path.read_bytes().splitlines():
                event = json.loads(line)
                self._set(event["behaviour"])
                getattr(self, f"_{event['kind']}")(**event["arguments"])
        self._file = self._path.open("ab", buffering=0)

    def behave(self, **changes: Any) -> None:
        """Change the behaviour."""
        with self.lock:
            self._set(changes)

    def find(self, entity: str, project: str, name: str) -> Run | None:
        """The run, if there is one."""
        return self.runs.get((entity, project, name))

    def upsert(self, entity: str, project: str, name: str, **changes: Any) -> tuple[Run, bool]:
        """Create or change a run; returns it, and whether it is new."""
        with self.lock:
            is_new = (entity, project, name) not in self.runs
            self._record("upsert", {"key": [entity, project, name], "changes": changes})
            return self.runs[entity, project, name], is_new

    def stream(self, run: Run, body: dict[str, Any], writer: str, *, derives_summary: bool) -> None:
        """Take one file_stream request."""
        with self.lock:
            key = [run.entity, run.project, run.name]
            self._record(
                "stream",
                {"key": key, "body": body, "writer": writer, "derives_summary": derives_summary},
            )

    def add_file(self, run: Run, name: str) -> None:
        """Note an uploaded file."""
        with self.lock:
            self._record("add_file", {"key": [run.entity, run.project, run.name], "name": name})

    def _record(self, kind: str, arguments: dict[str, Any]) -> None:
        behaviour = {
            each.name: getattr(self.behaviour, each.name) for each in fields(self.behaviour)
        }
        event = {"kind": kind, "arguments": arguments, "behaviour": behaviour}
        self._file.write(json.dumps(event).encode() + b"\n")
        getattr(self, f"_{kind}")(**arguments)

    def _set(self, changes: dict[str, Any]) -> None:
        for name, value in changes.items():
            if name not in {each.name for each in fields(self.behaviour)}:
                raise ValueError(f"no such behaviour: {name}")
            setattr(self.behaviour, name, value)

    def _upsert(self, key: list[str], changes: dict[str, Any]) -> None:
        entity, project, name = key
        run = self.runs.setdefault(
            (entity, project, name), Run(entity, project, name, number=len(self.runs) + 1)
        )
        config = changes.pop("config", None)
        if config is not None:
            run.config = {**run.config, **config} if self.behaviour.config == "merge" else config
        run.attributes.update({name: value for name, value in changes.items() if value is not None})
        run.state, run.exit_code = "running", None

    def _add_file(self, key: list[str], name: str) -> None:
        entity, project, run_name = key
        files = self.runs[entity, project, run_name].files
        if name not in files:
            files.append(name)

    def _stream(
        self, key: list[str], body: dict[str, Any], writer: str, derives_summary: bool
    ) -> None:
        entity, project, name = key
        run = self.runs[entity, project, name]
        files = body.get("files") or {}
        if history := files.get("wandb-history.jsonl"):
            self._add_history(run, history, writer)
            if derives_summary:
                for line in history["content"]:
                    run.summary.update(parse_line(line))
        if events := files.get("wandb-events.jsonl"):
            run.num_events = events["offset"] + len(events["content"])
            run.events_tail = events["content"][-1] if events["content"] else run.events_tail
        if output := files.get("output.log"):
            run.num_logs = max(run.num_logs, output["offset"] + len(output["content"]))
        if summary := files.get("wandb-summary.json"):
            posted = parse_line(summary["content"][-1])
            run.summary = {**run.summary, **posted} if derives_summary else posted
        run.is_preempting = run.is_preempting or bool(body.get("preempting"))
        if body.get("complete"):
            run.exit_code = body.get("exitcode")
            run.state = (
                "finished" if run.exit_code == 0 else "preempted" if run.is_preempting else "failed"
            )
        else:
            run.state = "running"

    def _add_history(self, run: Run, history: dict[str, Any], writer: str) -> None:
        others = [line for line, other in run.writers.items() if other != writer]
        if self.behaviour.lose_early and others and writer not in run.writers.values():
            for line in sorted(others)[: self.behaviour.lose_early]:
                del run.history[line], run.writers[line]
        start = history["offset"] if self.behaviour.offsets == "honour" else run.num_lines()
        for line, content in enumerate(history["content"], start):
            run.history[line] = content
            run.writers[line] = writer
        run.counts.append((time.monotonic(), run.num_lines()))
