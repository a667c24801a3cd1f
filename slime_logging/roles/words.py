"""An override as the words of a command line.

Policy: the words are those that a person would type for the value; what argparse takes only in
another notation (`1e3` as a whole number) is written in its own. What no word can say is told apart
from what is said by leaving the flag out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from slime_logging.roles.dtypes import same_dtype
from slime_logging.roles.equality import same
from slime_logging.roles.megatron.option import Option
from slime_logging.roles.nodes import Items, Node, Scalar, core_value
from slime_logging.roles.said import float_text, whole_number_of


def words_of(option: Option, node: Node, value: object) -> list[str] | None:
    """The words for a value: none where leaving the flag out says it, None where nothing does.

    Args:
        option: What the override is for.
        node: The value as written.
        value: The value as `coerce` understands it.
    """
    if option.says:
        if same(value, option.default):
            return []
        return next(([flag] for flag, says in option.says.items() if same(says, value)), None)
    if isinstance(node, Scalar) and node.is_null:
        return [] if option.default is None or option.nargs == "?" else None
    if option.action == "append_const" or not option.flags:
        return None
    flag = next((flag for flag in option.flags if flag.startswith("--")), option.flags[0])
    if option.action == "count":
        return [flag] * value if isinstance(value, int) else None
    nodes = node.nodes if isinstance(node, Items) and option.is_list else (node,)
    texts = [_text(option, item) for item in nodes]
    if option.action in ("append", "extend") or len(texts) == 1:
        return [f"{flag}={text}" for text in texts]
    if not texts and option.nargs != "*":
        return [] if option.default == [] else None
    return [flag, *texts]


def without(words: Sequence[str], options: Sequence[Option]) -> list[str]:
    """The words of a command line without these options."""
    by_flag = {flag: option for option in options for flag in option.flags}
    return list(_kept(words, by_flag))


def _kept(words: Sequence[str], by_flag: Mapping[str, Option]) -> Iterator[str]:
    number = 0
    while number < len(words):
        word = words[number]
        if word == "--":
            yield from words[number:]
            return
        number += 1
        flag, has_value, _ = word.partition("=")
        option = by_flag.get(flag)
        if option is None:
            yield word
        elif not has_value:
            number += _num_values(option, words[number:])


def _num_values(option: Option, words: Sequence[str]) -> int:
    if option.says or option.action in ("count", "append_const"):
        return 0
    values = next((n for n, word in enumerate(words) if _is_flag(word)), len(words))
    if option.nargs is None or option.nargs == "?":
        return min(1, values)
    return min(option.nargs, values) if isinstance(option.nargs, int) else values


def _is_flag(word: str) -> bool:
    is_number = re.fullmatch(r"-\d+|-\d*\.\d+", word)
    return word.startswith("-") and len(word) > 1 and " " not in word and not is_number


def _text(option: Option, node: Node) -> str:
    if not isinstance(node, Scalar):
        if isinstance(node, Items) and option.kind in ("pattern", "int_tuple"):
            items = ",".join(_text(option, item) for item in node.nodes)
            return f"[{items}]" if option.kind == "pattern" else items
        return json.dumps(core_value(node))
    text = node.text
    if option.kind in ("int", "pattern", "int_tuple"):
        number = whole_number_of(text)
        return text if number is None else str(number)
    if option.kind == "float":
        return float_text(text)
    if option.kind == "enum":
        return text.rpartition(".")[2]
    if option.kind == "bool":  # argparse's `type=bool` takes any text but the empty one as true
        return "true" if text.strip().lower() in ("true", "yes", "on") else ""
    if option.choices and text not in option.choices and option.name.endswith("_dtype"):
        alike = (str(choice) for choice in option.choices if same_dtype(str(choice), text))
        return next(alike, text)
    return text
