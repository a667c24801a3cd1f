"""Reading role files: any bytes give a document or problems, never another exception."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_logging.errors import RoleConfigError
from slime_logging.roles.nodes import core_value
from slime_logging.roles.problems import Problem
from slime_logging.roles.role_file import MAX_BYTES, parse_document, read_document
from slime_logging.roles.roles import parse_role_file
from slime_logging.roles.tree import MAX_DEPTH, MAX_NODES, Unreadable

MANY = settings(max_examples=400, deadline=None, derandomize=True, database=None)
FRAGMENTS = [
    "megatron",
    ":",
    " ",
    "\n",
    "  ",
    "- ",
    "role",
    "critic",
    "actor",
    "overrides",
    "lr",
    "1e-5",
    "{",
    "}",
    "[",
    "]",
]
FRAGMENTS += [
    ",",
    "&a ",
    "*a",
    "!!str ",
    "!x ",
    "|",
    ">",
    "'",
    '"',
    "#",
    "%YAML 1.1\n",
    "---\n",
    "...\n",
    "?",
    "<<",
    "\t",
    "é",
    "~",
]
FRAGMENTS += [
    "\x00",
    "\\x",
    "null",
    "tensor_model_parallel_size",
    "kl_coef",
    "abc",
    "-",
    "@",
    "`",
    "\ufeff",
    "\u2028",
    "0x",
]


def value(text: str | bytes) -> object:
    return core_value(parse_document(text if isinstance(text, bytes) else text.encode()).root)


def problems(text: str | bytes) -> tuple[Problem, ...]:
    """What is wrong with a document, whether it can be read all the same or not."""
    try:
        return parse_document(text if isinstance(text, bytes) else text.encode()).problems
    except Unreadable as error:
        return error.problems


def resolved(content: bytes, folder: Path) -> None:
    """Resolve a file with this content; only a `RoleConfigError` may be raised."""
    path = folder / "roles.yaml"
    path.write_bytes(content)
    base = Namespace(
        lr=1.0,
        kl_coef=0.0,
        tensor_model_parallel_size=1,
        freeze_params_name_list=None,
        train_env_vars={},
    )
    try:
        found = parse_role_file(base, str(path))
    except RoleConfigError as error:
        assert "fix: " in str(error)
    else:
        assert set(found.args) == {"actor", "critic"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@given(content=st.binary(max_size=200))
@MANY
def test_any_bytes_give_a_result_or_a_role_config_error(content: bytes, folder: Path) -> None:
    """No byte string as a file raises anything else."""
    resolved(content, folder)


@given(words=st.lists(st.sampled_from(FRAGMENTS), max_size=40))
@MANY
def test_any_mix_of_yaml_gives_a_result_or_a_role_config_error(
    words: list[str], folder: Path
) -> None:
    """Nor does what looks like a role file and is not."""
    resolved("".join(words).encode(), folder)


@given(
    overrides=st.dictionaries(
        st.sampled_from(
            [
                "lr",
                "kl_coef",
                "tensor_model_parallel_size",
                "freeze_params_name_list",
                "train_env_vars",
                "x",
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=6,
        ),
        max_size=4,
    )
)
@MANY
def test_any_values_give_a_result_or_a_role_config_error(
    overrides: dict[str, object], folder: Path
) -> None:
    """Values of every shape for known and unknown arguments."""
    import yaml

    document = {"megatron": [{"role": "critic", "overrides": overrides}]}
    resolved(
        yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "surrogateescape"), folder
    )


@pytest.mark.parametrize("cut", range(0, 90, 3))
def test_any_part_of_a_right_file_gives_a_result_or_a_role_config_error(
    cut: int, folder: Path
) -> None:
    """A file that was not written to its end."""
    whole = b"megatron:\n  - name: default\n    role: critic\n    overrides:\n      lr: 1e-5\n      kl_coef: 0.0\n"
    resolved(whole[:cut], folder)


def test_yaml_is_1_2() -> None:
    """`no`, times and dates are texts, `010` is ten, `1e-5` a number, `0o17` octal."""
    text = "[no, 12:30, 2024-01-02, 010, 1e-5, 0o17, 0x1F, .inf, ~, True, 1_000, '1', 1.]"
    assert value(text) == [
        "no",
        "12:30",
        "2024-01-02",
        10,
        1e-5,
        15,
        31,
        float("inf"),
        None,
        True,
        "1_000",
        "1",
        1.0,
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    """As Windows editors write it."""
    assert value(b"\xef\xbb\xbfa: 1") == {"a": 1}


@pytest.mark.parametrize("content", [b"a: \xff", "a: é".encode("latin-1"), "a: 1".encode("utf-16")])
def test_what_is_not_utf8_is_named_with_its_place(content: bytes) -> None:
    """The byte and where it is."""
    [problem] = problems(content)
    assert "is not UTF-8" in problem.reason
    assert problem.line == 1


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2\n", "{a: 1, a: 2}", "- {b: 1, a: 1, a: 2}", "a: 1\n'a': 2"]
)
def test_a_duplicate_key_is_named_with_both_places(text: str) -> None:
    """The last one does not win quietly."""
    [problem] = problems(text)
    assert "`a` stands twice; the first is on line 1" in problem.reason


@pytest.mark.parametrize(
    "tag",
    ["!!python/object/apply:os.system ['id']", "!!str 1", "!!binary aGk=", "!mine x", "!t {a}"],
)
def test_tags_are_refused(tag: str) -> None:
    """No tag makes an object; not even a harmless one means anything here."""
    assert ["is not allowed" in problem.reason for problem in problems(f"a: {tag}\n")] == [True]


def test_anchors_and_aliases_work() -> None:
    """A value may be used twice, a mapping merged; keys of one's own go first."""
    assert value("a: &x {b: 1, c: 2}\nd: *x\ne: {<<: *x, b: 3}\nf: {<<: [*x, {g: 1}]}\n") == {
        "a": {"b": 1, "c": 2},
        "d": {"b": 1, "c": 2},
        "e": {"b": 3, "c": 2},
        "f": {"b": 1, "c": 2, "g": 1},
    }


@pytest.mark.parametrize(
    ("text", "reason"), [("a: *x", "no anchor"), ("&a [*a]", "no anchor"), ("{<<: 1}", "merged")]
)
def test_aliases_that_cannot_work(text: str, reason: str) -> None:
    """An alias without an anchor, to itself, or merged without being a mapping."""
    assert reason in problems(text)[0].reason


def test_an_alias_bomb_is_stopped() -> None:
    """Nine aliases of nine aliases, and so on: refused by the number of values, before they exist."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert f"more than {MAX_NODES} values" in problems("\n".join(lines))[0].reason


@pytest.mark.parametrize("text", ["[" * 5000, "{a: " * 5000, "- " * 5000 + "a", "? " * 5000])
def test_deep_nesting_is_stopped(text: str) -> None:
    """Refused by depth, not by the interpreter's stack."""
    assert f"deeper than {MAX_DEPTH}" in problems(text)[0].reason


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """A checkpoint given by mistake is refused by its size."""
    path = tmp_path / "huge.yaml"
    path.write_bytes(b"a" * (MAX_BYTES + 1))
    with pytest.raises(Unreadable) as caught:
        read_document(str(path))
    assert "larger than 256 KiB" in caught.value.problems[0].reason


def test_a_second_document_is_refused() -> None:
    """One file, one document."""
    assert problems("a: 1\n---\nb: 1\n")[0].line == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: [1\nb: 2", 2), ("a: 'x\n", 2), ("a: b: c", 1), ("\ta: 1", 1), ("\x01", 1)],
)
def test_broken_yaml_is_named_with_its_place(text: str, line: int) -> None:
    """Open brackets, open quotes, a second colon, tabs and control characters."""
    [problem] = problems(text)
    assert problem.reason.startswith("not valid YAML: ")
    assert problem.line in (line, line + 1)
    assert problem.fix


def test_places_are_those_that_editors_show() -> None:
    """Lines and columns count from 1."""
    root = parse_document(b"a:\n  - b\n").root
    item = root.pairs[0][1].nodes[0]  # type: ignore[union-attr]
    assert (item.line, item.column) == (2, 5)


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
def test_what_is_no_file_of_a_roles_size_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    """A pipe is not waited for, and three gigabytes are not read."""
    path = tmp_path / "roles.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(3 << 30)
    with pytest.raises(Unreadable, match=r"regular|larger"):
        read_document(str(path))
