"""The HTTP side of the server: keys, routes, faults, and a record of every byte received."""

from __future__ import annotations

import base64
import gzip
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.wandb_server import graphql
from tests.wandb_server.faults import Fault, Faults
from tests.wandb_server.store import Store

DEFAULT_KEY = "0123456789abcdef0123456789abcdef01234567"
HANG_S = 600.0
STREAM_PATH = re.compile(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream")
STORAGE_PATH = re.compile(r"/storage/([^/]+)/([^/]+)/([^/]+)/(.+)")
OPERATION = re.compile(r"^\s*(?:#.*\n)*\s*(?:query|mutation)\s+(\w+)", re.MULTILINE)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, directory: Path, port: int, key: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.key = directory, key
        self.store, self.faults = Store(directory), Faults()
        self._requests = (directory / "requests.jsonl").open("ab", buffering=0)
        self._problems = (directory / "problems.jsonl").open("ab", buffering=0)
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def record(self, **request: Any) -> None:
        with self._lock:
            self._requests.write(json.dumps(request).encode() + b"\n")

    def complain(self, text: str) -> None:
        with self._lock:
            self._problems.write(json.dumps(text).encode() + b"\n")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed leave broken connections: no fault of theirs to report."""


def make_server(directory: Path, *, port: int = 0, key: str = DEFAULT_KEY) -> _Server:
    """A server that is bound but not yet serving; call `serve_forever`."""
    return _Server(directory, port, key)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/_control/"):
            return self._control(json.loads(raw or b"null"))
        body = gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw
        op = self._operation(body)
        fault = self.server.faults.match(op, is_graphql=self.path == "/graphql")
        self._record(op, body, fault)
        if fault is not None and self._suffer(fault):
            return None
        if not self._is_authorized() and op != "file_put":
            return self._reply(401, {"errors": [{"message": "invalid API key"}]})
        try:
            reply = self._act(op, body)
        except (graphql.Problem, KeyError, TypeError, ValueError) as problem:
            self.server.complain(f"{op}: {type(problem).__name__}: {problem}")
            return self._reply(400, {"errors": [{"message": str(problem)}]})
        if fault is not None and fault.action == "cut_after":
            return self._cut()
        return self._reply(
            404 if reply is None else 200,
            reply if reply is not None else {"error": "run not found"},
        )

    do_GET = do_PUT = do_HEAD = do_POST

    def _operation(self, body: bytes) -> str:
        if self.path == "/graphql":
            request = json.loads(body)
            found = OPERATION.search(request.get("query") or "")
            return str(request.get("operationName") or (found and found.group(1)) or "?")
        if STREAM_PATH.fullmatch(self.path):
            return "file_stream"
        return (
            "file_put" if self.command == "PUT" and STORAGE_PATH.fullmatch(self.path) else self.path
        )

    def _act(self, op: str, body: bytes) -> dict[str, Any] | None:
        if self.path == "/graphql":
            variables = json.loads(body).get("variables") or {}
            return {"data": graphql.answer(self.server.store, self.server.url, op, variables)}
        if op == "file_stream":
            return self._stream(json.loads(body))
        if op == "file_put":
            return self._put(body)
        raise graphql.Problem(f"unknown request {self.command} {self.path}")

    def _stream(self, body: dict[str, Any]) -> dict[str, Any] | None:
        found = STREAM_PATH.fullmatch(self.path)
        run = self.server.store.find(*found.groups()) if found else None
        if run is None:
            return None
        writer = (
            self.headers.get("X-WANDB-ASYNC-CLIENT-ID")
            or self.headers.get("X-WANDB-CLIENT-ID")
            or ""
        )
        derives = self.headers.get("X-WANDB-SERVER-SIDE-DERIVED-SUMMARY") is not None
        self.server.store.stream(run, body, writer, derives_summary=derives)
        return {"exitcode": run.exit_code, "limits": {}}

    def _put(self, body: bytes) -> dict[str, Any] | None:
        found = STORAGE_PATH.fullmatch(self.path)
        run = self.server.store.find(*found.groups()[:3]) if found else None
        if found is None or run is None:
            return None
        path = self.server.directory / "files" / run.name / found.group(4)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        self.server.store.add_file(run, found.group(4))
        return {}

    def _control(self, order: Any) -> None:
        match self.path.removeprefix("/_control/"):
            case "fault":
                self.server.faults.add(Fault(**order))
            case "clear":
                self.server.faults.clear()
            case "behave":
                self.server.store.behave(**order)
        with self.server.store.lock:
            runs = [
                {**vars(run), "history": run.rows(), "writers": None, "counts": None}
                for run in self.server.store.runs.values()
            ]
        self._reply(200, {"runs": runs})

    def _suffer(self, fault: Fault) -> bool:
        """Do what the fault says; True where that was the answer."""
        if fault.action == "status":
            self._reply(fault.status, {"errors": [{"message": f"told to answer {fault.status}"}]})
        elif fault.action == "hang":
            self.server.faults.cleared.wait(HANG_S)
            self._cut()
        elif fault.action == "cut":
            self._cut()
        elif fault.action == "delay":
            time.sleep(fault.seconds)
        return fault.action in ("status", "hang", "cut")

    def _is_authorized(self) -> bool:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        return kind == "Basic" and base64.b64decode(value).decode() == f"api:{self.server.key}"

    def _record(self, op: str, body: bytes, fault: Fault | None) -> None:
        headers = {name: value for name, value in self.headers.items() if name != "Authorization"}
        self.server.record(
            op=op,
            method=self.command,
            path=self.path,
            headers=headers,
            body=body.decode("utf-8", "backslashreplace"),
            fault=fault.action if fault else None,
        )

    def _reply(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.close()
