"""Roles that join unexpectedly, or otherwise than expected: what the run says, and what the log says."""

from __future__ import annotations

import copy
from argparse import Namespace
from pathlib import Path

import pytest

import slime_logging as sl
from slime_logging.delivery.status import journal_config
from slime_logging.demo.namespace import grpo_namespace, ppo_namespace
from slime_logging.layout.diff import logged_differences
from slime_logging.record.run import RunDirectory
from slime_logging.values.run import RunConfig

FILE = """
megatron:
  - role: critic
    overrides: {lr: 1.0e-5}
  - role: reward
    overrides: {lr: 3.0e-5}
"""


def begin(tmp_path: Path, args: Namespace) -> Namespace:
    path = tmp_path / "roles.yaml"
    path.write_text(FILE)
    args.use_wandb, args.wandb_run_id = False, None
    args.use_memory = True
    args.tracking_dir, args.tracking_system_metrics = str(tmp_path / "runs"), "off"
    args.megatron_config_path = str(path)
    sl.init_tracking(args)
    return args


def join(args: Namespace, role: str, **changes: object) -> None:
    own = sl.parse_megatron_role_args(args, args.megatron_config_path, role)
    for name, value in changes.items():
        setattr(own, name, value)
    sl.init_tracking(own, primary=False, role=role)


def config(args: Namespace) -> RunConfig:
    return journal_config(RunDirectory(Path(args.tracking_run_dir)), ("actor",))


def of(args: Namespace, prefix: str) -> list[str]:
    return [key for key in config(args).values if key.startswith(prefix)]


def test_a_critic_that_never_ran_has_no_keys(tmp_path: Path) -> None:
    """Also where `use_critic` was left on from another estimator, and the file speaks of a critic."""
    args = grpo_namespace()
    args.use_critic = True
    begin(tmp_path, args)
    join(args, "actor")
    sl.finish_tracking(args)
    assert of(args, "critic/") == of(args, "overrides/critic/") == of(args, "reward/") == []


def test_an_unexpected_critic_stands_with_its_overrides_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`use_critic` is stale; the critic joins all the same."""
    args = ppo_namespace()
    args.use_critic = False
    begin(tmp_path, args)
    join(args, "critic")
    sl.finish_tracking(args)
    values = config(args).values
    assert values["critic/lr"] == 1e-5
    assert values["overrides/critic/lr"] == {"base": args.lr, "value": 1e-5, "source": "file"}
    assert "role critic joined a run that expected only actor" in caplog.text
    assert "with other arguments" not in caplog.text


def test_a_third_role_of_the_file_has_its_overrides(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It needs no `roles=`; the file names it, so it is no surprise."""
    args = begin(tmp_path, ppo_namespace())
    join(args, "reward")
    sl.finish_tracking(args)
    assert config(args).values["reward/lr"] == 3e-5
    assert (
        of(args, "overrides/reward/")
        == [key for key in of(args, "overrides/reward/") if "/lr" in key or "lr" in key]
        != []
    )
    assert "reward" not in caplog.text
    roles, differences = logged_differences(config(args))
    assert "reward" in roles
    assert "wandb_run_id" not in {one.key for one in differences}


@pytest.mark.parametrize(
    ("role", "prefix", "asked"),
    [("actor", "", 1e-6), ("critic", "critic/", 1e-5), ("reward", "reward/", 3e-5)],
)
def test_a_role_with_another_value_than_expected_is_told_and_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, role: str, prefix: str, asked: float
) -> None:
    """What the run shows is what the role runs with; what slime sets at run time is no surprise."""
    args = begin(tmp_path, ppo_namespace())
    join(args, role, lr=7e-5, num_rollout=123)
    sl.finish_tracking(args)
    values = config(args).values
    assert values[f"{prefix}lr"] == 7e-5
    assert values[f"overrides/{role}/lr"] == {
        "base": args.lr, "value": 7e-5, "source": "own", "asked": asked,
    }  # fmt: skip
    assert f"role {role} runs with other arguments" in caplog.text
    assert f"lr is 7e-05, not {asked}" in caplog.text and "num_rollout" not in caplog.text


def test_a_role_that_no_entry_is_of_is_told_where_there_is_a_role_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It stands with its own arguments and what of them differs from the job's."""
    args = begin(tmp_path, ppo_namespace())
    teacher = copy.copy(args)
    teacher.lr = 4e-5
    sl.init_tracking(teacher, primary=False, role="teacher")
    sl.finish_tracking(args)
    values = config(args).values
    assert (values["teacher/lr"], values["overrides/teacher/lr"]["base"]) == (4e-5, args.lr)
    assert "role teacher joined a run that expected only actor and critic" in caplog.text
    assert "give it an entry in the role file" in caplog.text


def test_a_job_of_ones_own_has_only_what_it_set(tmp_path: Path) -> None:
    """Forced values of slime's critic are set only where the job has the argument."""
    args = begin(tmp_path, Namespace(lr=1e-6))
    join(args, "critic")
    sl.finish_tracking(args)
    assert of(args, "overrides/critic/") == ["overrides/critic/lr"]
    own = copy.deepcopy(config(args).roles["critic"])
    assert own["lr"] == 1e-5 and "kl_coef" not in own


def test_a_role_of_one_s_own_is_no_surprise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An explorer beside a trainer has nothing to do with slime's options."""
    args = Namespace(lr=1.0, tracking_dir=str(tmp_path), tracking_system_metrics="off")
    sl.init_tracking(args)
    sl.init_tracking(copy.copy(args), primary=False, role="explorer")
    sl.finish_tracking(args)
    assert "expected only" not in caplog.text
