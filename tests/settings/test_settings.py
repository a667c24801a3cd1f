"""Flags and environment become one frozen object; slime's names and defaults are kept."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser, Namespace

import pytest

import slime_logging as sl
from slime_logging.settings.options import OPTIONS
from slime_logging.settings.settings import Settings

SLIME_DEFAULTS = {
    "use_wandb": False,
    "wandb_mode": None,
    "wandb_dir": None,
    "wandb_key": None,
    "wandb_host": None,
    "wandb_team": None,
    "wandb_group": None,
    "wandb_project": None,
    "wandb_random_suffix": True,
    "wandb_always_use_train_step": False,
    "wandb_run_id": None,
    "use_tensorboard": False,
    "tb_project_name": None,
    "tb_experiment_name": None,
}


def test_slimes_flags_have_slimes_names_and_defaults():
    args = sl.add_tracking_arguments(ArgumentParser()).parse_args([])
    assert {name: getattr(args, name) for name in SLIME_DEFAULTS} == SLIME_DEFAULTS


def test_a_flag_that_the_parser_has_already_is_left_as_it_is():
    parser = ArgumentParser()
    parser.add_argument("--wandb-project", default="mine")
    assert sl.add_tracking_arguments(parser).parse_args([]).wandb_project == "mine"
    sl.add_tracking_arguments(parser)


def test_every_flag_has_a_help_text_that_formats():
    parser = sl.add_tracking_arguments(ArgumentParser())
    assert all(action.help for action in parser._actions)
    assert "--tracking-writer" in parser.format_help()


def test_every_option_that_a_backend_may_read_has_a_flag():
    args = vars(sl.add_tracking_arguments(ArgumentParser()).parse_args([]))
    assert {option.name for option in OPTIONS} == set(args)


def test_an_empty_namespace_has_everything_off():
    settings = Settings.of(Namespace(), {})
    assert not settings.is_on
    assert settings.trackers == ()


@pytest.mark.parametrize(
    ("args", "environ", "mode"),
    [
        ({}, {}, "offline"),
        ({}, {"WANDB_API_KEY": "x" * 40}, "online"),
        ({"wandb_key": "x" * 40}, {}, "online"),
        ({}, {"WANDB_MODE": "offline", "WANDB_API_KEY": "x" * 40}, "offline"),
        ({"wandb_mode": "online", "wandb_key": "x" * 40}, {"WANDB_MODE": "offline"}, "online"),
        ({}, {"WANDB_MODE": "dryrun"}, "offline"),
        ({}, {"WANDB_MODE": "shared", "WANDB_API_KEY": "x" * 40}, "online"),
    ],
)
def test_the_mode_of_wandb(args, environ, mode):
    settings = Settings.of(Namespace(use_wandb=True, **args), {"NETRC": "/none", **environ})
    assert settings.options["wandb_mode"] == mode


def test_a_key_in_netrc_counts_for_its_own_host_only(tmp_path):
    path = tmp_path / "netrc"
    path.write_text("machine wandb.example login user password " + "k" * 40)
    environ = {"NETRC": str(path)}
    own = Settings.of(Namespace(use_wandb=True, wandb_host="https://wandb.example:8443/x"), environ)
    other = Settings.of(Namespace(use_wandb=True), environ)
    assert (own.options["wandb_mode"], other.options["wandb_mode"]) == ("online", "offline")


def test_disabled_switches_wandb_off_and_leaves_the_others_on():
    settings = Settings.of(Namespace(use_wandb=True, wandb_mode="disabled", use_trackio=True), {})
    assert settings.trackers == ("trackio",)


@pytest.mark.parametrize(
    ("given", "told"), [(None, None), ("off", "off"), ("0", "off"), ("20", 20.0), (5, 5.0)]
)
def test_trackers_are_told_of_system_metrics_in_one_form(given, told):
    settings = Settings.of(Namespace(tracking_system_metrics=given), {})
    assert settings.options["tracking_system_metrics"] == told


def test_secrets_are_not_in_the_repr_nor_in_the_public_options():
    settings = Settings.of(Namespace(use_wandb=True, wandb_key="s3cr3t" * 6), {})
    assert "s3cr3t" not in repr(settings)
    assert "wandb_key" not in settings.public_options()


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings.of(Namespace(), {}).writer = "single"


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 15.0), ("off", None), (0, None), ("2.5", 2.5), (30, 30.0)]
)
def test_the_interval_of_system_metrics(value, seconds):
    assert Settings.of(Namespace(tracking_system_metrics=value), {}).system_metrics_s == seconds


def test_the_directory_comes_from_flag_then_environment_then_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environ = {"SLIME_LOGGING_DIR": "/e"}
    assert str(Settings.of(Namespace(tracking_dir="/f"), environ).directory) == "/f"
    assert str(Settings.of(Namespace(), environ).directory) == "/e"
    assert Settings.of(Namespace(), {}).directory == tmp_path / "tracking"


def test_lists_may_be_given_as_one_text():
    assert Settings.of(Namespace(tracking_hide="a, b c"), {}).hide == ("a", "b", "c")
