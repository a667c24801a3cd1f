"""What each option of Megatron-LM and slime is: its flags, type, `nargs`, choices and default.

Policy: the facts come from the parser that the job uses where it is given
(`OptionTable.of_parser`), else from the table shipped as package data (`OptionTable.shipped`),
which was made by this same module from the real parsers. An option that neither knows is no mistake
by itself: the caller then goes by the current value.

The table is made again from any `argparse.ArgumentParser`, or from a function that returns or fills
one:

    python -m slime_logging.roles.megatron.options --from module:function --output options.json
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import functools
import importlib
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from slime_logging.roles.megatron.option import KINDS, Option, option_of


@dataclass(frozen=True, slots=True)
class OptionTable(Mapping[str, Option]):
    """Options by dest. The first of several actions with one dest gives the facts, as it gives
    argparse's default.
    """

    _entries: Mapping[str, Mapping[str, Any]]
    _live: Mapping[str, Option]

    @classmethod
    @functools.cache
    def shipped(cls) -> OptionTable:
        """The table in the package: Megatron-LM's and slime's options; read once a process."""
        text = (
            resources.files("slime_logging.roles.megatron")
            .joinpath("data/options.json")
            .read_bytes()
        )
        return cls(json.loads(text)["options"], {})

    @classmethod
    def of_parser(cls, parser: argparse.ArgumentParser) -> OptionTable:
        """The options of a live parser, converters included."""
        live: dict[str, Option] = {}
        for action in parser._actions:  # argparse has no public way to list them
            if action.dest in (argparse.SUPPRESS, "help") or isinstance(
                action, argparse._VersionAction
            ):
                continue
            option = option_of(action)
            first = live.get(action.dest)
            if first is not None:
                option = dataclasses.replace(
                    first,
                    flags=(*first.flags, *option.flags),
                    constants={**first.constants, **option.constants},
                )
            live[action.dest] = option
        for name, default in parser._defaults.items():
            if name in live:
                live[name] = dataclasses.replace(live[name], default=default)
        return cls({}, live)

    @classmethod
    def of_json(cls, text: str | bytes) -> OptionTable:
        """The table that `to_json` wrote."""
        return cls(json.loads(text)["options"], {})

    def to_json(self) -> str:
        """The table in the shipped format: JSON, one option a line, sorted; converters by name
        only.
        """
        lines = [
            f"{json.dumps(name)}: {json.dumps(_plain(self[name]), sort_keys=True)}"
            for name in sorted(self)
        ]
        return '{"options": {\n' + ",\n".join(lines) + "\n}}\n"

    def __getitem__(self, name: str) -> Option:
        option = self._live.get(name)
        if option is not None:
            return option
        entry = self._entries[name]
        choices = entry.get("choices")
        return Option(
            name=name,
            flags=tuple(entry.get("flags", ())),
            action=entry.get("action", "store"),
            type=entry.get("type"),
            nargs=entry.get("nargs"),
            choices=None if choices is None else tuple(choices),
            default=entry.get("default"),
        )

    def __iter__(self) -> Iterator[str]:
        yield from self._live
        yield from (name for name in self._entries if name not in self._live)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _fields(option: Option) -> dict[str, Any]:
    return {name: getattr(option, name) for name in Option.__dataclass_fields__}


def _plain(option: Option) -> dict[str, Any]:
    if option.kind == "enum" and KINDS.get(option.type or "") != "enum":
        option = dataclasses.replace(option, type="enum")
    kept = {
        name: _plain_value(value)
        for name, value in _fields(option).items()
        if name not in ("name", "convert", "constants")
    }
    return {
        name: value
        for name, value in kept.items()
        if value is not None and (name, value) != ("action", "store")
    }


def _plain_value(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain_value(item) for key, item in value.items()}
    return str(value)


def parser_from(source: str) -> argparse.ArgumentParser:
    """The parser that `module:name` is, returns, or fills when it is passed an empty one.

    Raises:
        ValueError: The source is not of the form `module:name`, or gives no parser.
    """
    module_name, colon, name = source.partition(":")
    if not colon or not name:
        raise ValueError(f"{source!r} is not of the form module:function")
    found: Any = getattr(importlib.import_module(module_name), name)
    if callable(found):
        needed = [p for p in inspect.signature(found).parameters.values() if p.default is p.empty]
        fresh = argparse.ArgumentParser(allow_abbrev=False)
        found = (found(fresh) or fresh) if needed else found()
    if not isinstance(found, argparse.ArgumentParser):
        raise ValueError(f"{source!r} gives {type(found).__name__}, not an argparse.ArgumentParser")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the option table of a parser; the command of the module's docstring."""
    own = argparse.ArgumentParser(
        prog="python -m slime_logging.roles.megatron.options", description=main.__doc__
    )
    own.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="MODULE:FUNCTION",
        help="where the parser is",
    )
    own.add_argument("--output", type=Path, help="file to write (default: standard output)")
    asked = own.parse_args(arguments)
    text = OptionTable.of_parser(parser_from(asked.source)).to_json()
    if asked.output is None:
        sys.stdout.write(text)
    else:
        asked.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
