"""Values of role files against argparse: the same text gives the same value, for every option of the table."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.coerce import coerce
from slime_logging.roles.dtypes import is_dtype, same_dtype
from slime_logging.roles.flags import parser_of
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.nodes import Entries, Node
from slime_logging.roles.role_file import parse_document
from slime_logging.roles.targets import Mistake, Target

TABLE = OptionTable.shipped()
PARSER = parser_of(TABLE)
BASE = vars(ppo_namespace())
MANY = settings(max_examples=200, deadline=None, derandomize=True, database=None)
WORDS = st.text(
    "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789_./:@ äß中", min_size=1, max_size=20
).filter(lambda text: text.strip() == text)


def node(text: str) -> Node:
    root = parse_document(f"value: {text}\n".encode()).root
    assert isinstance(root, Entries)
    return root.pairs[0][1]


def value_of(name: str, text: str, option: Option | None = None, *, base: Any = None) -> Any:
    return coerce(Target(name=name, option=option or TABLE[name], base=base), node(text))


def argparse_value(option: Option, words: list[str]) -> Any:
    """What the command line gives; a switch's word says whether its flag stands there."""
    if option.kind == "bool" and option.type is None:
        flag = option.flags[0]
        is_there = (words == ["true"]) is not (option.action == "store_false")
        if option.action == "boolean_optional":
            flag, is_there = option.flags[0 if words == ["true"] else 1], True
        flags = [flag] if is_there else []
    elif len(words) == 1:
        flags = [f"{option.flags[0]}={words[0]}"]
    else:
        flags = [option.flags[0], *words]
    args: Namespace = PARSER.parse_args(flags)
    value = getattr(args, option.name)
    return (
        False if value is None and option.kind == "bool" else value
    )  # an absent flag, where unset is the default


def same_value(left: Any, right: Any) -> bool:
    if is_dtype(left):
        return same_dtype(str(left), str(right))
    if hasattr(left, "name") and isinstance(right, str):
        return bool(left.name == right)
    return type(left) is type(right) and bool(left == right)


def texts_of(option: Option) -> st.SearchStrategy[str]:
    """Texts that the option's converter takes."""
    if option.choices:
        return st.sampled_from([str(choice) for choice in option.choices])
    if option.kind == "float":
        return st.floats(allow_nan=False).map(repr) | st.integers(-(10**6), 10**6).map(str)
    strategies: dict[str, st.SearchStrategy[str]] = {
        "bool": st.sampled_from(["true", "false"]),
        "int": st.integers(-(10**9), 10**9).map(str),
        "str": WORDS,
        "json": st.dictionaries(
            WORDS, st.none() | st.booleans() | st.integers() | WORDS, max_size=3
        ).map(json.dumps),
        "pattern": st.integers(1, 9).map(str)
        | st.sampled_from(["([1]*3+[0])*2", "[0,1,1]", "[1]*4"]),
        "int_tuple": st.sampled_from(["1,2", "(128,0)", "-1,0"]),
        "cuda_graph_scope": st.sampled_from(["attn", "mlp", "full"]),
    }
    return strategies[option.kind]


def words_of(option: Option) -> st.SearchStrategy[list[str]]:
    texts = texts_of(option)
    if not option.is_list:
        return st.lists(texts, min_size=1, max_size=1)
    texts = texts.filter(
        lambda text: not text.startswith("-")
    )  # argparse takes -1e+16 in a list for a flag
    count = option.nargs if isinstance(option.nargs, int) else None
    if option.action == "append":
        return st.lists(texts, min_size=1, max_size=1)
    return st.lists(texts, min_size=count or 1, max_size=count or 4)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def yaml_of(option: Option, words: list[str]) -> str:
    """The words as YAML, texts in quotes and numbers plain, as people write them."""
    as_written = [
        word if option.kind in ("int", "float", "bool") else quoted(word) for word in words
    ]
    return f"[{', '.join(as_written)}]" if option.is_list else as_written[0]


PER_TEST = 12


@pytest.mark.parametrize("first", range(0, len(TABLE), PER_TEST))
@settings(max_examples=3, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_every_option_gives_what_its_flag_gives(first: int, data: st.DataObject) -> None:
    """All options of the table: the YAML value is what argparse makes of the same words."""
    for option in list(TABLE.values())[first : first + PER_TEST]:
        if option.type == "bool":
            continue  # argparse's bool("false") is True; role files know better, tested below
        words = data.draw(words_of(option))
        got = value_of(option.name, yaml_of(option, words))
        wanted = argparse_value(option, words)
        if option.kind == "cuda_graph_scope":
            got = [getattr(item, "name", item) for item in got]
        assert same_value(got, wanted), (option.name, words, got, wanted)


@given(
    option=st.sampled_from([option for option in TABLE.values() if not option.is_list]),
    data=st.data(),
)
@MANY
def test_quotes_change_nothing_but_null(option: Option, data: st.DataObject) -> None:
    """`"8"` is 8 for a whole number: quotes only matter where the plain text would be null."""
    [word] = data.draw(words_of(option))
    assert value_of(option.name, quoted(word)) == value_of(option.name, yaml_of(option, [word]))


@given(
    option=st.sampled_from([option for option in TABLE.values() if option.name in BASE]),
    data=st.data(),
)
@MANY
def test_the_base_decides_the_class_of_the_value(option: Option, data: st.DataObject) -> None:
    """With the job's values as the base, dtypes stay dtypes, enums stay enums; all else is as without."""
    words = data.draw(words_of(option))
    base = BASE[option.name]
    got = value_of(option.name, yaml_of(option, words), base=base)
    if is_dtype(base):
        assert is_dtype(got)
    elif type(base).__name__ in ("AttnBackend", "Signals", "_AttnBackend"):
        assert type(got) is type(base)


@pytest.mark.parametrize(
    "text", ["true", "True", "TRUE", "yes", "Yes", "on", "ON", '"true"', "'yes'"]
)
def test_words_that_switch_on(text: str) -> None:
    """true, yes and on in any case, in quotes or not."""
    assert value_of("bf16", text) is True


@pytest.mark.parametrize(
    "text", ["false", "False", "no", "NO", "off", '"false"', "'0ff'".replace("0", "o")]
)
def test_words_that_switch_off(text: str) -> None:
    """false, no and off; the text "false" is not true because it is a text."""
    assert value_of("bf16", text) is False


@pytest.mark.parametrize(
    "text", ["0", "1", '"0"', "y", "n", "maybe", "[true]", "{a: true}", "1.0", '""', "null"]
)
def test_what_is_no_switch(text: str) -> None:
    """Numbers and other words are refused: nobody has to know what 0 means."""
    with pytest.raises(Mistake):
        value_of("bf16", text, base=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ('"8"', 8),
        ("1e3", 1000),
        ("10.0", 10),
        ("-2", -2),
        ("0x10", 16),
        ("0o17", 15),
        ("010", 10),
        ("1_000", 1000),
    ],
)
def test_whole_numbers(text: str, value: int) -> None:
    """Whole numbers in any notation, of type int."""
    got = value_of("lr_warmup_iters", text)
    assert (got, type(got)) == (value, int)


@pytest.mark.parametrize(
    "text",
    [
        "2.5",
        "true",
        "abc",
        "1e-3",
        ".inf",
        ".nan",
        "[1]",
        "12:30",
        "1e999999999",
        "9" * 5000,
        "0xz",
        '""',
    ],
)
def test_what_is_no_whole_number(text: str) -> None:
    """Fractions, bools, infinities, lists, and numbers too large to write out, quickly."""
    with pytest.raises(Mistake):
        value_of("lr_warmup_iters", text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("1e-5", 1e-5),
        ('"3e0"', 3.0),
        (".5", 0.5),
        (".inf", math.inf),
        ("-inf", -math.inf),
        ("0x10", 16.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    """Any number, of type float."""
    got = value_of("lr", text)
    assert (got, type(got)) == (value, float)


@pytest.mark.parametrize(
    "text", [".nan", "nan", "true", "abc", "[1e-5]", "null", "1e400", "0x" + "f" * 400, '""']
)
def test_what_is_no_number(text: str) -> None:
    """NaN, bools, texts, lists, null, and what a float cannot hold."""
    with pytest.raises(Mistake):
        value_of("lr", text, base=1e-6)


@pytest.mark.parametrize(
    "text", ["2024-01-02", "12:30", "no", "010", "1e3", "true", "0x1F", "~/x", "1_0", ".nan", "a b"]
)
def test_texts_are_as_written(text: str) -> None:
    """A date, a time, `no` and `010` stay what was written."""
    assert value_of("save", text) == text


@pytest.mark.parametrize("text", ["[a]", "{a: b}"])
def test_lists_and_mappings_are_no_texts(text: str) -> None:
    """A text option refuses what is no scalar."""
    with pytest.raises(Mistake, match="takes a text"):
        value_of("save", text)


@pytest.mark.parametrize("text", ["null", "~", "Null", "NULL", ""])
def test_null_unsets_where_unset_is_the_default(text: str) -> None:
    """All of YAML 1.2's nulls, and an empty value."""
    assert value_of("save", text) is None


def test_null_is_refused_where_an_option_has_a_default() -> None:
    """lr is never unset; a value that happens to be None now may stay so."""
    with pytest.raises(Mistake, match="cannot be unset"):
        value_of("lr", "null", base=1e-6)
    assert value_of("lr", "null", base=None) is None


def test_a_quoted_null_is_a_text() -> None:
    """`"null"` is a name like any other."""
    assert value_of("save", '"null"') == "null"


def test_a_scalar_is_a_list_of_one() -> None:
    """One name for a list option is a list with that name, not its letters."""
    assert value_of("freeze_params_name_list", "embedding") == ["embedding"]
    assert value_of("iterations_to_skip", "3") == [3]


def test_a_bad_item_is_named() -> None:
    """The message says which item of the list is wrong."""
    with pytest.raises(Mistake, match="item 2: `iterations_to_skip` takes a whole number, not 'x'"):
        value_of("iterations_to_skip", "[1, x]")


@pytest.mark.parametrize("text", ["[[1]]", "[null]", "{a: 1}", "[{a: 1}]"])
def test_a_list_holds_scalars(text: str) -> None:
    """No lists in lists, no nulls, no mappings."""
    with pytest.raises(Mistake):
        value_of("iterations_to_skip", text)


def test_a_fixed_number_of_values_is_kept_to() -> None:
    """rampup_batch_size takes three."""
    assert value_of("rampup_batch_size", "[1, 2, 3]") == [1, 2, 3]
    with pytest.raises(Mistake, match="exactly 3"):
        value_of("rampup_batch_size", "[1, 2]")


def test_an_empty_list_needs_an_option_that_takes_none() -> None:
    """`nargs="*"` or a default of [] takes no value; `nargs="+"` does not."""
    assert value_of("freeze_params_name_list", "[]") == []
    assert value_of("iterations_to_skip", "[]") == []
    with pytest.raises(Mistake, match="at least one"):
        value_of("recompute_modules", "[]")


def test_a_list_of_one_is_unwrapped_where_validation_unwraps_it() -> None:
    """Megatron's validation makes moe_aux_loss_coeff [0.1] into 0.1; two values stay a list."""
    assert value_of("moe_aux_loss_coeff", "0.1", base=0.0) == 0.1
    assert value_of("moe_aux_loss_coeff", "[0.1, 0.2]", base=0.0) == [0.1, 0.2]
    assert value_of("moe_aux_loss_coeff", "0.3", base=[0.1, 0.2]) == 0.3
    assert value_of("moe_router_load_balancing_type", "sinkhorn", base="aux_loss") == "sinkhorn"


def test_choices_hold_for_each_item() -> None:
    """A list option with choices checks every item."""
    with pytest.raises(Mistake, match="item 2"):
        value_of("profile_target", "[train_actor, train_critic]")


def test_choices_of_numbers_are_numbers() -> None:
    """timing_log_level takes 0, 1 and 2."""
    assert value_of("timing_log_level", "2") == 2
    with pytest.raises(Mistake) as caught:
        value_of("timing_log_level", "3")
    assert "0, 1, 2" in caught.value.fix or caught.value.fix.count(",") == 2


def test_json_takes_a_mapping_or_its_text() -> None:
    """Both give the same, with JSON's types."""
    wanted = {"a": 1, "b": "no", "c": None, "d": [1.5]}
    assert value_of("train_env_vars", '{a: 1, b: "no", c: null, d: [1.5]}') == wanted
    assert value_of("train_env_vars", f"'{json.dumps(wanted)}'") == wanted


@pytest.mark.parametrize("text", ["abc", "[1]", '"[1]"', "1", "'{\"a\": '", '"' + "[" * 5000 + '"'])
def test_what_is_no_json_mapping(text: str) -> None:
    """Other JSON, broken JSON and JSON nested without end are refused."""
    with pytest.raises(Mistake):
        value_of("train_env_vars", text)


@pytest.mark.parametrize("text", ["fp32", "float32", "torch.float32", "float"])
def test_a_dtype_before_validation_is_its_choice(text: str) -> None:
    """Where the base still holds the option's text, the result is one of the option's texts."""
    assert value_of("main_grads_dtype", text, base="fp32") == "fp32"


def test_a_layer_pattern_may_be_a_list() -> None:
    """What the pattern stands for, written out."""
    assert value_of("moe_layer_freq", "[0, 1, 1]") == [0, 1, 1]
    assert value_of("moe_layer_freq", "([0]+[1]*2)") == [0, 1, 1]


@pytest.mark.parametrize(
    "text", ["x", "[a]", "'[1]*'", "\"__import__('os')[0]\"", "'[1]*9999999999'", "{}"]
)
def test_what_is_no_layer_pattern(text: str) -> None:
    """No code is run and no memory used up."""
    with pytest.raises(Mistake):
        value_of("moe_layer_freq", text)


def test_a_tuple_may_be_a_list() -> None:
    """window_size is a tuple of whole numbers however it is written."""
    assert value_of("window_size", "[128, 0]") == value_of("window_size", '"(128,0)"') == (128, 0)
    with pytest.raises(Mistake):
        value_of("window_size", "a,b")


def test_an_option_of_type_bool_means_what_it_says() -> None:
    """argparse makes True of `--onnx-safe false`; a role file does not."""
    assert value_of("onnx_safe", "false") is False


def test_a_converter_of_the_parser_is_asked() -> None:
    """An option with a converter of its own gets what that makes of the text; what it raises is a mistake."""
    option = Option(
        name="size",
        flags=("--size",),
        type="size",
        convert=lambda text: int(text.removesuffix("k")) * 1000,
    )
    assert value_of("size", "3k", option) == 3000
    with pytest.raises(Mistake, match="what `<lambda>` accepts"):
        value_of("size", "big", option)
