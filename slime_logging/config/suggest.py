"""The argument that a wrong key was meant to be.

Policy: names that users bring from other trainers are looked up in `SYNONYMS` (the first candidate that the job has
wins); anything else is compared with the job's own arguments, by letters and by words. Nothing is ever renamed quietly:
a suggestion is only part of an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

MIN_SCORE = 0.6
"""Below it a name is no nearer than chance: `difflib`'s own default cutoff."""

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("lr",),
    "actor_learning_rate": ("lr",),
    "critic_learning_rate": ("lr",),
    "policy_lr": ("lr",),
    "value_lr": ("lr",),
    "critic_lr": ("lr",),
    "actor_lr": ("lr",),
    "max_lr": ("lr",),
    "lr_min": ("min_lr",),
    "min_learning_rate": ("min_lr",),
    "eta_min": ("min_lr",),
    "max_grad_norm": ("clip_grad",),
    "max_norm": ("clip_grad",),
    "grad_clip": ("clip_grad",),
    "gradient_clipping": ("clip_grad",),
    "gradient_clip_val": ("clip_grad",),
    "clip_grad_norm": ("clip_grad",),
    "grad_norm_clip": ("clip_grad",),
    "tp": ("tensor_model_parallel_size",),
    "tp_size": ("tensor_model_parallel_size",),
    "tensor_parallel_size": ("tensor_model_parallel_size",),
    "pp": ("pipeline_model_parallel_size",),
    "pp_size": ("pipeline_model_parallel_size",),
    "pipeline_parallel_size": ("pipeline_model_parallel_size",),
    "cp": ("context_parallel_size",),
    "cp_size": ("context_parallel_size",),
    "sp_size": ("context_parallel_size",),
    "ulysses_sequence_parallel_size": ("context_parallel_size",),
    "ring_attn_size": ("context_parallel_size",),
    "ep": ("expert_model_parallel_size",),
    "ep_size": ("expert_model_parallel_size",),
    "expert_parallel_size": ("expert_model_parallel_size",),
    "etp_size": ("expert_tensor_parallel_size",),
    "vpp_size": ("virtual_pipeline_model_parallel_size",),
    "wd": ("weight_decay",),
    "l2": ("weight_decay",),
    "weight_decay_rate": ("weight_decay",),
    "beta1": ("adam_beta1",),
    "beta2": ("adam_beta2",),
    "adam_betas": ("adam_beta1", "adam_beta2"),
    "betas": ("adam_beta1", "adam_beta2"),
    "eps": ("adam_eps",),
    "epsilon": ("adam_eps",),
    "adam_epsilon": ("adam_eps",),
    "momentum": ("sgd_momentum",),
    "warmup_steps": ("lr_warmup_iters",),
    "lr_warmup_steps": ("lr_warmup_iters",),
    "num_warmup_steps": ("lr_warmup_iters",),
    "warmup_iters": ("lr_warmup_iters",),
    "warmup_ratio": ("lr_warmup_fraction",),
    "lr_warmup_ratio": ("lr_warmup_fraction",),
    "lr_warmup_steps_ratio": ("lr_warmup_fraction",),
    "warmup_fraction": ("lr_warmup_fraction",),
    "warmup_init_lr": ("lr_warmup_init",),
    "init_lr": ("lr_warmup_init",),
    "scheduler": ("lr_decay_style",),
    "lr_scheduler": ("lr_decay_style",),
    "lr_scheduler_type": ("lr_decay_style",),
    "warmup_style": ("lr_decay_style",),
    "lr_schedule": ("lr_decay_style",),
    "decay_steps": ("lr_decay_iters",),
    "lr_decay_steps": ("lr_decay_iters",),
    "total_training_steps": ("lr_decay_iters",),
    "optim": ("optimizer",),
    "optimizer_type": ("optimizer",),
    "cliprange": ("eps_clip",),
    "clip_range": ("eps_clip",),
    "clip_ratio": ("eps_clip",),
    "clip_ratio_low": ("eps_clip",),
    "ratio_clip_min": ("eps_clip",),
    "clip_eps": ("eps_clip",),
    "ppo_clip": ("eps_clip",),
    "clip_epsilon": ("eps_clip",),
    "eps_clip_low": ("eps_clip",),
    "clip_ratio_high": ("eps_clip_high",),
    "ratio_clip_max": ("eps_clip_high",),
    "epsilon_high": ("eps_clip_high",),
    "eps_clip_low_high": ("eps_clip_high",),
    "clip_ratio_c": ("eps_clip_c",),
    "dual_clip": ("eps_clip_c",),
    "value_clip_range": ("value_clip",),
    "cliprange_value": ("value_clip",),
    "value_clip_eps": ("value_clip",),
    "vf_clip": ("value_clip",),
    "kl": ("kl_coef",),
    "init_kl_coef": ("kl_coef",),
    "kl_penalty_coef": ("kl_coef",),
    "kl_ctrl": ("kl_coef",),
    "kl_beta": ("kl_loss_coef",),
    "beta": ("kl_loss_coef",),
    "reference_policy_kl_penalty": ("kl_loss_coef",),
    "kl_estimator": ("kl_loss_type",),
    "kl_penalty": ("kl_loss_type",),
    "entropy_coeff": ("entropy_coef",),
    "ent_coef": ("entropy_coef",),
    "entropy_bonus": ("entropy_coef",),
    "entropy_loss_coef": ("entropy_coef",),
    "gae_lambda": ("lambd",),
    "lam": ("lambd",),
    "lambda": ("lambd",),
    "gae_gamma": ("gamma",),
    "discount": ("gamma",),
    "discount_factor": ("gamma",),
    "seq_len": ("seq_length",),
    "max_seq_len": ("seq_length",),
    "max_seq_length": ("seq_length",),
    "max_total_sequence_length": ("seq_length",),
    "max_length": ("seq_length",),
    "max_len": ("seq_length",),
    "context_length": ("seq_length",),
    "max_model_len": ("rollout_max_context_len",),
    "batch_size": ("global_batch_size", "micro_batch_size"),
    "train_batch_size": ("global_batch_size",),
    "train_global_batch_size": ("global_batch_size",),
    "ppo_mini_batch_size": ("global_batch_size",),
    "mini_batch_size": ("global_batch_size",),
    "mini_batch": ("global_batch_size",),
    "num_mini_batches": ("num_steps_per_rollout",),
    "mbs": ("micro_batch_size",),
    "gbs": ("global_batch_size",),
    "micro_train_batch_size": ("micro_batch_size",),
    "train_micro_batch_size": ("micro_batch_size",),
    "ppo_micro_batch_size": ("micro_batch_size",),
    "ppo_micro_batch_size_per_gpu": ("micro_batch_size",),
    "per_device_train_batch_size": ("micro_batch_size",),
    "use_dynamic_bsz": ("use_dynamic_batch_size",),
    "dynamic_batching": ("use_dynamic_batch_size",),
    "sequence_packing": ("use_dynamic_batch_size",),
    "use_remove_padding": ("use_dynamic_batch_size",),
    "ppo_max_token_len_per_gpu": ("max_tokens_per_gpu",),
    "max_tokens_per_microbatch": ("max_tokens_per_gpu",),
    "train_mb_tokens": ("max_tokens_per_gpu",),
    "log_prob_max_token_len_per_gpu": ("log_probs_max_tokens_per_gpu",),
    "rollout_n": ("n_samples_per_prompt",),
    "num_generations": ("n_samples_per_prompt",),
    "num_return_sequences": ("n_samples_per_prompt",),
    "num_generations_per_prompt": ("n_samples_per_prompt",),
    "num_prompts_per_step": ("rollout_batch_size",),
    "temperature": ("rollout_temperature",),
    "top_p": ("rollout_top_p",),
    "top_k": ("rollout_top_k",),
    "max_new_tokens": ("rollout_max_response_len",),
    "max_completion_length": ("rollout_max_response_len",),
    "generate_max_len": ("rollout_max_response_len",),
    "max_response_length": ("rollout_max_response_len",),
    "response_length": ("rollout_max_response_len",),
    "max_prompt_length": ("rollout_max_prompt_len",),
    "prompt_max_len": ("rollout_max_prompt_len",),
    "whiten_advantages": ("normalize_advantages",),
    "whiten_rewards": ("normalize_advantages",),
    "scale_rewards": ("grpo_std_normalization",),
    "norm_adv_by_std_in_grpo": ("grpo_std_normalization",),
    "adv_estimator": ("advantage_estimator",),
    "gradient_checkpointing": ("recompute_granularity",),
    "enable_gradient_checkpointing": ("recompute_granularity",),
    "activation_checkpointing": ("recompute_granularity",),
    "recompute_activations": ("recompute_granularity",),
    "checkpoint_activations": ("recompute_granularity",),
    "critic_warmup": ("num_critic_only_steps",),
    "freeze_critic_steps": ("num_critic_only_steps",),
    "freezing_actor_steps": ("num_critic_only_steps",),
    "value_warmup_steps": ("num_critic_only_steps",),
    "pretrain": ("hf_checkpoint",),
    "model": ("hf_checkpoint",),
    "model_path": ("hf_checkpoint",),
    "model_name_or_path": ("hf_checkpoint",),
    "ckpt_path": ("load",),
    "load_path": ("load",),
    "resume_from_checkpoint": ("load",),
    "resume_path": ("load",),
    "output_dir": ("save",),
    "save_path": ("save",),
    "save_dir": ("save",),
    "checkpoint_dir": ("save",),
    "default_local_dir": ("save",),
    "save_steps": ("save_interval",),
    "save_freq": ("save_interval",),
    "save_period": ("save_interval",),
    "eval_steps": ("eval_interval",),
    "test_freq": ("eval_interval",),
    "val_period": ("eval_interval",),
    "logging_steps": ("log_interval",),
    "ref_model": ("ref_load",),
    "reference_model": ("ref_load",),
    "dtype": ("params_dtype", "bf16"),
    "precision": ("bf16", "params_dtype"),
    "torch_dtype": ("params_dtype", "bf16"),
    "model_dtype": ("params_dtype", "bf16"),
    "mixed_precision": ("bf16", "params_dtype"),
    "half": ("fp16",),
    "attn_implementation": ("attention_backend",),
    "attn_backend": ("attention_backend",),
    "flash_attention": ("attention_backend",),
    "grad_offload": ("offload_train",),
    "param_offload": ("offload_train",),
    "optimizer_offload": ("optimizer_cpu_offload",),
    "adam_offload": ("optimizer_cpu_offload",),
    "frozen_params": ("freeze_params_name_list",),
    "freeze": ("freeze_params_name_list",),
    "trainable_params": ("only_train_params_name_list",),
    "dropout": ("hidden_dropout",),
    "num_hidden_layers": ("num_layers",),
    "intermediate_size": ("ffn_hidden_size",),
    "rope_theta": ("rotary_base",),
    "rms_norm_eps": ("norm_epsilon",),
    "layer_norm_eps": ("norm_epsilon",),
    "num_key_value_heads": ("num_query_groups",),
    "aux_loss_coef": ("moe_aux_loss_coeff",),
    "router_aux_loss_coef": ("moe_aux_loss_coeff",),
    "loss_agg_mode": ("calculate_per_token_loss",),
    "token_level_loss": ("calculate_per_token_loss",),
    "use_kl_in_reward": ("kl_coef",),
    "truncated_importance_sampling": ("use_tis",),
    "tis_imp_ratio_cap": ("tis_clip",),
    "vllm_importance_sampling_cap": ("tis_clip",),
    "max_steps": ("num_rollout",),
    "max_num_steps": ("num_rollout",),
    "total_steps": ("num_rollout",),
    "num_episodes": ("num_rollout",),
    "num_train_epochs": ("num_epoch",),
    "total_epochs": ("num_epoch",),
    "max_epochs": ("num_epoch",),
    "gradient_accumulation_steps": ("global_batch_size",),
    "random_seed": ("seed",),
    "nnodes": ("actor_num_nodes",),
    "n_gpus_per_node": ("actor_num_gpus_per_node",),
    "world": ("world_size",),
    "project_name": ("wandb_project",),
    "experiment_name": ("wandb_group",),
    "run_name": ("wandb_group",),
}
"""Names in verl, OpenRLHF, NeMo-RL, TRL, transformers and DeepSpeed -> arguments here, best first."""


def nearest(key: str, known: Collection[str], limit: int = 3) -> list[str]:
    """The arguments that `key` may have been meant to be, best first; empty where nothing is near.

    Args:
        key: The key as written.
        known: The job's arguments.
        limit: How many at most.
    """
    plain = _plain(key)
    if plain in known:
        return [plain]
    listed = [name for form in _forms(plain) for name in SYNONYMS.get(form, ()) if name in known]
    return list(dict.fromkeys([*listed, *nearest_texts(plain, known, limit)]))[:limit]


def nearest_texts(text: str, known: Iterable[str], limit: int = 3, min_score: float = MIN_SCORE) -> list[str]:
    """The texts of `known` that are like `text`, best first."""
    scored = sorted(((-_score(text, name), len(name), name) for name in known))
    return [name for score, _, name in scored[:limit] if -score >= min_score]


def _plain(key: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.strip().lstrip("-"))
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def _forms(plain: str) -> Sequence[str]:
    """The key, and its ends: `optim.lr_warmup_steps` and `actor_lr_warmup_steps` end in a known name."""
    words = plain.split("_")
    return ["_".join(words[start:]) for start in range(len(words))]


def _score(text: str, name: str) -> float:
    """Likeness from 0 to 1: by letters, or by shared words where they are most of the name."""
    matcher = difflib.SequenceMatcher(None, text, name, autojunk=False)
    letters = matcher.ratio() if matcher.real_quick_ratio() > 0.5 and matcher.quick_ratio() > 0.5 else 0.0
    left, right = set(text.split("_")), set(name.split("_"))
    words = 2 * len(left & right) / (len(left) + len(right))
    return max(letters, 0.95 * words)
