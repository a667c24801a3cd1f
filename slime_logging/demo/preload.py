"""What the server that forks the job's processes imports once, so that none of them has to: torch
and megatron-core.

Policy: importing this pins torch to one thread, because a fork follows, and quiets what Megatron
says at import about GPU libraries that a CPU has no use for.
"""

from __future__ import annotations

import logging
import warnings

from slime_logging.demo import cpu
from slime_logging.demo.lean import lean_import

cpu.pin_to_one_thread()
logging.getLogger("megatron").setLevel(logging.ERROR)
# Megatron and the torch it was written for warn about GPU libraries, environment variables and
# renamed functions.
warnings.filterwarnings("ignore", module=r"megatron\.|torch\.distributed")

with lean_import():
    import megatron.core.distributed
    import megatron.core.models.gpt
    import megatron.core.optimizer
    import megatron.core.pipeline_parallel  # noqa: F401
