"""Secrets planted in every place of a real PPO job are nowhere in what it writes, sends and prints."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.backends.mlflow_server import MlflowServer
from tests.secrets import canaries
from tests.secrets.relay import Relay
from tests.secrets.search import Search, needles
from tests.secrets.world import World
from tests.wandb_server import WandbServer

pytestmark = pytest.mark.xdist_group("secrets")

TRACKERS = "wandb,trackio,tensorboard,mlflow,swanlab"


@dataclass
class Online:
    """A job that is over: its world, and the servers that it talked to."""

    world: World
    wandb: WandbServer
    relay: Relay
    mlflow: Path


@pytest.fixture(scope="module")
def small_jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[World]]]:
    """Two small jobs, which mostly wait: under way while the large one is."""
    with ThreadPoolExecutor() as pool:
        yield {
            name: pool.submit(_small_job, tmp_path_factory.mktemp(name) / "world", name)
            for name in ("offline", "broken")
        }


def _small_job(root: Path, name: str) -> World:
    world = World(root)
    done = world.start(sys.executable, "-m", "tests.secrets.small", name, *canaries.argv())
    assert done.returncode == 0, done.stderr[-3000:].decode()
    return world


@pytest.fixture(scope="module")
def online(
    tmp_path_factory: pytest.TempPathFactory, small_jobs: dict[str, Future[World]]
) -> Iterator[Online]:
    """The job with every tracker, W&B and MLflow on servers."""
    root = tmp_path_factory.mktemp("online")
    (root / "mlflow").mkdir()
    wandb = WandbServer(root / "wandb", key=canaries.WANDB_KEY).start()
    mlflow = MlflowServer(root / "mlflow")
    relay = Relay(int(mlflow.uri.rsplit(":", 1)[1]))
    world = World(root / "world")
    try:
        command = [sys.executable, "-m", "tests.secrets.job", TRACKERS, *canaries.argv()]
        servers = {"ONLINE": wandb.url, "MLFLOW": f"http://127.0.0.1:{relay.port}"}
        done = world.start(*command, is_watched=True, **servers)
        assert done.returncode == 0, done.stderr[-3000:].decode()
        yield Online(world, wandb, relay, root / "mlflow")
    finally:
        relay.stop()
        mlflow.stop()
        wandb.stop()


@pytest.fixture(scope="module")
def offline(small_jobs: dict[str, Future[World]]) -> World:
    """A job with W&B offline and MLflow in a file."""
    return small_jobs["offline"].result()


@pytest.fixture(scope="module")
def broken(small_jobs: dict[str, Future[World]]) -> World:
    """A job that fails, and whose W&B server is not there."""
    return small_jobs["broken"].result()


@pytest.fixture
def search() -> Search:
    return Search(canaries.SECRETS)


def test_there_are_canaries_in_every_place() -> None:
    """More than thirty, each with a text of its own."""
    assert len({canaries.core(name) for name in canaries.SECRETS}) == len(canaries.SECRETS) >= 50


def test_the_search_finds_each_canary_in_each_form(search: Search) -> None:
    """Among other bytes, of any value."""
    around = bytes(range(256))
    for name, secret in canaries.SECRETS.items():
        for form, needle in needles(secret, canaries.core(name)).items():
            assert f"{name} as {form}" in search.bytes(around + needle + around)
        assert f"{name} as text" in search.bytes(around + canaries.core(name).swapcase().encode())


def test_nothing_is_on_the_disk(online: Online, search: Search) -> None:
    """Not in the run, nor in what the clients leave at home, in the working or the temporary directory; nor printed."""
    assert online.world.leaks(search) == {}
    assert search.num_bytes > 1_000_000


def test_nothing_is_on_the_disk_of_an_offline_job(offline: World, search: Search) -> None:
    """W&B's offline files, MLflow's database and artifacts."""
    assert offline.leaks(search) == {}
    assert list(offline.run.glob("wandb/offline-run-*/*.wandb")) and list(
        offline.run.parent.glob("mlflow/mlflow.db")
    )


def test_nothing_is_told_of_a_server_that_is_not_there(broken: World, search: Search) -> None:
    """Neither of the password in its address, nor of the exception that ended the job."""
    assert broken.leaks(search) == {}
    (cursor,) = broken.run.glob("delivery/mlflow*.json")
    assert json.loads(cursor.read_bytes())["state"] == "waiting"


def test_nothing_was_sent_to_wandb(online: Online, search: Search) -> None:
    """Not in a request's address, headers (but the one that logs in) or body, nor in a file that was uploaded."""
    found = {n: f for n, r in enumerate(online.wandb.requests) if (f := search.text(json.dumps(r)))}
    assert found == {}
    assert search.tree(online.wandb.path) == {}
    assert len(online.wandb.rows(online.world.run.name)) > 4  # the key was sent where it belongs


def test_nothing_was_sent_to_mlflow(online: Online, search: Search) -> None:
    """Not in a byte on the wire, nor in the server's database and artifacts."""
    assert [found for sent in online.relay.sent if (found := search.bytes(bytes(sent)))] == []
    assert sum(map(len, online.relay.sent)) > 100_000
    assert search.tree(online.mlflow) == {}


def test_no_process_shows_a_secret_on_its_command_line(online: Online, search: Search) -> None:
    """Neither W&B's client nor any other process that we start."""
    commands = online.world.commands.values()
    assert any("slime_logging.delivery.child" in " ".join(command) for command in commands)
    assert [command for command in commands if search.text("\n".join(command))] == []


def test_the_key_is_not_in_the_environment_of_wandbs_client(online: Online, search: Search) -> None:
    """It gets no variable that holds a secret but those of the proxy, which it may need."""
    clients = [
        pid for pid, command in online.world.commands.items() if "wandb" in " ".join(command)
    ]
    assert clients
    for pid in clients:
        kept = {
            k: v
            for k, v in online.world.environments[pid].items()
            if not k.lower().endswith("_proxy")
        }
        assert search.text(json.dumps(kept)) == set()


def test_commands_print_nothing(broken: World, search: Search) -> None:
    """Nor leave anything behind in a cursor: of the run, of the environment, of an address that they were given."""
    run, address = str(broken.run), f"mlflow_tracking_uri={canaries.address('address of mlflow')}"
    tracking, copy = str(broken.run.parent), broken.root / "work" / "copy" / broken.run.name
    shutil.copytree(broken.run, copy)
    expected = [
        (["show", run], 0),
        (["show", run, "--json"], 0),
        (["show", run, "--samples"], 0),
        (["show", run, "--samples", "--json"], 0),
        (["diff", run, "--json"], 0),
        (["diff", run, str(copy)], 0),
        (["report", run], 0),
        (["list", "--tracking-dir", tracking], 0),
        (["list", "--tracking-dir", tracking, "--json"], 0),
        (["watch", run], 0),
        (["doctor", "--", *canaries.argv(), "--use-wandb"], None),
        (["merge", run, str(copy), "--into", run], 0),
        (["check", str(broken.root / "given" / "roles.yaml"), "--", *canaries.argv()], None),
        (["verify", run, "--of", "mlflow", "-o", address], 1),
        (["sync", run, "--to", "mlflow", "-o", address, "--timeout", "2"], 1),
    ]
    words = json.dumps([command for command, _ in expected])
    (broken.root / "given" / "commands.json").write_text(words)
    done = broken.start(sys.executable, "-m", "tests.secrets.commands")
    codes = json.loads((broken.root / "work" / "codes.json").read_bytes())
    assert done.returncode == 0
    both = list(zip(codes, expected, strict=True))
    assert [(code, each) for code, each in both if each[1] not in (code, None)] == []
    assert broken.leaks(search) == {}
    assert "<hidden: " in (broken.root / "out").read_text()


def test_files_of_a_run_are_their_users_alone(
    online: Online, offline: World, broken: World
) -> None:
    """0600 in directories of 0700, the trackers' own too, though the processes ran with a umask of 0."""
    runs = [online.world.run, offline.run, broken.run]
    paths = [path for run in runs for path in (run, *run.rglob("*"))]
    assert len(paths) > 100
    assert [str(path) for path in paths if path.stat().st_mode & 0o077] == []
