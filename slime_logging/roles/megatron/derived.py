"""What validation computes from other arguments: the rules, read from one version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]

Compute = Callable[[Values], Any]


class Mark:
    """What a rule gives in the place of a value."""


KEEP = Mark()
"""Nothing comes of these values: what is there stays."""

GONE = Mark()
"""Validation takes the argument away."""


@dataclass(frozen=True, slots=True)
class Follow:
    """`target` is `compute(values)` where it was that before; `sources` are the arguments it is
    computed from.
    """

    target: str
    sources: tuple[str, ...]
    compute: Compute


@dataclass(frozen=True, slots=True)
class Imply:
    """Where `when(values)` holds, `target` is `value`; `is_new` where validation makes the
    argument.
    """

    target: str
    sources: tuple[str, ...]
    when: Callable[[Values], Any]
    value: Any
    is_new: bool = False


def _same(source: str) -> Compute:
    return lambda values: values[source]


def _same_where(source: str, when: Callable[[Values], Any]) -> Compute:
    return lambda values: values[source] if when(values) else KEEP


def _even_weight_decay(values: Values) -> Any:
    is_even = values.get("weight_decay_incr_style", "constant") == "constant"
    return values["weight_decay"] if is_even else None  # for other styles both must be given


def _params_dtype(values: Values) -> Any:
    import torch

    if values["fp16"]:
        return torch.float16
    return torch.bfloat16 if values["bf16"] else torch.float32


def _ffn_hidden_size(values: Values) -> Any:
    hidden = values["hidden_size"]
    return int((4 * hidden * 2 / 3) / 64) * 64 if values.get("swiglu") else 4 * hidden


def _kv_channels(values: Values) -> Any:
    size, rest = divmod(values["hidden_size"], values["num_attention_heads"])
    return (
        None if rest else size
    )  # validation refuses a remainder; so do the requirements where it is None


def _padded_vocab_size(values: Values) -> Any:
    if not values["vocab_size"]:
        return None
    step = values["make_vocab_size_divisible_by"] * values["tensor_model_parallel_size"]
    return -(-values["vocab_size"] // step) * step


def _dump(kind: str) -> Compute:
    def compute(values: Values) -> Any:
        folder = values["dump_details"]
        return None if folder is None else f"{folder}/{kind}/{{rollout_id}}.pt"

    return compute


def _less_one(source: str) -> Compute:
    return lambda values: KEEP if values[source] is None else values[source] - 1


def phases(values: Values) -> list[int] | None:
    """The iterations that `phase_transition_iterations` lists; None where it is no such text."""
    try:
        return sorted(map(int, values["phase_transition_iterations"].split(",")))
    except (AttributeError, ValueError):
        return None


FOLLOWING: tuple[Follow, ...] = (
    Follow("start_weight_decay", ("weight_decay", "weight_decay_incr_style"), _even_weight_decay),
    Follow("end_weight_decay", ("weight_decay", "weight_decay_incr_style"), _even_weight_decay),
    Follow("eps_clip_high", ("eps_clip",), _same("eps_clip")),
    Follow("params_dtype", ("bf16", "fp16"), _params_dtype),
    Follow(
        "log_probs_max_tokens_per_gpu",
        ("max_tokens_per_gpu", "use_dynamic_batch_size"),
        lambda values: values["max_tokens_per_gpu"] if values["use_dynamic_batch_size"] else None,
    ),
    Follow(
        "position_embedding_type",
        ("use_rotary_position_embeddings",),
        lambda values: "rope" if values["use_rotary_position_embeddings"] else "learned_absolute",
    ),
    Follow("bias_gelu_fusion", ("add_bias_linear",), lambda values: values["add_bias_linear"]),
    Follow("add_qkv_bias", ("add_bias_linear",), lambda values: values["add_bias_linear"]),
    Follow("dataloader_type", (), lambda _values: "single"),
    Follow(
        "check_for_nan_in_loss_and_grad",
        ("fp16", "loss_scale"),
        lambda values: not values["fp16"] or bool(values["loss_scale"]),
    ),
    Follow(
        "accumulate_allreduce_grads_in_fp32",
        ("main_grads_dtype",),
        lambda values: str(values["main_grads_dtype"]) in ("fp32", "torch.float32"),
    ),
    Follow("encoder_num_layers", ("num_layers",), _same("num_layers")),
    Follow("encoder_seq_length", ("seq_length",), _same("seq_length")),
    Follow("max_position_embeddings", ("seq_length",), _same("seq_length")),
    Follow("ffn_hidden_size", ("hidden_size", "swiglu"), _ffn_hidden_size),
    Follow("kv_channels", ("hidden_size", "num_attention_heads"), _kv_channels),
    Follow(
        "moe_ffn_hidden_size",
        ("ffn_hidden_size", "num_experts"),
        _same_where("ffn_hidden_size", lambda values: values["num_experts"]),
    ),
    Follow("padded_vocab_size", ("vocab_size", "make_vocab_size_divisible_by"), _padded_vocab_size),
    Follow(
        "rope_type",
        ("multi_latent_attention",),
        lambda values: "yarn" if values["multi_latent_attention"] else "rope",
    ),
    Follow(
        "tokenizer_special_tokens", ("tiktoken_special_tokens",), _same("tiktoken_special_tokens")
    ),
    Follow("use_dist_ckpt", ("ckpt_format",), lambda values: values["ckpt_format"] != "torch"),
    Follow("save_debug_rollout_data", ("dump_details",), _dump("rollout_data")),
    Follow("save_debug_train_data", ("dump_details",), _dump("train_data")),
    Follow("eval_function_path", ("rollout_function_path",), _same("rollout_function_path")),
    Follow("eval_reward_key", ("reward_key",), _same("reward_key")),
    Follow("eval_max_context_len", ("rollout_max_context_len",), _same("rollout_max_context_len")),
    Follow(
        "rollout_max_prompt_len", ("rollout_max_context_len",), _less_one("rollout_max_context_len")
    ),
)
"""In the order in which validation computes them, so that chains follow (hidden_size ->
ffn_hidden_size -> ...).
"""

FIRST: tuple[Imply, ...] = (
    Imply("bf16", ("fp16",), lambda v: not v["fp16"], True),
    Imply("bf16", ("fp16",), lambda v: v["fp16"], False),
    Imply("seq_length", (), lambda v: v["seq_length"] is None, 4096),
)
"""Set by slime before anything follows."""

ALWAYS = (
    "use_distributed_optimizer",
    "use_persistent_ckpt_worker",
    "ckpt_assume_constant_structure",
    "ckpt_fully_parallel_load",
    "dist_ckpt_save_pre_mcore_014",
    "variable_seq_lengths",
)
"""True in slime whatever their flags say, where the base has them so."""

IMPLIED: tuple[Imply, ...] = (
    Imply("overlap_p2p_comm", (), lambda v: v["virtual_pipeline_model_parallel_size"] is None, False),
    Imply("align_param_gather", (), lambda v: v["virtual_pipeline_model_parallel_size"] is None, False),
    Imply("save_debug_rollout_data", ("dump_details",), lambda v: v["dump_details"] is not None, _dump("rollout_data")),
    Imply("save_debug_train_data", ("dump_details",), lambda v: v["dump_details"] is not None, _dump("train_data")),
    Imply("check_for_nan_in_loss_and_grad", ("fp16", "loss_scale"), lambda v: v["fp16"] and not v["loss_scale"], False),
    Imply("accumulate_allreduce_grads_in_fp32", ("bf16", "grad_reduce_in_bf16"),
          lambda v: v["bf16"] and v["grad_reduce_in_bf16"], False),
    Imply("accumulate_allreduce_grads_in_fp32", ("bf16", "grad_reduce_in_bf16", "main_grads_dtype"),
          lambda v: v["bf16"] and not v["grad_reduce_in_bf16"]
          and str(v["main_grads_dtype"]) in ("fp32", "torch.float32"), True),
    Imply("moe_token_dispatcher_type", ("moe_token_dispatcher_type",),
          lambda v: v["moe_token_dispatcher_type"] == "allgather", "alltoall"),  # noqa: S105
    Imply("padded_vocab_size", ("padded_vocab_size",), lambda v: v["padded_vocab_size"] == 0, _padded_vocab_size),
    Imply("num_experts", ("num_experts",), lambda v: v["num_experts"] == 0, None),
    Imply("bias_gelu_fusion", ("add_bias_linear", "bias_gelu_fusion"), lambda v: not v["add_bias_linear"], False),
    Imply("add_qkv_bias", ("add_bias_linear", "add_qkv_bias"), lambda v: v["add_bias_linear"], True),
    Imply("position_embedding_type", ("use_rotary_position_embeddings", "position_embedding_type"),
          lambda v: v["use_rotary_position_embeddings"], "rope"),
    Imply("apply_rope_fusion", ("position_embedding_type", "apply_rope_fusion", "use_rotary_position_embeddings"),
          lambda v: v["position_embedding_type"] != "rope", False),
    Imply("attention_softmax_in_fp32", ("apply_query_key_layer_scaling", "attention_softmax_in_fp32"),
          lambda v: v["apply_query_key_layer_scaling"], True),
    Imply("apply_wd_to_qk_layernorm", ("no_weight_decay_cond_type",),
          lambda v: v["no_weight_decay_cond_type"] == "apply_wd_to_qk_layernorm", True),
    Imply("no_weight_decay_cond_type", ("no_weight_decay_cond_type",),
          lambda v: v["no_weight_decay_cond_type"] == "apply_wd_to_qk_layernorm", None),
    Imply("use_routing_replay", ("use_rollout_routing_replay",), lambda v: v["use_rollout_routing_replay"], True),
    Imply("balance_data", ("balance_by_flops",), lambda v: v["balance_by_flops"], True),
    Imply("no_load_optim", ("skip_train", "moe_use_upcycling", "no_load_optim"),
          lambda v: v["skip_train"] or v["moe_use_upcycling"], True),
    Imply("no_load_rng", ("moe_use_upcycling", "no_load_rng"), lambda v: v["moe_use_upcycling"], True),
    Imply("cpu_offloading", ("cpu_offloading_num_layers",),
          lambda v: v["cpu_offloading_num_layers"] > 0, True, is_new=True),
    Imply("cuda_graph_impl", ("enable_cuda_graph",), lambda v: v["enable_cuda_graph"], "local"),
    Imply("cuda_graph_impl", ("external_cuda_graph",), lambda v: v["external_cuda_graph"], "transformer_engine"),
    Imply("enable_cuda_graph", ("enable_cuda_graph",), lambda v: v["enable_cuda_graph"], GONE),
    Imply("external_cuda_graph", ("external_cuda_graph",), lambda v: v["external_cuda_graph"], GONE),
    Imply("te_rng_tracker", ("cuda_graph_impl", "transformer_impl", "te_rng_tracker"),
          lambda v: v["cuda_graph_impl"] != "none"
          and "transformer_engine" in (v["transformer_impl"], v["cuda_graph_impl"]), True),
    Imply("cuda_graph_scope", ("cuda_graph_scope",), lambda v: v["cuda_graph_scope"] == ["full"], []),
    Imply("replication_jump", ("replication", "replication_jump"),
          lambda v: v["replication_jump"] and not v["replication"], None),
    Imply("split", ("data_path", "split"), lambda v: v["data_path"] is not None and v["split"] is None, "969, 30, 1"),
    Imply("enable_gloo_process_groups", ("fake_process_group",), lambda v: v["fake_process_group"], False),
    Imply("check_for_nan_in_loss_and_grad", ("fake_process_group",), lambda v: v["fake_process_group"], False),
    Imply("grpo_samples_per_iteration", ("perform_rl_step", "grpo_prompts_per_step", "grpo_group_size"),
          lambda v: v["perform_rl_step"], lambda v: v["grpo_prompts_per_step"] * v["grpo_group_size"], is_new=True),
    Imply("phase_transition_iterations", ("phase_transition_iterations",), phases, phases),
    Imply("consumed_train_bins", ("rl_use_sequence_packing",), lambda v: v["rl_use_sequence_packing"], 0, is_new=True),
)  # fmt: skip
"""Set by validation whatever the flag of the target said."""
