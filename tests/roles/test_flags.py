"""Arguments from flags alone, as `slime-logging check` makes them."""

from __future__ import annotations

import json
import signal

import pytest
import torch

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.flags import arguments_of_flags, arguments_of_json

FLAGS = [
    "--advantage-estimator",
    "ppo",
    "--num-layers",
    "2",
    "--hidden-size",
    "64",
    "--num-attention-heads",
    "4",
    "--seq-length",
    "32",
    "--lr",
    "1e-6",
    "--max-position-embeddings",
    "32",
    "--tensor-model-parallel-size",
    "2",
    "--actor-num-gpus-per-node",
    "2",
    "--weight-decay",
    "0.1",
    "--micro-batch-size",
    "8",
    "--vocab-size",
    "128",
    "--moe-layer-freq",
    "([1]*2)",
]


def test_flags_give_the_names_of_a_validated_job() -> None:
    """All 873 names and the router's are there, and none that validation deletes."""
    args, unknown = arguments_of_flags(FLAGS)
    of_the_router = {name for name in vars(args) if name.startswith("router_")}
    of_the_router |= {"worker_urls", "prefill_num_servers"}
    assert set(vars(args)) - of_the_router == set(vars(ppo_namespace()))
    assert unknown == []


def test_flags_give_the_values_of_a_validated_job() -> None:
    """What is derived from the flags is what Megatron's and slime's validation derived for the same job."""
    args, job = arguments_of_flags(FLAGS)[0], ppo_namespace()
    names = [
        "world_size",
        "data_parallel_size",
        "expert_tensor_parallel_size",
        "start_weight_decay",
        "eps_clip_high",
    ]
    names += [
        "ffn_hidden_size",
        "kv_channels",
        "padded_vocab_size",
        "params_dtype",
        "bf16",
        "use_critic",
        "exit_signal",
    ]
    names += [
        "accumulate_allreduce_grads_in_fp32",
        "encoder_num_layers",
        "disable_param_buffers_cpu_backup",
    ]
    assert {name: getattr(args, name) for name in names if name != "exit_signal"} == {
        name: getattr(job, name) for name in names if name != "exit_signal"
    }


def test_unknown_flags_are_given_back() -> None:
    """A job's own options and the rollout engine's are not looked at."""
    assert arguments_of_flags(["--sglang-mem-fraction", "0.8"])[1] == [
        "--sglang-mem-fraction",
        "0.8",
    ]


def test_a_wrong_flag_is_argparses_error() -> None:
    """The message of the real command line, as an exception."""
    with pytest.raises(ValueError, match="argument --lr: invalid float value: 'x'"):
        arguments_of_flags(["--lr", "x"])


def test_json_gives_the_arguments_with_their_types() -> None:
    """dtypes and signals come back from the texts that `default=str` makes of them."""
    text = json.dumps(
        {"lr": 1.0, "params_dtype": torch.bfloat16, "exit_signal": str(signal.SIGTERM)}, default=str
    )
    args = arguments_of_json(text.encode())
    assert (args.lr, args.params_dtype) == (1.0, torch.bfloat16)
    with pytest.raises(ValueError, match="mapping"):
        arguments_of_json(b"[]")
