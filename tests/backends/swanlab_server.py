"""A stand-in for SwanLab's server: what its client 0.10.3 asks for, and an error for everything else."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "k" * 21
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class SwanlabServer:
    """Holds projects, one run each by id, with what was uploaded; `refuse` makes it answer metrics with a status."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.projects: set[str] = set()
        self.scalars: list[tuple[str, int, Any, str]] = []
        self.files: list[bytes] = []
        self.refuse: int | None = None
        self.unexpected: list[str] = []
        handler = type("Handler", (_Handler,), {"held": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.uri = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: Any, key: str | None) -> tuple[int, Any]:
        """Status and answer to a request."""
        for pattern, function in _ROUTES.items():
            found = re.fullmatch(pattern, f"{method} {path}")
            if found:
                return function(self, *found.groups(), body=body, key=key)  # type: ignore[no-any-return]
        self.unexpected.append(f"{method} {path}")
        return 404, {"code": "NotFound", "message": f"{method} {path}"}

    def _login(self, *, body: Any, key: str | None) -> tuple[int, Any]:
        if key != KEY:
            return 401, {"code": "Unauthorized", "message": "wrong key"}
        return 200, {
            "sid": "s",
            "expiredAt": "2099-01-01T00:00:00.000Z",
            "userInfo": {"username": "user"},
        }

    def _project(self, user: str, name: str, *, body: Any, key: str | None) -> tuple[int, Any]:
        if name not in self.projects:
            return 404, {"code": "NotFound", "message": name}
        facts = {
            "cuid": f"p-{name}",
            "name": name,
            "path": f"/{user}/{name}",
            "visibility": "PRIVATE",
            "version": 1,
        }
        return 200, facts | {"group": {"username": user}, "_count": {"experiments": len(self.runs)}}

    def _new_project(self, user: str, *, body: Any, key: str | None) -> tuple[int, Any]:
        self.projects.add(body["name"])
        return 201, {}

    def _experiment(
        self, user: str, project: str, *, body: Any, key: str | None
    ) -> tuple[int, Any]:
        is_new = body["cuid"] not in self.runs
        run = self.runs.setdefault(body["cuid"], {"config": {}, "states": []})
        run.update(name=body["name"], group=body.get("cluster"))
        run["states"].append("RUNNING")
        answer = {
            "cuid": body["cuid"],
            "slug": body["cuid"],
            "name": body["name"],
            "createdAt": body["createdAt"],
        }
        return (201 if is_new else 200), answer

    def _summary(self, project: str, run: str, *, body: Any, key: str | None) -> tuple[int, Any]:
        last: dict[str, int] = {}
        for name, step, _, _ in self.scalars:
            last[name] = max(step, last.get(name, -1))
        return 200, {
            "log": [],
            "media": [],
            "scalar": [{"key": name, "step": step} for name, step in last.items()],
        }

    def _profile(
        self, user: str, project: str, run: str, *, body: Any, key: str | None
    ) -> tuple[int, Any]:
        self.runs[run]["config"] = {
            name: entry["value"] for name, entry in body.get("config", {}).items()
        }
        return 200, {}

    def _metrics(self, *, body: Any, key: str | None) -> tuple[int, Any]:
        if self.refuse:
            return self.refuse, {"code": "Refused", "message": "refused"}
        if body["type"] == "scalar":
            for metric in body["metrics"]:
                assert _ISO.fullmatch(metric["create_time"]) and isinstance(metric["index"], int)
                self.scalars.append(
                    (metric["key"], metric["index"], metric["data"], metric["create_time"])
                )
        return 200, {}

    def _presigned(self, *, body: Any, key: str | None) -> tuple[int, Any]:
        return 200, {
            "urls": [f"{self.uri}/upload/{number}" for number, _ in enumerate(body["paths"])]
        }

    def _upload(self, *_: str, body: Any, key: str | None) -> tuple[int, Any]:
        self.files.append(body)
        return 200, {}

    def _state(
        self, user: str, project: str, run: str, *, body: Any, key: str | None
    ) -> tuple[int, Any]:
        self.runs[run]["states"].append(body["state"])
        return 200, {}

    def _nothing(self, *_: str, body: Any, key: str | None) -> tuple[int, Any]:
        return 200, {}


_ROUTES: dict[str, Any] = {
    r"POST /api/login/api_key": SwanlabServer._login,
    r"GET /api/project/([^/]+)/([^/]+)": SwanlabServer._project,
    r"POST /api/projects/([^/]+)": SwanlabServer._new_project,
    r"POST /api/project/([^/]+)/([^/]+)/experiment": SwanlabServer._experiment,
    r"GET /api/house/metrics/summaries/([^/]+)/([^/?]+)\?.*": SwanlabServer._summary,
    r"PUT /api/project/([^/]+)/([^/]+)/runs/([^/]+)/profile": SwanlabServer._profile,
    r"PUT /api/project/([^/]+)/([^/]+)/runs/([^/]+)/state": SwanlabServer._state,
    r"POST /api/house/metrics": SwanlabServer._metrics,
    r"POST /api/resources/presigned/put": SwanlabServer._presigned,
    r"PUT /upload/(\d+)": SwanlabServer._upload,
    r"POST /api/projects/([^/]+)/([^/]+)/series": SwanlabServer._nothing,
    r"POST /api/house/experiments/([^/]+)/heartbeat": SwanlabServer._nothing,
}


class _Handler(BaseHTTPRequestHandler):
    held: SwanlabServer
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = self.headers.get("authorization")
        is_json = body and not self.path.startswith("/upload/")
        status, answer = self.held.answer(
            self.command, self.path, json.loads(body) if is_json else body, key
        )
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, *args: Any) -> None:
        return
