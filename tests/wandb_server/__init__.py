"""A strict W&B server for the tests: real HTTP, for the real client, as it speaks since 0.31.

It is stricter than the service where strictness finds mistakes (an operation it does not know, a body that is not
JSON, a name that is too long are *problems*, which fail the test), and as unkind as the service has been seen to be
where the service was unkind: configuration that replaces, offsets that overwrite, early rows that vanish, line counts
that lag, refusals, hangs and cut connections. `python -m tests.wandb_server --dir D` runs it alone; `WandbServer`
runs it for a test.
"""

from tests.wandb_server.control import WandbServer

__all__ = ["WandbServer"]
