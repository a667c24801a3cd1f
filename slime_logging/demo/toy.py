"""What the toy job sets in the full-size namespace, so that every value it shows is the one that it
uses.

Policy: set before `init_tracking`, in the driver, once. What is not known there (the number of
rollouts, the size of the vocabulary) stays None, and is told by `log_config` when the process that
knows it does.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch

VOCAB_SIZE = 128
"""Of the toy tokenizer: the roles and the rollout process know it, the driver does not."""

NUM_PROMPT_TOKENS = 4

_MODEL: dict[str, Any] = {
    "num_layers": 2,
    "encoder_num_layers": 2,
    "hidden_size": 64,
    "ffn_hidden_size": 256,
    "num_attention_heads": 4,
    "kv_channels": 16,
    "vocab_size": None,
    "padded_vocab_size": None,
    "make_vocab_size_divisible_by": 64,
    "seq_length": 32,
    "encoder_seq_length": 32,
    "max_position_embeddings": 32,
    "transformer_impl": "local",
    "position_embedding_type": "learned_absolute",
    "tokenizer_model": None,
}

_CPU: dict[str, Any] = {
    "bf16": False,
    "params_dtype": torch.float32,
    "distributed_backend": "gloo",
    "use_cpu_initialization": True,
    "use_distributed_optimizer": False,
    "bias_gelu_fusion": False,
    "bias_dropout_fusion": False,
    "masked_softmax_fusion": False,
    "variable_seq_lengths": False,
    "offload_train": False,
    "num_gpus_per_node": 0,
    "rollout_num_gpus": 0,
}

_TRAINING: dict[str, Any] = {
    "adam_beta2": 0.98,
    "lr": 1e-3,
    "lr_decay_iters": 80,
    "weight_decay": 0.0,
    "start_weight_decay": 0.0,
    "end_weight_decay": 0.0,
    "global_batch_size": 32,
    "micro_batch_size": 16,
    "rollout_batch_size": 8,
    "over_sampling_batch_size": 8,
    "n_samples_per_prompt": 8,
    "num_steps_per_rollout": 2,
    "num_rollout": None,
    "num_epoch": 1,
    "start_rollout_id": None,
    "rollout_max_prompt_len": NUM_PROMPT_TOKENS,
    "rollout_max_response_len": 32 - NUM_PROMPT_TOKENS,
    "eval_interval": 5,
    "eval_temperature": 0.7,
    "eval_max_response_len": 32 - NUM_PROMPT_TOKENS,
    "rollout_task_type": "toy",
    "debug_train_only": False,
    "skip_eval_before_train": True,
}

_PLACES: dict[str, Any] = {
    "hf_checkpoint": None,
    "load": None,
    "ref_load": None,
    "save": None,
    "pretrained_checkpoint": None,
    "save_interval": None,
    "data_source_path": "slime_logging.demo.rollout.Prompts",
    "rollout_function_path": "slime_logging.demo.engine.Engine.write",
    "eval_function_path": "slime_logging.demo.engine.Engine.write",
    "custom_rm_path": "slime_logging.demo.ppo.reward",
}


def apply_toy_settings(args: Namespace, tensor_parallel_size: int, seed: int) -> None:
    """Change `args` in place into those of the toy job with `tensor_parallel_size` ranks a role.

    `seed` is the seed of the weights and, plus one, of the rollouts.
    """
    for values in (_MODEL, _CPU, _TRAINING, _PLACES):
        for name, value in values.items():
            setattr(args, name, value)
    args.tensor_model_parallel_size = tensor_parallel_size
    args.transformer_pipeline_model_parallel_size = 1
    args.expert_tensor_parallel_size = tensor_parallel_size
    args.world_size = tensor_parallel_size
    args.actor_num_gpus_per_node = tensor_parallel_size
    if args.use_critic:
        args.num_critic_only_steps = 1
        args.critic_num_gpus_per_node = tensor_parallel_size
    args.seed = seed
    args.rollout_seed = seed + 1


def padded(vocab_size: int, args: Namespace) -> int:
    """Return the vocabulary size rounded up to what the tensor parallel ranks can share, by
    Megatron's rule.
    """
    multiple: int = args.make_vocab_size_divisible_by * args.tensor_model_parallel_size
    return -(-vocab_size // multiple) * multiple
