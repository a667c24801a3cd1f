"""Role files against a full-size namespace: values, mistakes, warnings, and what must not be touched."""

from __future__ import annotations

import argparse
import copy
import gc
import json
import logging
import pickle
import threading
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.errors import RoleConfigError, TrackingError
from slime_logging.roles import roles as roles_module
from slime_logging.roles.roles import parse_megatron_role_args, parse_role_file

CASES = json.loads((Path(__file__).parents[1] / "data/role_yaml.json").read_text())["cases"]
GOOD = [case for case in CASES if "values" in case["expect"]]
BAD = [case for case in CASES if "error" in case["expect"]]


@pytest.fixture(scope="module")
def pristine() -> Namespace:
    return ppo_namespace()


@pytest.fixture
def base(pristine: Namespace) -> Namespace:
    return copy.deepcopy(pristine)


def write(folder: Path, text: str, name: str = "roles.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def entry(role: str, *lines: str) -> str:
    """A role file with one entry, whose overrides start on line 4."""
    return f"megatron:\n  - role: {role}\n    overrides:\n" + "".join(
        f"      {line}\n" for line in lines
    )


def plain(value: Any) -> Any:
    return str(value) if type(value).__name__ == "dtype" else value


def mistakes(base: Namespace, path: str, **more: Any) -> str:
    with pytest.raises(RoleConfigError) as caught:
        parse_role_file(base, path, **more)
    return str(caught.value)


# --- the cases ---


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case["id"])
def test_case_gives_its_values(case: dict[str, Any], base: Namespace, tmp_path: Path) -> None:
    """Each right role file gives the values of the case, in the case's types."""
    args = parse_megatron_role_args(base, write(tmp_path, case["yaml"]), case["role"])
    values = case["expect"]["values"]
    found = {name: plain(getattr(args, name)) for name in values}
    assert found == values
    kinds = {name: type(value) for name, value in values.items() if name != "kl_coef"}
    assert {name: type(found[name]) for name in kinds} == kinds


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case["id"])
def test_case_leaves_the_base_and_all_else_alone(
    case: dict[str, Any], base: Namespace, pristine: Namespace, tmp_path: Path
) -> None:
    """The base is unchanged, and what is neither overridden, forced nor derived equals the base's."""
    found = parse_role_file(base, write(tmp_path, case["yaml"]))
    assert vars(base) == vars(pristine)
    for role, args in found.args.items():
        decided = {override.key for override in found.overrides[role]}
        assert {k: v for k, v in vars(args).items() if k not in decided} == {
            k: v for k, v in vars(pristine).items() if k not in decided
        }


@pytest.mark.parametrize("case", BAD, ids=lambda case: case["id"])
def test_case_is_refused_with_its_texts(
    case: dict[str, Any], base: Namespace, tmp_path: Path
) -> None:
    """Each wrong role file raises, and the message holds what the case asks for."""
    told = mistakes(base, write(tmp_path, case["yaml"])).lower()
    assert [text for text in case["expect"]["error"] if text.lower() not in told] == []


@pytest.mark.parametrize(
    "case", [case for case in GOOD if "warns" in case["expect"]], ids=lambda case: case["id"]
)
def test_case_warns(
    case: dict[str, Any], base: Namespace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is ignored or forced is logged as a warning of the logger `slime_logging`."""
    with caplog.at_level(logging.WARNING, logger="slime_logging"):
        parse_role_file(base, write(tmp_path, case["yaml"]))
    told = [record.getMessage() for record in caplog.records if record.name == "slime_logging"]
    assert all(any(text in line for line in told) for text in case["expect"]["warns"])


# --- errors ---


def test_the_error_is_what_slimes_callers_expect(base: Namespace, tmp_path: Path) -> None:
    """It is a ValueError, an AssertionError and this package's error, and says what slime's tests look for."""
    path = write(tmp_path, "lr: 1e-5\n")
    with pytest.raises(AssertionError, match="top-level 'megatron' list"):
        parse_megatron_role_args(base, path, role="critic")
    with pytest.raises(ValueError, match="megatron"):
        parse_megatron_role_args(base, path, role="critic")
    with pytest.raises(TrackingError):
        parse_megatron_role_args(base, path, role="critic")


def test_the_error_survives_pickling(base: Namespace, tmp_path: Path) -> None:
    """Ray carries exceptions between processes by pickle."""
    with pytest.raises(RoleConfigError) as caught:
        parse_role_file(base, write(tmp_path, "lr: 1\n"))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_all_mistakes_of_all_roles_are_told_at_once(base: Namespace, tmp_path: Path) -> None:
    """Frame, keys, values and combinations of both entries come in one message, in the order of the file."""
    text = (
        "megatron:\n  - role: actor\n    overides: {}\n    overrides:\n      lr: abc\n      lr: 1\n      bf16: maybe\n"
        "  - role: critic\n    overrides:\n      learning_rate: 1e-5\n      lr_decay_style: WSD\nextra: 1\n"
    )
    told = mistakes(base, write(tmp_path, text))
    assert [f"line {line}," in told for line in (3, 5, 6, 7, 10, 11, 12)] == [True] * 7
    assert told.startswith("7 mistakes in the role file")
    assert (
        told.index("line 3,")
        < told.index("line 5,")
        < told.index("line 10,")
        < told.index("line 12,")
    )


def test_a_mistake_has_place_text_reason_and_fix(base: Namespace, tmp_path: Path) -> None:
    """`file:line:column` as editors open it, what stands there, why it is wrong, what to write."""
    path = write(tmp_path, entry("critic", "lr_decay_style: cosin"))
    told = mistakes(base, path)
    assert f"{path}:4:23 (line 4, column 23), role critic" in told
    assert "lr_decay_style: cosin" in told
    assert "why: 'cosin' is not among the values of `lr_decay_style`" in told
    assert "fix: write one of: cosine, " in told


def test_no_secret_and_no_comment_gets_into_a_message(base: Namespace, tmp_path: Path) -> None:
    """What stands under a secret-looking name is hidden, also in broken YAML; comments never show."""
    secret = "s3cr3t-value"
    lines = [
        f"wandb_key: {secret}",
        f"hf_token: {secret}",
        f"my-api-key: {secret}",
        f"lr: abc # {secret}",
    ]
    lines.append(f'train_env_vars: \'{{"WANDB_API_KEY": "{secret}"\'')
    told = mistakes(base, write(tmp_path, entry("critic", *lines)))
    assert secret not in told
    assert told.count("<hidden>") >= 3
    told = mistakes(base, write(tmp_path, f"wandb_key: {secret}: [\n", "broken.yaml"))
    assert secret not in told


def test_control_characters_do_not_reach_the_terminal(base: Namespace, tmp_path: Path) -> None:
    """An escape sequence in a value or key is shown escaped."""
    told = mistakes(base, write(tmp_path, entry("critic", 'lr: "\\e[31mred"', '"\\e[2Jlr": 1')))
    assert "\x1b" not in told


@pytest.mark.parametrize("role", ["Critic", "reward", ""])
def test_asking_for_an_unknown_role_is_an_error(role: str, base: Namespace, tmp_path: Path) -> None:
    """A role that is not one of `roles` is never resolved as if it had no entry."""
    with pytest.raises(RoleConfigError, match="Unsupported Megatron config role"):
        parse_megatron_role_args(base, write(tmp_path, entry("critic", "lr: 1")), role)


@pytest.mark.parametrize(("name", "reason"), [("missing.yaml", "no such file"), (".", "directory")])
def test_a_path_that_cannot_be_read_is_a_clear_error(
    name: str, reason: str, base: Namespace, tmp_path: Path
) -> None:
    """A missing file and a directory are named as what they are."""
    assert reason in mistakes(base, str(tmp_path / name)).lower()


def test_an_empty_path_and_a_path_with_a_null_byte_are_clear_errors(base: Namespace) -> None:
    """Paths that no file can have raise nothing but `RoleConfigError`."""
    assert "cannot be read" in mistakes(base, "")
    assert "cannot be read" in mistakes(base, "a\0b")


# --- call styles ---


def test_slimes_call_style(base: Namespace, tmp_path: Path) -> None:
    """`parse_megatron_role_args(args, args.megatron_config_path, role)` is all a caller needs."""
    base.megatron_config_path = write(tmp_path, entry("critic", "lr: 1e-5"))
    assert parse_megatron_role_args(base, base.megatron_config_path, role="critic").lr == 1e-5
    assert parse_megatron_role_args(base, base.megatron_config_path, "actor").lr == base.lr


def test_both_call_styles_give_the_same(base: Namespace, tmp_path: Path) -> None:
    """All roles at once and one role at a time are the same resolution."""
    path = write(tmp_path, entry("critic", "lr: 1e-5", "weight_decay: 0"))
    found = parse_role_file(base, path)
    for role in ("actor", "critic"):
        assert vars(parse_megatron_role_args(base, path, role)) == vars(found.args[role])


def test_without_a_role_file_the_critic_has_its_own_values(base: Namespace) -> None:
    """`None` for the path: the base, and what a critic always has."""
    actor = parse_megatron_role_args(base, None, "actor")
    critic = parse_megatron_role_args(base, None, "critic")
    assert vars(actor) == vars(base)
    assert actor is not base
    assert critic.untie_embeddings_and_output_weights is True
    assert critic.disable_param_buffers_cpu_backup is False


def test_a_path_object_will_do(base: Namespace, tmp_path: Path) -> None:
    """The path may be any path-like object."""
    path = Path(write(tmp_path, entry("critic", "lr: 1e-5")))
    assert parse_megatron_role_args(base, path, "critic").lr == 1e-5


def test_more_roles_by_argument(base: Namespace, tmp_path: Path) -> None:
    """Roles beyond slime's two are those that the caller names, or else those that the file names."""
    path = write(tmp_path, entry("reward", "lr: 1e-5"))
    roles = ("actor", "critic", "reward", "reference", "teacher", "explorer", "trainer")
    found = parse_role_file(base, path, roles=roles)
    assert found.args["reward"].lr == 1e-5
    assert tuple(found.args) == roles
    assert tuple(parse_role_file(base, path).args) == ("actor", "critic", "reward")
    assert parse_megatron_role_args(base, path, "reward").lr == 1e-5
    assert "there is no role 'reward'" in mistakes(base, path, roles=("actor", "critic"))


@pytest.mark.parametrize("name", ["critics", "Critic", "actr", "a b", "x/y", "../up", ""])
def test_a_slip_is_no_new_role(name: str, base: Namespace, tmp_path: Path) -> None:
    """A name like one of slime's roles, or that cannot be a part of a metric's name, is refused."""
    assert "role" in mistakes(base, write(tmp_path, entry(json.dumps(name), "lr: 1e-5")))


def test_the_namespace_of_slimes_own_tests_works(tmp_path: Path) -> None:
    """A small namespace, without most arguments, is resolved by the table and the current values."""
    small = Namespace(
        lr=2e-6,
        kl_coef=0.1,
        use_opd=True,
        custom_advantage_function_path="a.b",
        megatron_config_path=None,
    )
    small.untie_embeddings_and_output_weights = False
    path = write(tmp_path, 'megatron:\n- {name: default, role: critic, overrides: {lr: "1e-5"}}\n')
    critic = parse_megatron_role_args(small, path, role="critic")
    assert (critic.lr, critic.kl_coef, critic.use_opd) == (1e-5, 0, False)
    assert critic.untie_embeddings_and_output_weights is True


# --- read once ---


def test_the_file_is_read_once_for_a_namespace(base: Namespace, tmp_path: Path) -> None:
    """What was logged is what is used, even if the file changes between two calls."""
    path = write(tmp_path, entry("critic", "lr: 1e-5"))
    assert parse_megatron_role_args(base, path, "critic").lr == 1e-5
    write(tmp_path, entry("critic", "lr: 7e-5"))
    assert parse_megatron_role_args(base, path, "critic").lr == 1e-5
    assert parse_megatron_role_args(copy.deepcopy(base), path, "critic").lr == 7e-5


def test_a_mended_file_is_read_again(base: Namespace, tmp_path: Path) -> None:
    """A file with mistakes is not kept, so that it can be mended without starting anew."""
    path = write(tmp_path, entry("critic", "lr: abc"))
    mistakes(base, path)
    write(tmp_path, entry("critic", "lr: 1e-5"))
    assert parse_megatron_role_args(base, path, "critic").lr == 1e-5


def test_what_is_remembered_goes_with_the_namespace(base: Namespace, tmp_path: Path) -> None:
    """Nothing is added to the namespace, and no memory of it outlives it."""
    names = set(vars(base))
    parse_role_file(base, write(tmp_path, entry("critic", "lr: 1e-5")))
    assert set(vars(base)) == names
    other = copy.deepcopy(base)
    gc.collect()
    before = len(roles_module._documents._shelves)
    parse_role_file(other, write(tmp_path, entry("critic", "lr: 1e-5")))
    assert len(roles_module._documents._shelves) == before + 1
    del other
    gc.collect()
    assert len(roles_module._documents._shelves) == before


def test_warnings_are_logged_once_and_returned_each_time(
    base: Namespace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """slime resolves the roles two or three times in a process; the log says it once."""
    path = write(tmp_path, entry("critic", "num_nodes: 4"))
    with caplog.at_level(logging.WARNING, logger="slime_logging"):
        found = [parse_role_file(base, path) for _ in range(3)]
    assert len([record for record in caplog.records if "num_nodes" in record.getMessage()]) == 1
    assert [len(one.warnings) for one in found] == [1, 1, 1]


# --- the base and the result ---


def test_the_result_shares_no_mutable_value(base: Namespace, tmp_path: Path) -> None:
    """Changing a list, a mapping or a nested one of a result changes neither the base nor the other role."""
    base.nested = {"a": [1, {"b": {2}}]}
    found = parse_role_file(base, write(tmp_path, entry("actor", "freeze_params_name_list: [x]")))
    actor, critic = found.args["actor"], found.args["critic"]
    actor.nested["a"][1]["b"].add(3)
    actor.cp_comm_type.append("x")
    assert base.nested == critic.nested == {"a": [1, {"b": {2}}]}
    assert "x" not in base.cp_comm_type
    assert "x" not in critic.cp_comm_type


def test_what_cannot_be_copied_is_passed_by_reference(base: Namespace, tmp_path: Path) -> None:
    """A lock or an open file in the arguments is no reason to fail, also inside of a container."""
    base.lock = threading.Lock()
    with (tmp_path / "log").open("w") as handle:
        base.handle = handle
        base.held = {"lock": base.lock, "list": [1]}
        args = parse_megatron_role_args(base, write(tmp_path, entry("actor", "lr: 1")), "actor")
    assert args.lock is base.lock
    assert args.handle is base.handle
    assert args.held == base.held
    assert args.held is not base.held


def test_a_role_of_its_own_class(tmp_path: Path) -> None:
    """The result has the class of the base's namespace."""

    class Arguments(Namespace):
        pass

    assert type(parse_megatron_role_args(Arguments(lr=1.0), None, "actor")) is Arguments


# --- types from a parser ---


def test_a_parser_goes_before_the_table(base: Namespace, tmp_path: Path) -> None:
    """What the job's own parser says of an option is what holds: type, choices, and options the table lacks."""
    base.reward_scale = None
    parser = argparse.ArgumentParser()
    parser.add_argument("--reward-scale", type=float)
    parser.add_argument("--lr-decay-style", choices=["cosine", "sawtooth"], default="cosine")
    path = write(tmp_path, entry("actor", "reward_scale: 3", "lr_decay_style: sawtooth"))
    args = parse_megatron_role_args(base, path, "actor", parser=parser)
    assert (args.reward_scale, type(args.reward_scale), args.lr_decay_style) == (
        3.0,
        float,
        "sawtooth",
    )


def test_an_option_of_the_parser_that_the_base_lacks_is_known(
    base: Namespace, tmp_path: Path
) -> None:
    """A new option is no unknown key, even where the namespace was made without it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--brand-new", type=int)
    path = write(tmp_path, entry("actor", "brand_new: 1e2"))
    assert parse_megatron_role_args(base, path, "actor", parser=parser).brand_new == 100


def test_an_attribute_that_nobody_knows_goes_by_its_value(base: Namespace, tmp_path: Path) -> None:
    """Every attribute of the base can be overridden; its current value says its type, or YAML 1.2 where it is None."""
    base.mine_int, base.mine_list, base.mine_none, base.mine_text = 1, [1.0], None, "a"
    lines = ["mine_int: 1e2", "mine_list: 2", "mine_none: 0x10", "mine_text: no"]
    args = parse_megatron_role_args(base, write(tmp_path, entry("actor", *lines)), "actor")
    assert (args.mine_int, args.mine_list, args.mine_none, args.mine_text) == (100, [2.0], 16, "no")
    assert "takes a whole number" in mistakes(
        base, write(tmp_path, entry("actor", "mine_int: 1.5"), "b.yaml")
    )


def test_an_option_that_this_version_lacks_is_an_unknown_key(
    base: Namespace, tmp_path: Path
) -> None:
    """The table knows it, the job does not: it would be set and never read."""
    del base.qk_clip
    told = mistakes(base, write(tmp_path, entry("actor", "qk_clip: true")))
    assert "there is no argument `qk_clip` in this version of Megatron-LM or slime" in told


def test_a_flags_name_leads_to_its_argument(base: Namespace, tmp_path: Path) -> None:
    """`disable_bias_linear` is a flag; its argument is add_bias_linear, the other way round."""
    told = mistakes(base, write(tmp_path, entry("actor", "disable_bias_linear: true")))
    assert "write `add_bias_linear: false`" in told


# --- enums and dtypes ---


def test_dtypes_and_enums_keep_the_class_of_the_base(base: Namespace, tmp_path: Path) -> None:
    """A torch.dtype stays one, an enum's name becomes a member of the base's own enum class."""
    import signal

    import torch

    lines = [
        "exp_avg_dtype: fp8",
        "main_params_dtype: torch.float16",
        "attention_backend: flash",
        "exit_signal: SIGINT",
    ]
    args = parse_megatron_role_args(base, write(tmp_path, entry("actor", *lines)), "actor")
    assert (args.exp_avg_dtype, args.main_params_dtype) == (torch.uint8, torch.float16)
    assert args.attention_backend is type(base.attention_backend).flash
    assert args.exit_signal is signal.SIGINT


def test_dtypes_and_enums_list_what_there_is(base: Namespace, tmp_path: Path) -> None:
    """A wrong name is answered by the right ones, nearest first."""
    told = mistakes(
        base, write(tmp_path, entry("actor", "main_grads_dtype: fp8", "attention_backend: flsh"))
    )
    assert "write one of: fp32, bf16" in told
    assert "write one of: flash, " in told


# --- rules ---


@pytest.mark.parametrize(
    "line",
    [
        "tensor_model_parallel_size: 4",
        "pipeline_model_parallel_size: 2",
        "context_parallel_size: 2",
        "expert_model_parallel_size: 2",
        "expert_tensor_parallel_size: 1",
        "sequence_parallel: true",
        "virtual_pipeline_model_parallel_size: 2",
        "num_virtual_stages_per_pipeline_rank: 2",
        "world_size: 2",
        "data_parallel_size: 1",
        "colocate: false",
        "offload_train: false",
        "offload_rollout: true",
        "actor_num_nodes: 1",
        "critic_num_gpus_per_node: 2",
        "rollout_num_gpus: 2",
        "use_wandb: false",
        "wandb_project: x",
        "tb_project_name: x",
        "use_tensorboard: true",
        "tracking_dir: x",
        "advantage_estimator: grpo",
        "use_critic: false",
        "rollout_batch_size: 4",
        "n_samples_per_prompt: 4",
        "global_batch_size: 4",
        "num_rollout: 3",
    ],
)
def test_what_no_role_may_have_of_its_own_is_refused(
    line: str, base: Namespace, tmp_path: Path
) -> None:
    """Topology, world, placement, tracking, the algorithm and the rollout's sizes are the whole job's."""
    told = mistakes(base, write(tmp_path, entry("critic", line)))
    assert line.split(":")[0] in told
    assert "why: " in told


def test_repeating_the_topology_of_the_command_line_is_fine(
    base: Namespace, tmp_path: Path
) -> None:
    """An equal value changes nothing, so it is no mistake and no override."""
    path = write(
        tmp_path, entry("critic", "tensor_model_parallel_size: 2", "sequence_parallel: no")
    )
    assert "tensor_model_parallel_size" not in {
        item.key for item in parse_role_file(base, path).overrides["critic"]
    }


def test_topology_that_both_roles_change_alike_is_refused_too(
    base: Namespace, tmp_path: Path
) -> None:
    """The world was laid out by the command line; roles that agree with each other only would still not fit it."""
    text = "megatron:\n" + "".join(
        f"  - {{role: {r}, args: {{context_parallel_size: 2}}}}\n" for r in ("actor", "critic")
    )
    told = mistakes(base, write(tmp_path, text))
    assert told.count("`context_parallel_size` is parallel topology") == 2


def test_forced_values_are_recorded_with_what_was_asked(base: Namespace, tmp_path: Path) -> None:
    """The run shows that the entry wanted something else; an entry that agrees is no conflict."""
    path = write(tmp_path, entry("critic", "kl_coef: 0.5", "use_opd: false"))
    found = parse_role_file(base, path)
    kept = {item.key: item for item in found.overrides["critic"]}
    assert (kept["kl_coef"].value, kept["kl_coef"].asked, kept["kl_coef"].source) == (
        0,
        0.5,
        "forced",
    )
    assert kept["untie_embeddings_and_output_weights"].source == "forced"
    assert "use_opd" not in kept
    assert [text for text in found.warnings if "kl_coef" in text] != []


def test_the_actor_has_no_forced_values(base: Namespace, tmp_path: Path) -> None:
    """What a critic always has does not touch the actor."""
    args = parse_megatron_role_args(base, write(tmp_path, entry("actor", "kl_coef: 0.5")), "actor")
    assert args.kl_coef == 0.5
    assert args.untie_embeddings_and_output_weights == base.untie_embeddings_and_output_weights


def test_the_critics_preset_gives_way_to_the_entry(base: Namespace, tmp_path: Path) -> None:
    """disable_param_buffers_cpu_backup is False for the critic unless its entry says otherwise."""
    path = write(tmp_path, entry("critic", "disable_param_buffers_cpu_backup: true"))
    assert parse_megatron_role_args(base, path, "critic").disable_param_buffers_cpu_backup is True


def test_ignored_keys_are_recorded(base: Namespace, tmp_path: Path) -> None:
    """num_nodes is without effect, as slime documents, and visible as ignored."""
    found = parse_role_file(base, write(tmp_path, entry("critic", "num_gpus_per_node: 4")))
    kept = {item.key: item for item in found.overrides["critic"]}["num_gpus_per_node"]
    assert (kept.source, kept.asked, kept.value) == ("ignored", "4", base.num_gpus_per_node)


def test_overrides_hold_base_and_value(base: Namespace, tmp_path: Path) -> None:
    """For every key that differs, what it was and what it is; a key that stays equal is left out."""
    path = write(tmp_path, entry("actor", "lr: 1e-5", "eps_clip: 0.1", "seed: 1234"))
    kept = {
        item.key: (item.base, item.value, item.source)
        for item in parse_role_file(base, path).overrides["actor"]
    }
    assert kept == {
        "lr": (1e-6, 1e-5, "file"),
        "eps_clip": (0.2, 0.1, "file"),
        "eps_clip_high": (0.2, 0.1, "derived"),
    }


def test_a_rollout_option_in_an_entry_is_warned_about(base: Namespace, tmp_path: Path) -> None:
    """The rollout reads the command line, so a role's rollout_temperature would do nothing."""
    found = parse_role_file(base, write(tmp_path, entry("actor", "rollout_temperature: 0.7")))
    assert any("without effect" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("line", "part"),
    [("save: None", "to unset it write null"), ("freeze_params_name_list: a b", "[a, b]")],
)
def test_what_is_right_but_hardly_meant_is_warned_about(
    line: str, part: str, base: Namespace, tmp_path: Path
) -> None:
    """Python's None as a text, and two names in one text of a list."""
    found = parse_role_file(base, write(tmp_path, entry("actor", line)))
    assert any(part in text for text in found.warnings)


ENDLESS = [
    "".join(f"      k{n}: 1\n" for n in range(5000)),
    "      lr: " + "x" * 200_000,
    f"      {'k' * 1000}: 1",
]


@pytest.mark.parametrize("text", ENDLESS, ids=["keys", "value", "key"])
def test_a_file_of_nothing_but_mistakes_is_told_in_good_time(
    text: str, base: Namespace, tmp_path: Path
) -> None:
    """Thousands of unknown keys or an endless value do not keep the job waiting: seconds, not minutes."""
    path = write(tmp_path, f"megatron:\n  - role: actor\n    overrides:\n{text}\n")
    assert "in the role file" in mistakes(base, path)
