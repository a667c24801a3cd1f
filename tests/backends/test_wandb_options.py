"""What the client is told: explicit settings, and an environment without the job's secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slime_logging.backends.base import Writer
from slime_logging.backends.table import common_environment, tracker_environment
from slime_logging.backends.wandb import options
from slime_logging.backends.wandb.options import client_settings, is_online
from slime_logging.values.run import RunFacts

KEY = "k" * 40


def facts(directory: Path = Path("/nowhere"), **options: Any) -> RunFacts:
    return RunFacts(
        run_id="abc",
        project="p",
        name="n",
        group="g",
        directory=directory,
        created_s=1.0,
        axes={},
        options=options,
    )


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ({}, {}, False),
        ({"wandb_key": KEY}, {}, False),
        ({}, {"WANDB_API_KEY": KEY}, False),
        ({}, {"WANDB_API_KEY": KEY, "WANDB_MODE": "offline"}, False),
        ({"wandb_mode": "online"}, {"WANDB_MODE": "offline"}, True),
        ({"wandb_mode": "offline", "wandb_key": KEY}, {}, False),
    ],
)
def test_online_where_told(
    options: dict[str, Any], environ: dict[str, str], expected: bool, tmp_path: Path
) -> None:
    """The flag comes first, then WANDB_MODE; a key alone sends nobody's data anywhere."""
    assert is_online(facts(**options), {"NETRC": str(tmp_path / "none"), **environ}) is expected


@pytest.mark.parametrize(
    ("option", "writer", "expected"),
    [
        (None, Writer(label="a"), (None, None)),
        (30.0, Writer(label="a"), (None, 30.0)),
        ("off", Writer(label="a"), (True, None)),
        (30.0, Writer(label="a", is_sync=True), (True, None)),
        (30.0, Writer(label="a", is_primary=False, is_shared=True), (True, None)),
    ],
)
def test_the_client_samples_the_primary_s_host_alone(
    option: object, writer: Writer, expected: object
) -> None:
    """No second sampler on the other hosts, and no figures of the machine that a run is synchronised from."""
    settings = client_settings(
        facts(tracking_system_metrics=option), writer, init_timeout_s=20, environ={}
    )
    assert (settings.get("x_disable_stats"), settings.get("x_stats_sampling_interval")) == expected


def test_a_client_of_its_own_is_plain_and_several_are_shared() -> None:
    """Only a shared writer that is not the primary leaves the run's state and files alone."""
    plain = client_settings(
        facts(wandb_key=KEY, wandb_mode="online"), Writer(label="a"), init_timeout_s=20, environ={}
    )
    primary = client_settings(
        facts(wandb_key=KEY, wandb_mode="online"),
        Writer(label="a", is_shared=True),
        init_timeout_s=20,
        environ={},
    )
    secondary = client_settings(
        facts(wandb_key=KEY, wandb_mode="online"),
        Writer(label="b", is_primary=False, is_shared=True),
        init_timeout_s=20,
        environ={},
    )
    told = (
        "mode",
        "resume",
        "x_label",
        "x_primary",
        "x_update_finish_state",
        "x_server_side_derived_summary",
    )
    assert [plain[name] for name in told] == ["online", "allow", None, True, True, False]
    assert [primary[name] for name in told] == ["shared", "allow", "a", True, True, True]
    assert [secondary[name] for name in told] == ["shared", "allow", "b", False, False, True]


def test_offline_is_plain_even_for_a_shared_writer_and_gets_no_key() -> None:
    """There is no offline shared mode, and a key that is not needed is not handed out."""
    settings = client_settings(
        facts(wandb_key=KEY, wandb_mode="offline"),
        Writer(label="a", is_shared=True),
        init_timeout_s=20,
        environ={},
    )
    assert settings["mode"] == "offline"
    assert KEY not in str(settings)


def test_names_that_the_server_refuses_are_mended() -> None:
    """A project with a slash, a name of 300 characters."""
    run = RunFacts(
        run_id="abc",
        project="a/b:c",
        name="n" * 300,
        group=None,
        directory=Path("/x"),
        created_s=1.0,
        axes={},
    )
    settings = client_settings(run, Writer(label="a"), init_timeout_s=20, environ={})
    assert settings["project"] == "a-b-c"
    assert len(settings["run_name"]) == 128


def test_the_clients_environment_holds_nothing_of_the_jobs() -> None:
    """Inherited W&B variables and others' secrets stay out; what the connection needs stays in."""
    environ = {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "WANDB_SERVICE": "3-1-unix-/x",
        "WANDB_RUN_ID": "other",
        "WANDB_SWEEP_ID": "s",
        "WANDB_API_KEY": KEY,
        "SLURM_JWT": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "PYTHONSTARTUP": "x.py",
    }
    kept = common_environment(environ) | tracker_environment("wandb", environ)
    assert kept.keys() == {"PATH", "HTTPS_PROXY", "WANDB_API_KEY"}


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("a,", ["a"]),
        ("x" * 70, ["x" * 64]),
        (" a , ,b,a", ["a", "b"]),
        (",", None),
        ("", None),
        (None, None),
    ],
)
def test_a_bad_tag_does_not_cost_the_run(text, tags):
    """W&B refuses a run for a tag that is empty or longer than 64 characters."""
    assert options.clean_tags(text) == tags


def test_a_long_name_keeps_the_runs_id():
    name = options.short_name("g" * 200 + "-abcd1234")
    assert (len(name), name[-9:]) == (128, "-abcd1234")
