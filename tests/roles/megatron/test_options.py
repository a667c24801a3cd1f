"""The option table: what it says, and that it can be made again."""

from __future__ import annotations

import argparse
import enum
import json
from pathlib import Path

import pytest

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.flags import parser_of
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.megatron.options import OptionTable, main, parser_from


class Colour(enum.Enum):
    red = 1
    blue = 2


def a_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    fill(parser)
    return parser


def fill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lr", type=float, default=1e-6)
    parser.add_argument("--names", nargs="+", choices=["a", "b"])
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--slow", action="store_false", dest="fast")
    parser.add_argument("--extra", action=argparse.BooleanOptionalAction)
    parser.add_argument("--tag", action="append", default=[])
    parser.add_argument("--colour", type=Colour, default=Colour.red)
    parser.add_argument("--level", action="count", default=0)
    parser.add_argument("--mode", action="store_const", const="x")
    parser.add_argument("--config", type=json.loads, default={})
    parser.add_argument("--hidden", default=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version="1")


def needs_nothing() -> str:
    return "no parser"


def test_the_shipped_table_has_megatrons_and_slimes_options() -> None:
    """955 options, with type, nargs, choices and default."""
    table = OptionTable.shipped()
    assert len(table) == 955
    assert table["lr"] == Option(name="lr", flags=("--lr",), type="float", default=1e-6)
    assert table["lr_decay_style"].choices == (
        "constant",
        "linear",
        "cosine",
        "inverse-square-root",
        "WSD",
    )
    assert (table["save"].is_nullable, table["lr"].is_nullable) == (True, False)
    assert table["freeze_params_name_list"].is_list
    assert table["disable_chunked_prefill"].flags == (
        "--enable-chunked-prefill",
        "--disable-chunked-prefill",
    )


def test_the_shipped_table_covers_nearly_all_names_of_a_job() -> None:
    """97.5 % of the 873 names; the others go by their current value."""
    names = vars(ppo_namespace())
    assert sum(name in OptionTable.shipped() for name in names) / len(names) >= 0.97


def test_every_kind_of_the_shipped_table_is_known() -> None:
    """No option is left to a converter that is not there."""
    assert {option.kind for option in OptionTable.shipped().values()} == {
        "bool", "int", "float", "str", "json", "enum", "pattern", "int_tuple", "cuda_graph_scope"
    }  # fmt: skip


def test_a_parsers_options() -> None:
    """Every action of argparse, with what it stores."""
    table = OptionTable.of_parser(a_parser())
    kinds = {name: (option.kind, option.is_list) for name, option in table.items()}
    assert kinds == {
        "lr": ("float", False),
        "names": ("str", True),
        "fast": ("bool", False),
        "extra": ("bool", False),
        "tag": ("str", True),
        "colour": ("enum", False),
        "level": ("int", False),
        "mode": ("const", False),
        "config": ("json", False),
        "hidden": ("str", False),
    }
    assert table["fast"].flags == ("--fast", "--slow")
    assert table["colour"].choices == (Colour.red, Colour.blue)


def test_a_table_written_and_read_is_the_same() -> None:
    """The shipped format holds all but the converters themselves."""
    table = OptionTable.of_parser(a_parser())
    text = table.to_json()
    again = OptionTable.of_json(text)
    assert again.to_json() == text
    assert {name: (o.kind, o.is_list, o.nargs, o.flags) for name, o in again.items()} == {
        name: (o.kind, o.is_list, o.nargs, o.flags) for name, o in table.items()
    }


def test_the_shipped_table_is_made_again_from_its_parser() -> None:
    """A parser with these options gives this table: the file in the package is what the command writes."""
    shipped = OptionTable.shipped()
    again = json.loads(OptionTable.of_parser(parser_of(shipped)).to_json())["options"]
    wanted = json.loads(shipped.to_json())["options"]
    for name, facts in wanted.items():
        kept = ("flags", "nargs", "default", "action")
        if len(facts["flags"]) > 1 and facts.get("action") != "boolean_optional":
            continue  # two flags of one argument: parser_of makes one option of them
        assert {key: again[name].get(key) for key in kept} == {
            key: facts.get(key) for key in kept
        }, name


@pytest.mark.parametrize("source", [f"{__name__}:a_parser", f"{__name__}:fill"])
def test_the_command_writes_a_table(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a function that returns a parser, or fills one as Megatron's providers do; to a file or the screen."""
    assert main(["--from", source, "--output", str(tmp_path / "t.json")]) == 0
    assert main(["--from", source]) == 0
    assert (
        (tmp_path / "t.json").read_text()
        == capsys.readouterr().out
        == OptionTable.of_parser(a_parser()).to_json()
    )


@pytest.mark.parametrize("source", ["nonsense", "json:", f"{__name__}:needs_nothing"])
def test_a_source_that_is_no_parser_is_refused(source: str) -> None:
    """The message says what it is instead."""
    with pytest.raises(ValueError, match="not"):
        parser_from(source)
