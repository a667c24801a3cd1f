"""One role's resolution over the whole range of options."""

from __future__ import annotations

import copy
from argparse import Namespace
from pathlib import Path

import pytest

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.coerce import coerce
from slime_logging.roles.equality import same
from slime_logging.roles.megatron.derive import PLACES
from slime_logging.roles.megatron.derived import ALWAYS, FIRST, FOLLOWING, IMPLIED
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.megatron.requirements import REQUIREMENTS
from slime_logging.roles.nodes import Scalar
from slime_logging.roles.roles import check_role_file
from slime_logging.roles.rules import TOPOLOGY, rejection
from slime_logging.roles.targets import Target

TABLE = OptionTable.shipped()
LINKED = (
    {rule.target for rule in (*FIRST, *FOLLOWING, *IMPLIED)}
    | {*ALWAYS, *PLACES}
    | {key for rule in REQUIREMENTS for key in rule.keys}
)
SAMPLES = {
    "bool": "true",
    "int": "3",
    "float": "0.25",
    "str": "abc",
    "json": '{"a": 1}',
    "pattern": "2",
}
SAMPLES |= {"int_tuple": "1,2", "cuda_graph_scope": "attn"}


def sample(option: Option) -> str:
    """A text that the option takes; a list option takes as many of it as it must."""
    return str(option.choices[-1]) if option.choices else SAMPLES[option.kind]


def test_every_option_is_overridden_as_its_flag_or_refused(tmp_path: Path) -> None:
    """All options, one file each: the role's value is the flag's, or the option cannot be a role's own."""
    base = ppo_namespace()
    path = tmp_path / "roles.yaml"
    num_set, wrong = 0, []
    for option in TABLE.values():
        text = sample(option)
        words = (
            [text] * option.nargs if isinstance(option.nargs, int) and option.is_list else [text]
        )
        written = f"[{', '.join(words)}]" if len(words) > 1 else f"'{text}'"
        path.write_text(
            f"megatron:\n  - role: actor\n    overrides:\n      {option.name}: {written}\n"
        )
        found, problems = check_role_file(copy.copy(base), str(path))
        if option.name in LINKED:
            continue
        if rejection(option.name) or option.name in TOPOLOGY or option.name not in base:
            wrong += [option.name] if found is not None and option.name not in TOPOLOGY else []
            continue
        if found is None:
            wrong.append(f"{option.name}: {problems[0].reason}")
            continue
        got = getattr(found.args["actor"], option.name)
        target = Target(name=option.name, option=option, base=getattr(base, option.name))
        if len(words) == 1 and not same(got, coerce(target, Scalar(text, False, 1, 1))):
            wrong.append(f"{option.name}: {got!r}")
        num_set += 1
    assert wrong == ["num_gpus_per_node: 8"]  # ignored, as slime documents
    assert num_set > 640


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [(1, 1.0, True), (True, 1, False), (0, False, False), ("a", "a", True), ([1], [1], True)],
)
def test_equal_values_are_no_override(left: object, right: object, is_same: bool) -> None:
    """True is not 1: a switch that became a number is a change."""
    assert same(left, right) is is_same


def test_values_that_refuse_to_be_compared_are_not_the_same() -> None:
    """Arrays raise or give arrays when compared; then identity decides."""

    class Array:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    one = Array()
    assert same(one, one)
    assert not same(one, Array())


def test_a_namespace_with_a_huge_value_is_resolved() -> None:
    """Values that YAML cannot write are kept, and say so when an entry names them."""
    found, _ = check_role_file(Namespace(table=object(), lr=1.0), None)
    assert found is not None
