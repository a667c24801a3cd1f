"""Runs to show: directories as a finished job leaves them, written in an instant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slime_logging.record.run import RunDirectory

START_S = 1_790_000_000.0


def write(
    path: Path,
    journals: Sequence[tuple[Any, ...]],
    *,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    exit_code: int | None = 0,
) -> RunDirectory:
    """Write a run.

    Args:
        path: `<tracking-dir>/<run id>`.
        journals: (role, rank, rows) or (role, rank, row, steps); a row is what is logged at each
            step.
        config: scope -> values, of the first journal.
        exit_code: of each process; None for one that did not finish.
    """
    (path / "journals").mkdir(parents=True)
    (path / "delivery").mkdir()
    roles = list(dict.fromkeys(role for role, *_ in journals))
    run = {"run_id": path.name, "project": "ppo", "name": path.name, "group": None, "schema": 1}
    run |= {
        "created_s": START_S,
        "num_starts": 1,
        "is_shared": False,
        "trackers": [],
        "roles": roles,
    }
    run |= {"axes": {"train": "train/step", "rollout": "rollout/step"}, "options": {}, "host": "h"}
    (path / "run.json").write_text(json.dumps(run))
    for number, (role, rank, rows, *steps) in enumerate(journals):
        each = [rows for _ in steps[0]] if steps else [rows] if isinstance(rows, dict) else rows
        name = f"{role}-r{rank}-h-{number}-{number:016x}"
        if rank is None:
            name = f"{role}-h-{number}-{number:016x}"
        records = [
            {"kind": "open", "schema": 1, "run_id": path.name, "journal": name, "role": role}
            | {"is_primary": number == 0, "host": "h", "pid": number, "start": 1}
            | {"time_s": START_S, "owner": None, "delivers": []}
        ]
        if number == 0:
            records += [_config(scope, values) for scope, values in (config or {}).items()]
        records += _rows(each, steps[0] if steps else range(len(each)))
        if exit_code is not None:
            records.append(
                {"kind": "finish", "time_s": START_S + len(each), "exit_code": exit_code}
            )
        lines = [json.dumps(record | {"seq": seq}) for seq, record in enumerate(records)]
        (path / "journals" / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return RunDirectory(path)


def _config(scope: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "config", "time_s": START_S, "scope": scope, "rank": 1, "values": values}


def _rows(rows: Iterable[dict[str, Any]], steps: Iterable[float]) -> list[dict[str, Any]]:
    return [
        {"kind": "row", "time_s": START_S + n + 1, "step_key": "train/step", "step": step}
        | {"metrics": metrics}
        for n, (step, metrics) in enumerate(zip(steps, rows, strict=True))
    ]
