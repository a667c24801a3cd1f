"""Names that must not become one: a later one ends in `~2`, `~3` and so on."""

from __future__ import annotations

from collections.abc import Container, Iterable

from slime_logging.values.json_value import Json


def distinct(name: str, taken: Container[str]) -> str:
    """The name itself, or the first `<name>~<number>` that is not taken."""
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}~{number}", number + 1
    return unique


def by_distinct_name(items: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """All values, each under a name of its own."""
    named: dict[str, Json] = {}
    for name, value in items:
        named[distinct(name, named)] = value
    return named
