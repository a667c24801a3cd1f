"""A nested configuration as flat keys with dots: `{"optimizer": {"lr": 1e-6}}` is `optimizer.lr`.

Policy: only mappings have keys, so a list stays one value, unless it holds mappings: then its items
are numbered. Empty mappings stay values. Two values that would get one key both stay: the later
one's key ends in `~2`, `~3` and so on. Redaction comes first, where names still stand around their
values.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping

from slime_logging.errors import SettingsError
from slime_logging.values.describe import is_named
from slime_logging.values.distinct import by_distinct_name
from slime_logging.values.json_value import Json
from slime_logging.values.serialize import arguments_to_json, to_json


def config_json(config: object) -> dict[str, Json]:
    """A job's configuration, of whatever kind, as nested plain JSON with text keys; not changed.

    Args:
        config: a mapping, a dataclass, an OmegaConf, pydantic or attrs object, a Namespace, or any
            object with attributes; None is an empty one.

    Raises:
        SettingsError: it has no names, such as a list or a number.
    """
    if config is None:
        return {}
    if isinstance(config, (Namespace, Mapping)):
        return arguments_to_json(config)
    json = to_json(config)
    if isinstance(json, dict):
        return json
    attributes = getattr(config, "__dict__", None)
    if is_named(config) or not isinstance(attributes, dict):
        raise SettingsError(
            f"config is a {type(config).__name__}: give a mapping, a dataclass, a Namespace, an"
            " OmegaConf, pydantic or attrs object, whose names become the keys."
        )
    return arguments_to_json(attributes)


def leaves(values: Mapping[str, Json]) -> dict[str, Json]:
    """The values of nested mappings by their dotted keys."""
    return by_distinct_name(_walk("", values))


def _walk(prefix: str, values: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, list) and any(isinstance(item, dict) and item for item in value):
            value = {str(number): item for number, item in enumerate(value)}
        if isinstance(value, dict) and value:
            yield from _walk(f"{name}.", value)
        else:
            yield name, value
