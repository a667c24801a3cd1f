"""What megatron-core needs to train on a CPU: four small patches, and gloo in place of NCCL.

Policy: nothing here changes a number that Megatron computes. Each patch only says "cpu" where
Megatron says "cuda", and each was found by taking it away (megatron-core 0.16.1, torch 2.13):
without it the line named beside it fails. The patches hold for the whole process, so only the
processes of the demo's roles apply them, never a process of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch


def pin_to_one_thread() -> None:
    """Let torch compute on one thread; call it before any fork.

    A child forked after OpenMP's pool has started waits for threads that it does not have. One
    thread is also the fastest for matrices of 64 columns, and leaves the other core to the other
    role.
    """
    torch.set_num_threads(1)


def patch_megatron() -> None:
    """Make megatron-core's forward, schedule and optimizer run on CPU tensors in this process."""
    from megatron.core.optimizer import optimizer
    from megatron.core.tensor_parallel import random

    # The forward and DDP ask which device to allocate on.
    torch.cuda.current_device = lambda: "cpu"
    # The schedule and the optimizer make scratch tensors with device="cuda".
    torch.tensor = _on_cpu(torch.tensor)
    torch.zeros = _on_cpu(torch.zeros)
    # Asserts the type torch.cuda.FloatTensor, and scales by a fused kernel.
    optimizer.clip_grad_by_total_norm_fp32 = _clip_by_total_norm
    # The default tracker forks the generator of a CUDA device; the inference one is public and does
    # nothing.
    random.initialize_rng_tracker(inference_rng_tracker=True)


def open_world(rendezvous: Path, rank: int, tensor_parallel_size: int, timeout_s: float) -> None:
    """Join the gloo world of one role: `tensor_parallel_size` ranks that meet at the file
    `rendezvous`.

    Raises:
        RuntimeError: the other ranks did not come within `timeout_s` seconds.
    """
    from datetime import timedelta

    from megatron.core import parallel_state

    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{rendezvous}",
        rank=rank,
        world_size=tensor_parallel_size,
        timeout=timedelta(seconds=timeout_s),
    )
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=tensor_parallel_size)


def close_world() -> None:
    """Leave the gloo world; does nothing where none is open."""
    if not torch.distributed.is_initialized():
        return
    from megatron.core import parallel_state

    parallel_state.destroy_model_parallel()
    torch.distributed.destroy_process_group()


def is_main_rank() -> bool:
    """Tell whether this rank logs for its role: the first of data and tensor parallel, on the last
    pipeline stage.
    """
    from megatron.core import parallel_state

    return bool(
        parallel_state.get_data_parallel_rank(with_context_parallel=True) == 0
        and parallel_state.get_tensor_model_parallel_rank() == 0
        and parallel_state.is_pipeline_last_stage()
    )


def _on_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
    def make_on_cpu(*values: Any, **options: Any) -> Any:
        if str(options.get("device", "")).startswith("cuda"):
            options["device"] = "cpu"
        return make(*values, **options)

    return make_on_cpu


def _clip_by_total_norm(
    parameters: Any, max_norm: float, total_norm: float, use_decoupled_grad: bool = False
) -> None:
    del use_decoupled_grad
    scale = max_norm / (total_norm + 1e-6)
    every: Iterable[Any] = [parameters] if isinstance(parameters, torch.Tensor) else parameters
    for parameter in every:
        if scale < 1.0 and parameter.grad is not None:
            parameter.grad.mul_(scale)
