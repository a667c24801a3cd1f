"""One row a flag, and what else can say the same: ours, then the vendor's."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import pytest

import slime_logging as sl
from slime_logging.settings.flags import unheard
from slime_logging.settings.options import OPTIONS, TRACKER_OPTIONS, TRACKERS
from slime_logging.settings.settings import Settings

OURS = [option for option in OPTIONS if not option.is_slimes]


def test_names_and_variables_are_unique():
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)
    variables = [
        name for option in OPTIONS if not option.is_switch for name in set(option.variables)
    ]
    assert len(set(variables)) == len(variables)


@pytest.mark.parametrize("option", OURS, ids=lambda option: option.name)
def test_every_flag_of_ours_has_a_variable_of_ours(option):
    assert option.variables[0].startswith("SLIME_LOGGING_")


TEXTS = {
    "tracking_writer": ("single", "writer", "single"),
    "tracking_delivery": ("off", "is_delivering", False),
    "tracking_run_id_from": ("slurm", "run_id_from", "slurm"),
    "tracking_rewind": ("drop", "rewind", "drop"),
    "tracking_resume": ("1", "is_resuming_newest", True),
    "tracking_finish_timeout": ("7.5", "finish_timeout_s", 7.5),
    "tracking_hide": ("a,b c", "hide", ("a", "b", "c")),
    "tracking_show": ("a", "show", ("a",)),
    "tracking_env": ("CLUSTER", "env_vars", ("SLURM_JOB_ID", "CLUSTER")),
    "tracking_system_metrics": ("off", "system_metrics_s", None),
    "tracking_name": ("blue", "name", "blue"),
    "tracking_job_type": ("eval", "options", None),
}


@pytest.mark.parametrize(
    "option", [option for option in OURS if not option.is_switch], ids=lambda option: option.name
)
def test_a_variable_says_what_its_flag_says_and_the_flag_wins(option, tmp_path):
    text, attribute, value = TEXTS.get(option.name, (str(tmp_path), "options", None))
    environ = {option.variables[0]: text, **dict.fromkeys(option.variables[1:], "weaker")}
    said = Settings.of(Namespace(), environ)
    if option.name == "tracking_dir":
        assert (str(said.directory), said.has_directory) == (text, True)
    elif attribute == "options":
        assert said.options[option.name] == text
        flag = Settings.of(Namespace(**{option.name: "flag"}), environ)
        assert flag.options[option.name] == "flag"
    else:
        assert getattr(said, attribute) == value
        assert getattr(Settings.of(Namespace(), {option.variables[0]: ""}), attribute) == getattr(
            Settings.of(Namespace(), {}), attribute
        )


@pytest.mark.parametrize(
    "option",
    [row for row in TRACKER_OPTIONS if row.env and not row.is_secret and row.name != "wandb_mode"],
    ids=lambda option: option.name,
)
def test_a_vendors_variable_is_honoured_where_no_flag_is_given(option):
    assert Settings.of(Namespace(), {option.env[-1]: "there"}).options[option.name] == "there"


def test_a_key_stays_in_the_environment():
    settings = Settings.of(Namespace(use_wandb=True), {"WANDB_API_KEY": "k" * 40})
    assert settings.options["wandb_key"] is None
    assert settings.is_wandb_online


def test_one_variable_switches_trackers_on_beside_those_of_the_flags():
    environ = {"SLIME_LOGGING_TRACKERS": "trackio, mlflow"}
    assert Settings.of(Namespace(use_wandb=False), environ).trackers == ("trackio", "mlflow")
    both = Settings.of(Namespace(use_tensorboard=True), environ)
    assert both.trackers == ("trackio", "tensorboard", "mlflow")


def test_a_tracker_that_there_is_not_is_an_error_that_names_those_that_are():
    with pytest.raises(sl.SettingsError, match=r"'trakio'.*trackio") as error:
        Settings.of(Namespace(), {"SLIME_LOGGING_TRACKERS": "trakio"})
    assert all(name in str(error.value) for name in TRACKERS)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("SLIME_LOGGING_WRITER", "both"),
        ("SLIME_LOGGING_RESUME", "perhaps"),
        ("SLIME_LOGGING_FINISH_TIMEOUT", "soon"),
        ("SLIME_LOGGING_SYSTEM_METRICS", "often"),
        ("WANDB_MODE", "onlin"),
    ],
)
def test_a_variable_that_cannot_work_is_named_in_the_error(variable, text):
    with pytest.raises(sl.SettingsError, match=f"^{variable} '{text}'"):
        Settings.of(Namespace(use_wandb=True), {variable: text})


@pytest.mark.parametrize(("text", "is_off"), [("true", True), ("1", True), ("false", False)])
def test_w_and_b_can_be_switched_off_by_its_own_variable(text, is_off):
    environ = {"WANDB_DISABLED": text}
    assert (Settings.of(Namespace(use_wandb=True), environ).trackers == ()) is is_off
    asked = Namespace(use_wandb=True, wandb_mode="offline")
    assert Settings.of(asked, environ).trackers == ("wandb",)


def test_tags_may_be_words_or_one_text():
    assert (
        Settings.of(Namespace(tracking_tags=["a", "b c"]), {}).options["tracking_tags"] == "a,b c"
    )
    environ = {"WANDB_TAGS": "a,b c"}
    assert Settings.of(Namespace(), environ).options["tracking_tags"] == "a,b c"


def test_only_our_flags_where_slime_adds_its_own_afterwards():
    parser = sl.add_tracking_arguments(ArgumentParser(), only_ours=True)
    for option in OPTIONS:
        if option.is_slimes:
            parser.add_argument(option.flag, **option.keywords)
    args = parser.parse_args(["--use-trackio", "--use-wandb", "--tracking-dir", "d"])
    assert (args.use_trackio, args.use_wandb, args.tracking_dir) == (True, True, "d")


def test_a_flag_that_reached_no_namespace_is_told_whatever_its_form():
    argv = ["train.py", "--use-trackio", "--tracking-dir=d", "--no-tracking-resume", "--lr", "1"]
    said = list(unheard(Namespace(lr=1, tracking_writer=None), argv, {}))
    assert [text.split()[0] for text in said] == [
        "--use-trackio",
        "--tracking-dir",
        "--tracking-resume",
    ]
    assert "SLIME_LOGGING_TRACKERS" in said[0]
    assert "SLIME_LOGGING_DIR" in said[1]
    known = sl.add_tracking_arguments(ArgumentParser()).parse_args([])
    assert list(unheard(known, argv, {})) == []


def test_a_misspelt_variable_is_told_with_the_one_that_was_meant():
    said = list(unheard(Namespace(), [], {"SLIME_LOGGING_TRACKER": "trackio", "HOME": "/"}))
    assert len(said) == 1
    assert "SLIME_LOGGING_TRACKERS?" in said[0]
    known = {name: "" for option in OPTIONS for name in option.variables}
    assert list(unheard(Namespace(), [], known)) == []


def test_the_start_of_a_job_tells_it(monkeypatch, caplog):
    monkeypatch.setattr("sys.argv", ["train.py", "--use-trackio"])
    sl.init_tracking(Namespace(use_wandb=False))
    assert "--use-trackio has no effect" in caplog.text
