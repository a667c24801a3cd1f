"""Stands in for `slime.observability.wandb_utils` and, before it, `slime.utils.wandb_utils`, its
private helpers included.

The helpers give what slime's give, with two differences that are the point of this package: values
are redacted, and the un-prefixed keys have the actor's overrides applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slime_logging.layout.scope import flatten, primary_scopes, run_roles
from slime_logging.roles.roles import parse_megatron_role_args
from slime_logging.session.description import redactor_of
from slime_logging.settings.settings import Settings
from slime_logging.tracking import init_wandb_primary, init_wandb_secondary
from slime_logging.values.json_value import Json
from slime_logging.values.serialize import arguments_to_json

__all__ = ["init_wandb_primary", "init_wandb_secondary"]


def _compute_config_for_logging(args: Any) -> dict[str, Json]:
    settings = Settings.of(args)
    scopes = primary_scopes(args, redactor_of(args, settings), settings.logged_environment())
    return dict(flatten(scopes, run_roles(args)).values)


def _compute_secondary_config_for_logging(args: Any, role: str | None = None) -> dict[str, Json]:
    config = _args_to_config_dict(args)
    return _prefix_config_keys(config, "critic") if role == "critic" else config


def _get_role_args_for_logging(args: Any, role: str) -> Any:
    path = getattr(args, "megatron_config_path", None)
    return args if path is None else parse_megatron_role_args(args, path, role)


def _args_to_config_dict(args: Any) -> dict[str, Json]:
    return redactor_of(args, Settings.of(args)).config(arguments_to_json(vars(args)))


def _prefix_config_keys(config: Mapping[str, Json], prefix: str) -> dict[str, Json]:
    return {f"{prefix}/{key}": value for key, value in config.items()}
