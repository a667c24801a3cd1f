"""The engines' own metrics are sampled from their router, and a router that is wrong, slow or hostile costs its numbers alone."""

from __future__ import annotations

import copy
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import slime_logging as sl
from slime_logging.delivery import engines
from slime_logging.delivery.engines import EngineProbe, numbers
from slime_logging.delivery.status import journal_rows
from slime_logging.record.engines import publish_engines, read_engines
from slime_logging.record.run import RunDirectory
from tests.record.test_run import made
from tests.test_tracking import directory, held, job

PAGE = """\
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="/models/q",tp_rank="0",worker_addr="http://10.0.0.1:15000"} 3.0
sglang:num_running_reqs{engine_type="unified",model_name="/models/q",tp_rank="0",worker_addr="http://10.0.0.2:15000"} 5.0 1700000000000
sglang:time_to_first_token_seconds_bucket{le="0.1",worker_addr="http://10.0.0.1:15000"} 7.0
sglang:time_to_first_token_seconds_sum{worker_addr="http://10.0.0.1:15000"} 2.5
up 1
"""
NUMBERS = {
    "system/engines/sglang:num_running_reqs/tp_rank=0,worker_addr=10.0.0.1:15000": 3.0,
    "system/engines/sglang:num_running_reqs/tp_rank=0,worker_addr=10.0.0.2:15000": 5.0,
    "system/engines/sglang:time_to_first_token_seconds_sum/worker_addr=10.0.0.1:15000": 2.5,
    "system/engines/up": 1.0,
}


def page(text: str, status: str = "200 OK") -> bytes:
    body = text.encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def router(answer: bytes | Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on this host that gives each caller the answer."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            with caller:
                try:
                    caller.recv(65536)
                    caller.sendall(answer) if isinstance(answer, bytes) else answer(caller)
                except OSError:
                    continue

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def test_a_page_is_read_by_metric_and_labels_without_buckets():
    assert numbers(PAGE.encode()) == NUMBERS


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('a{b="}"} 1', {"a/b=-": 1.0}),
        ('a{b="x\\"y,z"} 1', {"a/b=x-y-z": 1.0}),
        ('a{b="",c="1"} 2', {"a/b=,c=1": 2.0}),
        ('a{ b="1" , } 2', {"a/b=1": 2.0}),
        ('a{b="1"} 2 # {trace="x"} 0.5 17', {"a/b=1": 2.0}),
        ("a{} +Inf", {"a": math.inf}),
        ("a 1e3 5", {"a": 1000.0}),
        ("a{b=c} 1", {}),
        ('a{b="1" 1', {}),
        ("a", {}),
        ("a one", {}),
        ("{} 1", {}),
        ("", {}),
        ("a\n\x00\nb 1", {"b": 1.0}),
        ('a{b="x\u2028y"} 1', {"a/b=x-y": 1.0}),
        ('a{b="?"} 1\na{b="!"} 2', {"a/b=-": 1.0, "a/b=-~2": 2.0}),
        ("a" * 5000 + " 1", {}),
        ("a" * 300 + " 1", {}),
    ],
)
def test_odd_lines(line, found):
    read = numbers(f"z 1\n{line}".encode())
    assert read.pop("system/engines/z") == 1.0
    assert read == {f"system/engines/{name}": value for name, value in found.items()}


@pytest.mark.parametrize(
    "label",
    [
        'api_key="hunter2222"',
        'password="x"',
        'wandb_key="0123"',
        'pod="0123456789abcdef0123456789abcdef01234567"',
        'model="hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"',
        'model="sk-proj-abcdefghijklmnop0123456789ABCDEF"',
    ],
)
def test_a_label_that_may_be_secret_is_left_out(label):
    found = numbers(f'a{{{label},tp_rank="1"}} 1\n'.encode())
    assert [name.partition("/a/")[2] for name in found] == ["tp_rank=1"]


def test_a_worker_with_a_password_is_shown_without_it():
    assert list(numbers(b'a{worker="http://me:hunter2222@10.0.0.1:15"} 1')) == [
        "system/engines/a/worker=10.0.0.1:15"
    ]


def test_the_time_for_a_hostile_page_is_linear():
    def seconds(num: int) -> float:
        texts = ['a{b="' * num, "}" * num, 'a{b="x' + "\\" * num, "a " * num, "a{" + "b" * num]
        texts += ['a{b="1",' * num, "a{" + "," * num, "\n" * num]
        began = time.process_time()
        for text in texts:
            lines = [text[at : at + 3999] for at in range(0, len(text), 3999)]
            numbers("\n".join(["z 1", *lines]).encode())
        return time.process_time() - began

    seconds(10_000)
    assert seconds(400_000) / max(seconds(100_000), 1e-3) < 12


def test_a_page_has_an_end():
    page = "\n".join(f"a{n} 1" for n in range(9_000))
    assert len(numbers(page.encode())) == engines.MAX_NUMBERS
    assert len(numbers(b"a 1\n" * 9_000)) == engines.MAX_NUMBERS


def flood(caller: socket.socket) -> None:
    caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(2 * engines.MAX_BYTES // 2**16):
        caller.sendall(b"x" * 2**16)


def drip(head: bytes) -> Callable[[socket.socket], None]:
    def send(caller: socket.socket) -> None:
        caller.sendall(head)
        for _ in range(200):
            time.sleep(0.05)
            caller.sendall(b"x")

    return send


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (page("no", "404 Not Found"), "404 Not Found"),
        (page("<html>\n<b>1</b>\n"), "no line of the answer"),
        (page(""), "no line of the answer"),
        (page(PAGE, "302 Found"), "302 Found"),
        (b"", ""),
        (b"\x00\xff" * 9, ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nup 1\n", "no whole answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n99\r\nup 1\n", ""),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500, ""),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2**20, ""),
        (flood, "more than"),
        (drip(b"HTTP/1.1 200 OK\r\n\r\nup 1\n"), "no whole answer"),
        (drip(b"HTTP/1.1 200 OK\r\nX: "), ""),
    ],
    ids=[
        "404",
        "another page",
        "an empty page",
        "redirect",
        "nothing",
        "noise",
        "length",
        "short",
        "short chunk",
        "many heads",
        "long head",
        "flood",
        "slow body",
        "slow head",
    ],
)
def test_a_wrong_answer_costs_its_numbers_a_bounded_time_and_one_warning(
    tmp_path, answer, said, caplog, monkeypatch
):
    monkeypatch.setattr(engines, "TIMEOUT_S", 0.5)
    run = made(tmp_path)
    probe = EngineProbe(run)
    with router(answer) as address, caplog.at_level(logging.WARNING):
        publish_engines(run, f"{address}/engine_metrics")
        began = time.monotonic()
        assert probe.sample() == probe.sample() == {}
        assert time.monotonic() - began < 8, "twice half a second, and none of the ten of the drip"
    if said is not None:
        assert caplog.text.count("no metrics of the engines") == 1
        assert said in caplog.text


class Prometheus(BaseHTTPRequestHandler):
    """Answers in pieces, as servers of today do."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        text = PAGE.encode() if self.path == "/engine_metrics" else b""
        for part in (text[:100], text[100:]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *words: object) -> None: ...


def test_a_real_server_is_read(tmp_path, monkeypatch):
    """Whatever proxy the environment names: the engines are in the cluster."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    run = made(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), Prometheus) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        publish_engines(run, f"http://127.0.0.1:{server.server_port}/engine_metrics")
        try:
            assert EngineProbe(run).sample() == NUMBERS
        finally:
            server.shutdown()


def test_engines_that_come_late_or_move_are_asked_where_they_are(tmp_path):
    run = made(tmp_path)
    probe = EngineProbe(run)
    assert probe.sample() == {}
    publish_engines(run, "http://127.0.0.1:9/engine_metrics")
    assert probe.sample() == {}
    with router(page(PAGE)) as address:
        publish_engines(run, f"{address}/engine_metrics")
        assert probe.sample() == NUMBERS


@pytest.mark.parametrize(
    "url",
    ["", "x", "http://None:None", "https://h:1", "http://u:p@h:1", "http://h:1/?key=1", "file:///etc", "http://h:1/" + "x" * 600, "http://h:99999"],
)  # fmt: skip
def test_an_address_of_another_form_is_not_taken(tmp_path, url):
    run = made(tmp_path)
    with pytest.raises(ValueError, match=r"http|[Pp]ort"):
        publish_engines(run, url)
    (run.path / "engines.url").write_text(url)
    assert read_engines(run) is None


def test_the_file_is_no_link(tmp_path):
    run = made(tmp_path)
    (tmp_path / "other").write_text("http://h:1/engine_metrics")
    (run.path / "engines.url").symlink_to(tmp_path / "other")
    assert read_engines(run) is None


def system_rows(run: RunDirectory, num: int) -> list[dict]:
    deadline = time.monotonic() + 20
    while True:
        found = [row.metrics for row in journal_rows(run) if "system/engines/up" in row.metrics]
        if len(found) >= num or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


@pytest.mark.parametrize("way", ["driver", "rollout"])
def test_a_jobs_engines_are_in_its_run(tmp_path, way, monkeypatch):
    """v0.2.4 and v0.3.0 tell it in the driver, v0.2.0 to v0.2.2 as the rollout manager joins."""
    events = tmp_path / "events"
    monkeypatch.setenv("TENSORBOARD_DIR", str(events))
    args = job(tmp_path, tracking_system_metrics="0.2", use_tensorboard=True)
    with router(page(PAGE)) as address:
        sl.init_tracking(args)
        if way == "driver":
            sl.update_tracking_open_metrics(args, address)
        else:
            sl.init_tracking(copy.copy(args), primary=False, router_addr=address)
        rows = system_rows(directory(args), 2)
        sl.finish_tracking(args)
    assert len(rows) >= 2
    assert NUMBERS.items() <= rows[0].items()
    assert b"num_running_reqs" in b"".join(one.read_bytes() for one in events.rglob("*tfevents*"))
    assert held(args).config.values["open_metrics/sgl_engine"] == f"{address}/engine_metrics"


def test_where_slime_was_told_not_to_the_engines_are_not_asked(tmp_path):
    args = job(tmp_path)
    sl.init_tracking(args)
    rollout = copy.copy(args)
    rollout.sglang_enable_metrics = False
    sl.init_tracking(rollout, primary=False, router_addr="http://127.0.0.1:9")
    assert read_engines(directory(args)) is None
    sl.finish_tracking(args)


def test_an_address_with_a_password_is_told_and_kept_nowhere(tmp_path, caplog):
    args = job(tmp_path)
    sl.init_tracking(args)
    sl.update_tracking_open_metrics(args, "http://me:hunter2222@10.0.0.1:30000")
    sl.finish_tracking(args)
    assert "not sampled" in caplog.text
    assert "hunter2222" not in caplog.text
    files = [path.read_bytes() for path in directory(args).path.rglob("*") if path.is_file()]
    assert not [text for text in files if b"hunter2222" in text]
