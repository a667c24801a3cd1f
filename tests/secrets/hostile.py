"""A run directory that an enemy made: every text in it tries to move the terminal, every path to lead out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVIL = "\x1b[31mred\x1b]52;c;ZXZpbA==\x07[bold red]x[/bold red][link=http://evil.example]y[/link]\x9b2J\u202eabc\u2066\r\n\x00"
"""Colours, the clipboard, rich's markup, a link, a C1 control, text turned round, a forged line."""

JOURNAL = "primary-host-1-0123456789abcdef"


def write_run(
    path: Path,
    *,
    options: dict[str, Any] | None = None,
    lines: list[Any] | None = None,
    text: str = EVIL,
) -> Path:
    """Write a run directory with hostile texts; returns it.

    Args:
        path: `<tracking-dir>/<run id>`.
        options: of `run.json`.
        lines: more lines of the journal; bytes as they are.
        text: what stands for every name and value.
    """
    (path / "journals").mkdir(parents=True)
    (path / "delivery").mkdir()
    run = {
        "run_id": path.name,
        "project": text,
        "name": text,
        "group": text,
        "created_s": 1.0,
        "num_starts": 1,
        "is_shared": False,
        "trackers": ["trackio"],
        "roles": ["actor", "critic", text],
        "axes": {"train": "train/step", text: text},
        "options": options or {},
        "host": text,
        "schema": 1,
    }
    (path / "run.json").write_text(json.dumps(run))
    opening = {
        "kind": "open",
        "seq": 0,
        "schema": 1,
        "run_id": path.name,
        "journal": JOURNAL,
        "role": text,
    }
    opening |= {
        "is_primary": True,
        "host": text,
        "pid": 1,
        "start": 1,
        "time_s": 1.0,
        "delivers": [],
        "owner": None,
    }
    records = [
        opening,
        _config(
            1,
            "",
            {
                text: text,
                "lr": 1,
                "overrides/critic/lr": {"base": text, "value": text, "source": text},
            },
        ),
        _config(2, "critic", {text: f"{text}2", "lr": text}),
        _config(3, text, {"lr": text}),
        {
            "kind": "row",
            "seq": 4,
            "time_s": 1.0,
            "step_key": text,
            "step": 1,
            "metrics": {text: text},
        },
        *(lines or []),
    ]
    written = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in records]
    (path / "journals" / f"{JOURNAL}.jsonl").write_bytes(b"".join(line + b"\n" for line in written))
    cursor = {
        "backend": "trackio",
        "destination": text,
        "label": text,
        "state": text,
        "reason": text,
    }
    (path / "delivery" / "trackio@x.json").write_text(json.dumps(cursor))
    return path


def row(seq: int, metrics: dict[str, Any]) -> dict[str, Any]:
    """A line of metrics."""
    return {
        "kind": "row",
        "seq": seq,
        "time_s": 1.0,
        "step_key": "train/step",
        "step": seq,
        "metrics": metrics,
    }


def _config(seq: int, scope: str, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "config",
        "seq": seq,
        "time_s": 1.0,
        "scope": scope,
        "rank": 1,
        "values": values,
    }
