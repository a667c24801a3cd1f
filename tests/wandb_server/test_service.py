"""The W&B server for tests is itself strict, unkind on demand, and safe to kill."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.wandb_server import WandbServer


def send(
    server: WandbServer, path: str, content: Any, *, key: str | None = None, zipped: bool = False
) -> Any:
    token = base64.b64encode(f"api:{key or server.key}".encode()).decode()
    data = json.dumps(content).encode()
    headers = {"Authorization": f"Basic {token}"}
    if zipped:
        data, headers["Content-Encoding"] = gzip.compress(data), "gzip"
    request = urllib.request.Request(f"{server.url}{path}", data=data, headers=headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        request, timeout=10
    ) as reply:
        return json.load(reply)


def upsert(server: WandbServer, **config: Any) -> Any:
    wrapped = json.dumps({key: {"value": value} for key, value in config.items()})
    variables = {"name": "r", "project": "p", "entity": None, "config": wrapped}
    return send(
        server, "/graphql", {"operationName": "UpsertBucket", "query": "", "variables": variables}
    )


def stream(server: WandbServer, offset: int, *rows: dict[str, Any], zipped: bool = False) -> Any:
    content = {"offset": offset, "content": [json.dumps(row) for row in rows]}
    body = {"files": {"wandb-history.jsonl": content}}
    return send(server, "/files/tester/p/r/file_stream", body, zipped=zipped)


def test_it_refuses_a_wrong_key(wandb_server: WandbServer) -> None:
    """401, and nothing is stored."""
    with pytest.raises(urllib.error.HTTPError, match="401"):
        send(wandb_server, "/graphql", {"operationName": "Viewer", "query": ""}, key="x")


def test_an_unknown_operation_is_a_problem(wandb_server: WandbServer) -> None:
    """The client is answered 400, and the test that used it would fail."""
    with pytest.raises(urllib.error.HTTPError, match="400"):
        send(wandb_server, "/graphql", {"operationName": "Nonsense", "query": ""})
    assert len(wandb_server.problems) == 1
    (wandb_server.path / "problems.jsonl").unlink()


def test_a_configuration_that_is_not_json_is_a_problem(wandb_server: WandbServer) -> None:
    """A bare Infinity, which Python writes and no other reader takes."""
    with pytest.raises(urllib.error.HTTPError, match="400"):
        upsert(wandb_server, x=float("inf"))
    (wandb_server.path / "problems.jsonl").unlink()


@pytest.mark.parametrize(
    ("semantics", "held"), [("replace", {"b": 2}), ("merge", {"a": 1, "b": 2})]
)
def test_config_is_replaced_or_merged(
    wandb_server: WandbServer, semantics: str, held: dict[str, int]
) -> None:
    """As told."""
    wandb_server.behave(config=semantics)
    upsert(wandb_server, a=1)
    upsert(wandb_server, b=2)
    assert wandb_server.config("r") == held


@pytest.mark.parametrize(("semantics", "held"), [("append", [1, 2]), ("honour", [2])])
def test_offsets_are_appended_or_honoured(
    wandb_server: WandbServer, semantics: str, held: list[int]
) -> None:
    """Two lines at one offset."""
    wandb_server.behave(offsets=semantics)
    upsert(wandb_server)
    stream(wandb_server, 0, {"x": 1})
    stream(wandb_server, 0, {"x": 2}, zipped=True)
    assert [row["x"] for row in wandb_server.rows("r")] == held


def test_its_state_survives_a_kill(wandb_server: WandbServer) -> None:
    """kill -9 and start again: same address, same runs."""
    upsert(wandb_server, a=1)
    stream(wandb_server, 0, {"x": 1})
    wandb_server.restart()
    stream(wandb_server, 1, {"x": 2})
    assert wandb_server.config("r") == {"a": 1}
    assert [row["x"] for row in wandb_server.rows("r")] == [1, 2]


def test_faults_meet_the_requests_they_name(wandb_server: WandbServer) -> None:
    """The second file_stream is answered 503, and only that."""
    upsert(wandb_server)
    wandb_server.fail("file_stream", 503, times=1, skip=1)
    stream(wandb_server, 0, {"x": 1})
    with pytest.raises(urllib.error.HTTPError, match="503"):
        stream(wandb_server, 1, {"x": 2})
    stream(wandb_server, 1, {"x": 3})
    assert [row["x"] for row in wandb_server.rows("r")] == [1, 3]


@pytest.mark.parametrize(("action", "held"), [("cut", []), ("cut_after", [1])])
def test_a_cut_connection_may_or_may_not_have_stored(
    wandb_server: WandbServer, action: str, held: list[int]
) -> None:
    """Before the work or after it: the client cannot tell."""
    upsert(wandb_server)
    wandb_server.fail("file_stream", action=action, times=1)
    with pytest.raises((http.client.HTTPException, OSError)):
        stream(wandb_server, 0, {"x": 1})
    assert [row["x"] for row in wandb_server.rows("r")] == held


def test_it_records_what_it_received_but_not_the_key(wandb_server: WandbServer) -> None:
    """Bodies are recorded unzipped, so that a test can look for a canary in every byte."""
    upsert(wandb_server)
    stream(wandb_server, 0, {"canary": "c4n4ry"}, zipped=True)
    assert any("c4n4ry" in request["body"] for request in wandb_server.requests)
    assert wandb_server.key not in str(wandb_server.requests)
