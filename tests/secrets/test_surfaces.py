"""What commands print of hostile runs and where they may be led; what our errors, logs and objects show."""

from __future__ import annotations

import logging
import re
import socket
import threading
from argparse import Namespace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import slime_logging
from slime_logging.backends.place import place_of
from slime_logging.cli.app import app
from slime_logging.record.run import RunDirectory
from slime_logging.redaction.redact import Redactor
from slime_logging.settings.settings import Settings
from slime_logging.values.run import RunFacts
from tests.secrets.hostile import EVIL, JOURNAL, row, write_run
from tests.wandb_server import WandbServer

SECRET = "q7Zr4Kx9Wm2Tn8Bv5Lc1"
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


def invoke(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "250", **environment})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and working directory with nothing in them."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    ["show", "show --json", "diff", "diff --json", "report", "verify", "sync --timeout 5"],
)
def test_no_command_prints_a_control_character(command: str, home: Path) -> None:
    """Nor interprets markup: it stands there as it was written."""
    name, *flags = command.split()
    result = invoke(name, str(write_run(home / "evil")), *flags)
    assert not isinstance(result.exception, Exception) or isinstance(
        result.exception, SystemExit
    ), result.exception
    assert not CONTROL.search(result.output)
    if name in ("show", "diff"):
        assert "[bold red]" in result.output
    assert not re.search("^abc", result.output, re.MULTILINE)  # the forged line


def test_check_prints_no_control_character(home: Path) -> None:
    """Of a role file whose keys and values are hostile."""
    path = home / "roles.yaml"
    escaped = EVIL.replace("\0", "").encode("unicode_escape").decode().replace('"', "")
    path.write_text(
        f'megatron:\n  - role: critic\n    overrides: {{"{escaped}": "{escaped}", lr: "{escaped}"}}\n'
    )
    for result in (invoke("check", str(path)), invoke("check", str(path), "--json")):
        assert result.exit_code == 1
        assert not CONTROL.search(result.output)


@pytest.mark.parametrize(
    "place",
    ["journals", "delivery", "wandb", "trackio", "mlflow/mlflow.db", f"journals/{JOURNAL}2.jsonl"],
)
@pytest.mark.parametrize("command", ["sync", "verify", "show", "report"])
def test_links_lead_nowhere(place: str, command: str, home: Path) -> None:
    """A run with a link in it is refused, with the place named, and nothing is written behind the link."""
    outside = home / "outside"
    outside.mkdir()
    link = write_run(home / "evil") / place
    if link.exists():
        link.rename(home / "away")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    result = invoke(command, str(home / "evil"))
    assert result.exit_code == 1
    assert "is a link" in result.output
    assert list(outside.iterdir()) == []


def test_tensorboards_link_is_followed_only_to_where_the_user_puts_such_files(home: Path) -> None:
    """TensorBoard's link is a run's own, but it may lead anywhere."""
    pytest.importorskip("tensorboard")
    run, outside = write_run(home / "evil"), home / "outside"
    outside.mkdir()
    (run / "tensorboard").symlink_to(outside)
    refused = invoke("sync", str(run), "--to", "tensorboard")
    assert refused.exit_code == 1 and "leads to" in refused.output
    assert list(outside.iterdir()) == []
    assert (
        invoke("sync", str(run), "--to", "tensorboard", TENSORBOARD_DIR=str(outside)).exit_code == 0
    )


@pytest.mark.parametrize("name", ["../../x", "/etc", "a/../../b"])
def test_names_of_projects_are_no_paths(name: str, home: Path) -> None:
    """A project's name from a run's directory cannot lead TensorBoard's files out of the working directory."""
    run = write_run(home / "evil", options={"tb_project_name": name})
    result = invoke("sync", str(run), "--to", "tensorboard")
    assert result.exit_code == 1 and "no plain names" in result.output
    assert sorted(path.name for path in home.iterdir()) == ["evil", "work"]


def test_a_media_entry_reads_no_file(home: Path) -> None:
    """`file` of a media value is a text, whatever it says."""
    (home / "private").write_text(SECRET)
    media = {"media": "image", "file": "../private", "caption": "x"}
    run = write_run(
        home / "evil",
        lines=[row(5, {"train/x": media}), row(6, {"train/x": {**media, "file": "/etc/passwd"}})],
    )
    invoke("sync", str(run), "--to", "trackio", "--to", "tensorboard", "--timeout", "20")
    found = [
        path for path in run.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert found == []


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[bytes]]:
    """The address of a stranger's server, and what it was sent."""
    listener, heard = socket.create_server(("127.0.0.1", 0)), []

    def listen() -> None:
        while True:
            connection, _ = listener.accept()
            heard.append(connection.recv(1 << 16))
            connection.close()

    threading.Thread(target=listen, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return f"http://127.0.0.1:{listener.getsockname()[1]}", heard


@pytest.mark.parametrize("command", ["sync", "verify"])
@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_a_runs_directory_does_not_say_where_a_key_goes(
    command: str, tracker: str, home: Path, stranger: tuple[str, list[bytes]]
) -> None:
    """An address in `run.json` is asked about, not called."""
    option = {"wandb": "wandb_host", "mlflow": "mlflow_tracking_uri"}[tracker]
    run = write_run(home / "evil", options={option: stranger[0], "wandb_mode": "online"})
    which = "--to" if command == "sync" else "--of"
    result = invoke(
        command,
        str(run),
        which,
        tracker,
        WANDB_API_KEY="0" * 20 + SECRET,
        MLFLOW_TRACKING_TOKEN=SECRET,
    )
    assert result.exit_code == 1
    assert f"-o {option}={stranger[0]}" in result.output.replace("\n", "")
    assert stranger[1] == []


@pytest.mark.parametrize("way", ["option", "environment"])
def test_an_address_counts_when_the_user_says_the_same(
    way: str, home: Path, wandb_server: WandbServer
) -> None:
    """By `-o` or by the variable that the client has for it."""
    run = write_run(
        home / "evil", text="x", options={"wandb_host": wandb_server.url, "wandb_mode": "online"}
    )
    said = ["-o", f"wandb_host={wandb_server.url}"] if way == "option" else []
    environment = {"WANDB_BASE_URL": f"{wandb_server.url}/"} if way == "environment" else {}
    result = invoke(
        "sync",
        str(run),
        "--to",
        "wandb",
        "--timeout",
        "20",
        *said,
        WANDB_API_KEY=wandb_server.key,
        **environment,
    )
    assert result.exit_code == 0, result.output
    assert len(wandb_server.rows("evil")) == 1


def test_keys_and_unknown_options_of_a_run_are_not_used(
    home: Path, wandb_server: WandbServer
) -> None:
    """`run.json` brings no key of its own."""
    run = write_run(
        home / "evil",
        text="x",
        options={"wandb_key": "1" * 40, "wandb_mode": "online", "program": "x"},
    )
    environment = {"WANDB_BASE_URL": wandb_server.url, "WANDB_API_KEY": wandb_server.key}
    assert (
        invoke("sync", str(run), "--to", "wandb", "--timeout", "20", **environment).exit_code == 0
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"config","seq":5,"scope":"","rank":1,"values":{"a":'
        + b"[" * 900
        + b"]" * 900
        + b"}}",
        b'{"kind":"row","seq":5,"step_key":"s","step":1,"metrics":{"a":'
        + b'{"a":' * 500
        + b"1"
        + b"}" * 500
        + b"}}",
        b"[" * 1_000_000,
        b'{"kind":"row","seq":5,"step_key":"s","step":1e999,"metrics":{"a":1}}',
        b'{"kind":"row","seq":9999999999999999999999,"step_key":"s","step":1,"metrics":{"a":1}}',
        b'{"kind":"config","seq":5,"scope":{},"rank":"x","values":{"' + b"k" * 5_000_000 + b'":1}}',
    ],
    ids=["deep config", "deep row", "deep nonsense", "infinite step", "large number", "long key"],
)
@pytest.mark.parametrize("command", ["show", "diff", "report", "sync --timeout 20"])
def test_no_line_of_a_journal_breaks_a_command(command: str, line: bytes, home: Path) -> None:
    """Deep, long and odd lines are passed over or delivered; the commands end by themselves."""
    name, *flags = command.split()
    result = invoke(name, str(write_run(home / "evil", lines=[line])), *flags)
    assert result.exit_code in (0, 1)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception


@pytest.mark.parametrize(
    "change", [b" " * 5_000_000, b"[" * 100_000, b'{"run_id": 1}', b"\xff\xfe"]
)
def test_no_description_of_a_run_breaks_a_command(change: bytes, home: Path) -> None:
    """`run.json` that is too long, too deep, of other types, or no JSON is told in one line."""
    run = write_run(home / "evil")
    (run / "run.json").write_bytes(change + (run / "run.json").read_bytes())
    result = invoke("show", str(run))
    assert result.exit_code == 1 and "error:" in result.output


def test_flags_with_a_secret_as_their_value_are_told_without_it(home: Path) -> None:
    """A secret behind the wrong flag, known by value or by form."""
    for args in (
        Namespace(use_wandb=True, wandb_mode=SECRET, wandb_key=SECRET),
        Namespace(tracking_writer=f"hf_{SECRET}"),
        Namespace(tracking_finish_timeout=f"ghp_{SECRET}", tracking_dir="x"),
        Namespace(tracking_dir="x", wandb_run_id=f"{SECRET}/", api_key=SECRET),
    ):
        with pytest.raises(slime_logging.SettingsError) as told:
            slime_logging.init_tracking(args)
        assert SECRET not in str(told.value) and "hidden: " in str(told.value)
        assert told.value.__cause__ is None and told.value.__suppress_context__


def test_a_role_file_with_a_known_secret_in_a_wrong_value_is_told_without_it(home: Path) -> None:
    """Also where the value is cut off in the message, in the middle of the secret."""
    path = home / "roles.yaml"
    path.write_text(
        f"megatron:\n  - role: critic\n    overrides: {{lr: {SECRET}, clip_grad: {'x-' * 34}{SECRET}}}\n"
    )
    with pytest.raises(slime_logging.RoleConfigError) as told:
        slime_logging.parse_megatron_role_args(
            Namespace(lr=1.0, clip_grad=1.0, api_key=SECRET), str(path), "critic"
        )
    assert SECRET[:8] not in str(told.value)
    assert str(told.value).count("<hidden: api_key>") == 4  # in the line and in the reason, twice
    result = invoke("check", str(path), JUDGE_API_KEY=SECRET)
    assert SECRET[:8] not in result.output and result.exit_code == 1


def test_a_bug_of_ours_is_told_without_the_exceptions_raw_text(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller's mapping may fail in its own way."""

    class Failing(dict):
        def __iter__(self):
            raise RuntimeError(f"password={SECRET}")

        items = keys = __iter__

    args = Namespace(tracking_dir=str(home / "runs"), tracking_system_metrics="off")
    with caplog.at_level(logging.DEBUG, "slime_logging"):
        slime_logging.init_tracking(args)
        slime_logging.log(args, Failing({"train/step": 1}), "train/step")
        slime_logging.log_config(args, Failing({"a": 1}))
        slime_logging.finish_tracking(args)
    assert "training goes on" in caplog.text and SECRET not in caplog.text


def test_no_repr_shows_a_secret(home: Path) -> None:
    """Settings, facts and redactor keep it, and do not show it."""
    args = Namespace(
        use_wandb=True, wandb_key=SECRET, wandb_mode="online", tracking_dir=str(home / "runs")
    )
    settings = Settings.of(args)
    facts = RunFacts(
        run_id="a",
        project="p",
        name="n",
        group=None,
        directory=home,
        created_s=1.0,
        axes={},
        options=settings.options,
    )
    redactor = Redactor.of(args)
    assert redactor.text(SECRET) == "<hidden: wandb_key>" and facts.options["wandb_key"] == SECRET
    args.use_wandb = False
    slime_logging.init_tracking(args)
    [session] = slime_logging.session.lifetime._sessions
    shown = [
        settings,
        facts,
        redactor,
        session,
        session.recorder,
        session.directory,
        session.recorder.opening,
    ]
    assert SECRET not in repr(shown) + str(shown)
    slime_logging.finish_tracking(args)
    run = RunDirectory(session.directory.path)
    assert SECRET not in repr(run.read()) + repr(run.read().facts(run.path, settings.options))


def test_a_files_name_has_no_checksum_of_a_password() -> None:
    """The name of a cursor for an MLflow server is the same whatever the password in its address."""
    names = {
        place_of(
            "mlflow", {"mlflow_tracking_uri": f"http://u:{word}@h:1/x?k={word}"}, {}, Path("/r")
        ).key
        for word in ("a", SECRET)
    }
    assert len(names) == 1
    other = place_of("mlflow", {"mlflow_tracking_uri": "http://h:2/x"}, {}, Path("/r"))
    assert other.key not in names


def test_what_is_left_names_the_places_that_sync_asks_for(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The printed command works as it stands, but for a password in it."""
    args = Namespace(
        use_mlflow=True,
        mlflow_tracking_uri=f"http://judge:{SECRET}@127.0.0.1:9",
        tracking_dir=str(home / "runs"),
        tracking_finish_timeout=1,
        tracking_system_metrics="off",
    )
    slime_logging.init_tracking(args)
    slime_logging.log(args, {"a": 1, "train/step": 1}, "train/step")
    slime_logging.finish_tracking(args)
    told = capfd.readouterr().err
    assert (
        "-o 'mlflow_tracking_uri=http://<hidden: url userinfo>@127.0.0.1:9'" in told
        and SECRET not in told
    )


def test_a_demo_that_fails_is_told_without_secrets(home: Path) -> None:
    """The traceback of its process, which holds what the training says, and the environment's secrets."""
    roles = home / "roles.yaml"
    roles.write_text(f"megatron:\n  - role: critic\n    overrides: {{lr: {SECRET}}}\n")
    result = invoke(
        "demo", "ppo", "--trackers", "none", "--role-file", str(roles), JUDGE_API_KEY=SECRET
    )
    assert result.exit_code == 1 and "takes a number" in result.output
    assert SECRET not in result.output and "<hidden: JUDGE_API_KEY>" in result.output
