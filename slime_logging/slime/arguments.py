"""Stands in for `parse_megatron_role_args` of `slime.utils.arguments`."""

from slime_logging.roles.roles import parse_megatron_role_args

__all__ = ["parse_megatron_role_args"]
