"""The GraphQL operations that W&B's client sends, by name; an unknown one is a `Problem`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.wandb_server.store import Run, Store

ENTITY = "tester"
MAX_NAME_CHARS = 128


class Problem(Exception):
    """A request that no right client sends: it is answered with an error, and fails the test."""


def answer(
    store: Store, base_url: str, operation: str, variables: dict[str, Any]
) -> dict[str, Any]:
    """The `data` of the reply."""
    if operation not in OPERATIONS:
        raise Problem(f"unknown GraphQL operation {operation!r} with {sorted(variables)}")
    with store.lock:  # a stream that is taken meanwhile would change what is being read
        return OPERATIONS[operation](store, base_url, variables)


def strict_json(text: str) -> Any:
    """JSON without NaN and Infinity, which only Python writes."""

    def refuse(constant: str) -> None:
        raise Problem(f"not JSON: {constant} in {text[:200]!r}")

    return json.loads(text, parse_constant=refuse)


def _viewer(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    return {
        "viewer": {
            "id": "VXNlcjox",
            "name": ENTITY,
            "entity": ENTITY,
            "username": ENTITY,
            "email": "tester@example.com",
            "admin": False,
            "flags": "{}",
            "teams": {"edges": []},
        }
    }


def _features(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    return {"serverInfo": {"features": []}}


def _organization(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    return {"entity": {"organization": None}}


def _upsert_bucket(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    for name in ("name", "project"):
        if not variables.get(name):
            raise Problem(f"UpsertBucket without {name}")
    for name in ("name", "project", "displayName", "groupName"):
        if len(variables.get(name) or "") > MAX_NAME_CHARS:
            raise Problem(f"{name} is longer than {MAX_NAME_CHARS} characters")
    config = strict_json(variables["config"]) if variables.get("config") else None
    if config is not None and not all(
        isinstance(item, dict) and "value" in item for item in config.values()
    ):
        raise Problem(f"a configuration without `value`: {config}")
    kept = ("displayName", "groupName", "jobType", "tags", "notes", "host", "program", "sweep")
    run, is_new = store.upsert(
        variables.get("entity") or ENTITY,
        variables["project"],
        variables["name"],
        config=config,
        **{name: variables.get(name) for name in kept},
    )
    bucket = {
        "id": f"run-{run.number}",
        "name": run.name,
        "displayName": run.attributes.get("displayName") or run.name,
        "description": None,
        "config": json.dumps(run.config),
        "sweepName": None,
        "project": {"id": "1", "name": run.project, "entity": {"id": "1", "name": run.entity}},
        "historyLineCount": run.num_lines(store.behaviour.lag_s),
    }
    return {"upsertBucket": {"bucket": bucket, "inserted": is_new}}


def _resume_status(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    entity = variables.get("entity") or ENTITY
    run = store.find(entity, variables["project"], variables["name"])
    bucket = None
    if run is not None:
        num_lines = run.num_lines(store.behaviour.lag_s)
        tail = run.rows(num_lines - 1, num_lines)
        # The client takes a run for existing only where `wandbConfig` holds its telemetry, `t`.
        telemetry = {"t": run.config.get("_wandb", {}).get("value", {}).get("t")}
        bucket = {
            "id": f"run-{run.number}",
            "name": run.name,
            "summaryMetrics": json.dumps(run.summary),
            "displayName": run.attributes.get("displayName") or run.name,
            "logLineCount": run.num_logs,
            "historyLineCount": num_lines,
            "eventsLineCount": run.num_events,
            "historyTail": json.dumps([json.dumps(row) for row in tail]),
            "eventsTail": json.dumps([run.events_tail] if run.events_tail else []),
            "config": json.dumps(run.config),
            "tags": run.attributes.get("tags") or [],
            "notes": run.attributes.get("notes"),
            "wandbConfig": json.dumps(telemetry) if telemetry["t"] else "{}",
        }
    project = {
        "id": "1",
        "name": variables["project"],
        "entity": {"id": "1", "name": entity},
        "bucket": bucket,
    }
    return {"model": project}


def _create_run_files(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    run = _run(store, variables["entity"], variables["project"], variables["run"])
    where = f"{base_url}/storage/{run.entity}/{run.project}/{run.name}"
    files = [{"name": name, "uploadUrl": f"{where}/{name}"} for name in variables["files"]]
    return {"createRunFiles": {"runID": f"run-{run.number}", "uploadHeaders": [], "files": files}}


def _run_by_api(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    run = store.find(variables["entity"], variables["project"], variables["name"])
    return {"project": {"run": _as_api_run(run) if run else None}}


def _runs_by_api(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    where = (variables["entity"], variables["project"])
    edges = [
        {"node": _as_api_run(run), "cursor": str(run.number)}
        for key, run in store.runs.items()
        if key[:2] == where
    ]
    page = {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}
    return {"project": {"internalId": "1", "runCount": len(edges), "readOnly": False, "runs": page}}


def _history_keys(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    run = _run(store, variables["entity"], variables["project"], variables["name"])
    keys = {"lastStep": run.num_lines() - 1, "sets": [], "keys": {}} if run.history else None
    return {"project": {"run": {"historyKeys": keys}}}


def _history_page(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    run = _run(store, variables["entity"], variables["project"], variables["run"])
    rows = run.rows(int(variables["minStep"]), int(variables["maxStep"]))[
        : int(variables["pageSize"])
    ]
    return {"project": {"run": {"history": [json.dumps(row) for row in rows]}}}


def _parquet_history(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    run = _run(store, variables["entity"], variables["project"], variables["runName"])
    return {"project": {"run": {"parquetHistory": {"parquetUrls": [], "liveData": run.rows()}}}}


def _stop_status(store: Store, base_url: str, variables: dict[str, Any]) -> dict[str, Any]:
    return {"project": {"run": {"stopped": False}}}


def _run(store: Store, entity: str | None, project: str, name: str) -> Run:
    run = store.find(entity or ENTITY, project, name)
    if run is None:
        raise Problem(f"no run {entity}/{project}/{name}")
    return run


def _as_api_run(run: Run) -> dict[str, Any]:
    return {
        "id": f"run-{run.number}",
        "projectId": "1",
        "tags": run.attributes.get("tags") or [],
        "name": run.name,
        "displayName": run.attributes.get("displayName") or run.name,
        "sweepName": None,
        "state": run.state,
        "config": json.dumps(run.config),
        "group": run.attributes.get("groupName"),
        "jobType": None,
        "commit": None,
        "readOnly": False,
        "createdAt": "2026-01-01T00:00:00Z",
        "heartbeatAt": "2026-01-01T00:00:00Z",
        "description": None,
        "notes": run.attributes.get("notes"),
        "systemMetrics": "{}",
        "summaryMetrics": json.dumps(run.summary),
        "historyLineCount": run.num_lines(),
        "user": {"name": ENTITY, "username": ENTITY},
        "historyKeys": {"lastStep": run.num_lines() - 1, "sets": [], "keys": {}}
        if run.history
        else None,
    }


OPERATIONS: dict[str, Callable[[Store, str, dict[str, Any]], dict[str, Any]]] = {
    "Viewer": _viewer,
    "GetDefaultEntity": _viewer,
    "ServerFeaturesQuery": _features,
    "OrganizationCoreWeaveOrganizationID": _organization,
    "UpsertBucket": _upsert_bucket,
    "RunResumeStatus": _resume_status,
    "CreateRunFiles": _create_run_files,
    "RunStoppedStatus": _stop_status,
    "Run": _run_by_api,
    "Runs": _runs_by_api,
    "RunHistoryKeys": _history_keys,
    "HistoryPage": _history_page,
    "RunParquetHistory": _parquet_history,
}
