"""One tracked run for a whole RL job on Megatron."""

from slime_logging._version import __version__

__all__ = ["__version__"]
