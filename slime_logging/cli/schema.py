"""`slime-logging schema > roles.schema.json`: a JSON Schema of role files, for editors.

Policy: made from the tables, so it says what they say: each option with its type, choices and
default, and which are refused, and why. What needs the job (topology, what follows from what) or
cannot be said in a schema (NaN, a name twice) is left to `slime-logging check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from slime_logging.cli.options import RolesOption

if TYPE_CHECKING:
    from slime_logging.roles.megatron.option import Option

Schema = dict[str, Any]

SWITCH = {"type": "string", "pattern": r"^(?i:true|yes|on|false|no|off)$"}
NUMERAL = r"^\s*[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
BASED = r"^0([xX][0-9a-fA-F]+|[oO][0-7]+)$"
WHOLE = {
    "anyOf": [
        {"type": "integer"},
        {"type": "string", "pattern": r"^\s*[-+]?\d[\d_]*(\.0*)?([eE]\+?\d+)?\s*$"},
        {"type": "string", "pattern": BASED},
    ]
}
NUMBER = {
    "anyOf": [
        {"type": "number"},
        {"type": "string", "pattern": NUMERAL},
        {"type": "string", "pattern": BASED},
        {"type": "string", "pattern": r"^[-+]?\.?[iI][nN][fF]$"},
    ]
}
TEXT = {"type": ["string", "number", "boolean"]}
BY_KIND: dict[str, Schema] = {
    "bool": {"anyOf": [{"type": "boolean"}, SWITCH]},
    "int": WHOLE,
    "float": NUMBER,
    "json": {"type": ["object", "string"]},
    "pattern": {"anyOf": [WHOLE, {"type": "string"}, {"type": "array", "items": WHOLE}]},
    "int_tuple": {"anyOf": [WHOLE, {"type": "string"}, {"type": "array", "items": WHOLE}]},
    "other": {},
    "const": {},
}
"""Kind of option -> what its value may look like; other kinds are texts."""


def schema(
    role: RolesOption = None,
) -> None:
    """Print a JSON Schema of role files, with which an editor completes and checks them."""
    import orjson

    from slime_logging.roles.roles import ROLES

    made = role_file_schema(tuple(dict.fromkeys((*ROLES, *(role or ())))))
    typer.echo(orjson.dumps(made, option=orjson.OPT_INDENT_2).decode())


def role_file_schema(roles: Sequence[str]) -> Schema:
    """The schema of a role file for these roles."""
    from slime_logging.roles.megatron import READ_FROM

    overrides = _overrides()
    once = [_at_most_once(role) for role in roles]
    written = {way: name for name in overrides for way in (name, name.replace("_", "-"))}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Role file",
        "description": f"What each role trains with. Options of {READ_FROM}.",
        "type": "object",
        "required": ["megatron"],
        "additionalProperties": False,
        "properties": {
            "megatron": {"type": "array", "items": {"$ref": "#/$defs/entry"}, "allOf": once}
        },
        "$defs": {
            "entry": _entry(roles),
            "overrides": {
                "type": ["object", "null"],
                "additionalProperties": False,
                "properties": {
                    way: {"$ref": f"#/$defs/options/{name}"} for way, name in written.items()
                },
            },
            "options": overrides,
        },
    }


def _at_most_once(role: str) -> Schema:
    """Of a role there is one entry."""
    of_role = {"properties": {"role": {"const": role}}, "required": ["role"]}
    return {"contains": of_role, "minContains": 0, "maxContains": 1}


def _entry(roles: Sequence[str]) -> Schema:
    return {
        "type": "object",
        "required": ["role"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": ["string", "number", "boolean", "null"], "description": "A label."},
            "role": {"enum": list(roles)},
            "overrides": {"$ref": "#/$defs/overrides"},
            "args": {"$ref": "#/$defs/overrides", "deprecated": True},
        },
        "not": {"required": ["overrides", "args"]},
    }


def _overrides() -> dict[str, Schema]:
    from slime_logging.roles.flags import VALIDATED
    from slime_logging.roles.megatron.derived import FOLLOWING, IMPLIED
    from slime_logging.roles.megatron.options import OptionTable
    from slime_logging.roles.rules import IGNORED, REJECTED, REJECTED_PREFIXES

    table = OptionTable.shipped()
    computed = {
        *(rule.target for rule in FOLLOWING),
        *(rule.target for rule in IMPLIED),
        *VALIDATED,
    }
    found: dict[str, Schema] = {
        **{name: {"description": "Computed by validation."} for name in computed - set(table)},
        **{name: _option(option) for name, option in table.items()},
        **{name: _refused(reason) for name, reason in REJECTED.items()},
        **{
            name: {"deprecated": True, "description": f"Ignored: {reason}."}
            for name, reason in IGNORED.items()
        },
    }
    for prefix, reason in REJECTED_PREFIXES.items():
        found.update({name: _refused(reason) for name in table if name.startswith(prefix)})
    return dict(sorted(found.items()))


def _refused(reason: str) -> Schema:
    return {"not": {}, "description": f"Refused: {reason}."}


def _option(option: Option) -> Schema:
    from slime_logging.roles.rules import FORCED, TOPOLOGY

    value = _values(option)
    if option.is_list:
        items: Schema = {"type": "array", "items": value}
        if isinstance(option.nargs, int):
            items |= {"minItems": option.nargs, "maxItems": option.nargs}
        value = {"anyOf": [value, items]}
    if option.is_nullable:
        value = {"anyOf": [{"type": "null"}, value]}
    told = f"Flag {', '.join(option.flags)}."
    if option.name in TOPOLOGY:
        told += " Refused, unless it repeats the command line's value: one for all roles."
    for role, forced in FORCED.items():
        if option.name in forced:
            told += f" Always the same for the {role}; what is written here is not used."
    return {**value, "default": option.default, "description": told}


def _values(option: Option) -> Schema:
    from slime_logging.roles.dtypes import CANONICAL, canonical

    if option.choices is None or option.kind in ("bool", "const"):
        return BY_KIND.get(option.kind, TEXT)
    choices = [str(choice) if option.kind == "enum" else choice for choice in option.choices]
    if option.name.endswith("_dtype"):
        meant = {canonical(str(choice)) for choice in choices}
        names = [*choices, *meant, *(name for name, long in CANONICAL.items() if long in meant)]
        choices = sorted({*names, *(f"torch.{name}" for name in meant)})
    texts = [choice for choice in choices if not isinstance(choice, str)]
    return {"enum": [*choices, *map(str, texts)]}
