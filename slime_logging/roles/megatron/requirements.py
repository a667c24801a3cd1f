"""Combinations of arguments that validation would refuse on the command line, checked again for a
role.

The role file is applied after validation, so without this a combination that the command line
refuses would start and fail late, in a worker, or train something else. Sources as in `derive.py`;
the schedule's bounds are those of Megatron-LM's `OptimizerParamScheduler`.

Policy: a rule is looked at only where the role file sets one of its arguments. A rule whose inputs
an older or newer Megatron lacks holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.megatron.places import is_missing, misfit

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Requirement:
    """`is_broken(values)` is a mistake, for the reason and with the fix given; `keys` are the
    arguments it looks at. `is_late` where validation lets it pass, and the scheduler refuses it.
    """

    keys: tuple[str, ...]
    is_broken: Callable[[Values], Any]
    reason: str
    fix: str
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Advice:
    """`when(values)` is worth a warning: `text`."""

    keys: tuple[str, ...]
    when: Callable[[Values], Any]
    text: str


MODEL = (
    *("hidden_size", "num_attention_heads", "num_layers", "ffn_hidden_size", "moe_ffn_hidden_size"),
    *("moe_shared_expert_intermediate_size", "layernorm_epsilon", "rotary_base"),
    "hf_checkpoint",
)
"""Arguments that the checkpoint's configuration decides."""


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _full(values: Values, *names: str) -> int:
    return sum(values[name] is not None and values[name] is not False for name in names)


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(MODEL, misfit, "it is not what the checkpoint's config.json says", "take it out of the role file"),
    Requirement(("hidden_size", "num_attention_heads", "num_layers"),
                lambda v: None in (v["hidden_size"], v["num_attention_heads"], v["num_layers"]) or v["num_attention_heads"] == 0,
                "hidden_size, num_attention_heads and num_layers have no derived value", "give a number"),
    Requirement(("save_interval",), lambda v: v["save_interval"] is not None and v["save"] is None,
                "save_interval needs save", "set save in the same entry, or save_interval to null"),
    Requirement(("opd_teacher_load", "use_opd"), lambda v: v["opd_teacher_load"] is not None and not v["use_opd"],
                "opd_teacher_load needs use_opd", "set use_opd to true, or take it out"),
    Requirement(("eval_interval",), lambda v: v["eval_interval"] is not None and not v["eval_datasets"],
                "eval_interval needs evaluation data, which the command line names", "take it out"),
    Requirement(("rollout_temperature",), lambda v: v["rollout_temperature"] <= 0,
                "rollout_temperature must be above 0", "for example `rollout_temperature: 1.0`"),
    Requirement(("update_weight_transport", "update_weight_disk_dir"),
                lambda v: v["update_weight_transport"] == "disk" and not v["update_weight_disk_dir"],
                "update_weight_transport disk needs update_weight_disk_dir", "set both"),
    Requirement(("update_weight_mode", "update_weight_transport"), lambda v: v["update_weight_mode"] == "delta"
                and (v["update_weight_transport"] != "disk" or v["colocate"] or not v["update_weight_local_checkpoint_dir"]),
                "update_weight_mode delta needs update_weight_transport disk, its folder, and no colocate",
                "write `update_weight_mode: full`"),
    Requirement(("moe_use_upcycling", "save"), lambda v: v["moe_use_upcycling"] and v["save"] is None,
                "moe_use_upcycling needs save", "set save in the same entry"),
    Requirement(("num_layers",), lambda v: v["num_layers"] % v["transformer_pipeline_model_parallel_size"],
                "num_layers must be a multiple of the pipeline's size", "change num_layers"),
    Requirement(("mock_data", "data_path", "train_data_path", "valid_data_path", "test_data_path"),
                lambda v: _full(v, "mock_data", "data_path") + bool(_full(v, "train_data_path", "valid_data_path", "test_data_path")) > 1,
                "mock_data, data_path and train_data_path exclude each other", "keep one of them"),
    Requirement(("train_samples", "train_iters", "lr_decay_iters", "lr_warmup_iters"),
                lambda v: v["train_samples"] and (v["train_iters"] or v["lr_decay_iters"] is not None or v["lr_warmup_iters"]),
                "train_samples goes without train_iters, lr_decay_iters and lr_warmup_iters", "keep one kind of schedule"),
    Requirement(("train_iters", "lr_decay_samples", "lr_warmup_samples", "rampup_batch_size"),
                lambda v: v["train_iters"] and (v["lr_decay_samples"] is not None or v["lr_warmup_samples"] or v["rampup_batch_size"]),
                "train_iters goes without lr_decay_samples, lr_warmup_samples and rampup_batch_size", "keep one kind of schedule"),
    Requirement(("lr_warmup_fraction", "lr_warmup_iters", "train_iters"),
                lambda v: v["train_iters"] and v["lr_warmup_fraction"] is not None and v["lr_warmup_iters"],
                "lr_warmup_fraction and lr_warmup_iters exclude each other", "keep one of them"),
    Requirement(("deterministic_mode",), lambda v: v["deterministic_mode"] and os.environ.get("NCCL_ALGO", "")
                not in ("Tree", "Ring", "CollnetDirect", "CollnetChain", "^NVLS"),
                "deterministic_mode needs NCCL_ALGO in the environment", "export NCCL_ALGO=Ring"),
    Requirement(("fsdp_manual_registration",), lambda v: v["fsdp_manual_registration"] and not v["use_megatron_fsdp"],
                "fsdp_manual_registration needs Megatron FSDP", "take it out"),
    Requirement(("hybrid_context_parallel",), lambda v: v["hybrid_context_parallel"] and not v["calculate_per_token_loss"],
                "hybrid_context_parallel needs calculate_per_token_loss", "set both"),
    Requirement(("inference_batch_times_seqlen_threshold",), lambda v: v["inference_batch_times_seqlen_threshold"] > -1
                and v["pipeline_model_parallel_size"] == 1,
                "inference_batch_times_seqlen_threshold needs a pipeline", "take it out"),
    Requirement(("non_persistent_ckpt_type",), lambda v: v["non_persistent_ckpt_type"] == "local"
                and v["non_persistent_local_ckpt_dir"] is None,
                "non_persistent_ckpt_type local needs non_persistent_local_ckpt_dir", "set both"),
    Requirement(("heterogeneous_layers_config_encoded_json",),
                lambda v: v["heterogeneous_layers_config_encoded_json"] and not _is_json(v["heterogeneous_layers_config_encoded_json"]),
                "heterogeneous_layers_config_encoded_json is no JSON mapping", "give the JSON text of one"),
    Requirement(("encoder_seq_length",), lambda v: v["encoder_seq_length"] is not None,
                "encoder_seq_length and seq_length exclude each other, and slime always sets seq_length",
                "set seq_length; encoder_seq_length follows it"),
    Requirement(("encoder_num_layers",), lambda v: v["encoder_num_layers"] is not None and v["num_layers"] is not None,
                "encoder_num_layers and num_layers exclude each other", "set num_layers; encoder_num_layers follows it"),
    Requirement(("load_debug_rollout_data",), lambda v: v["load_debug_rollout_data"] is not None,
                "load_debug_rollout_data decides debug_train_only, which the whole job has in common", "take it out"),
    Requirement(("ref_load", "opd_teacher_load"), lambda v: (v["use_kl_loss"] or v["kl_coef"]) and is_missing(v["ref_load"], v["hf_checkpoint"], v["save"]),
                "ref_load is not there", "give a folder that exists"),
    Requirement(("lr", "min_lr"), lambda v: v["lr"] is not None and v["min_lr"] > v["lr"],
                "min_lr is larger than lr", "lower min_lr or raise lr"),
    Requirement(("start_weight_decay", "end_weight_decay", "weight_decay", "weight_decay_incr_style"),
                lambda v: v["weight_decay_incr_style"] == "constant"
                and not v["start_weight_decay"] == v["end_weight_decay"] == v["weight_decay"],
                "with weight_decay_incr_style constant, start_weight_decay and end_weight_decay are weight_decay",
                "override weight_decay alone, or set weight_decay_incr_style to linear or cosine as well"),
    Requirement(("weight_decay_incr_style", "start_weight_decay", "end_weight_decay"),
                lambda v: v["weight_decay_incr_style"] != "constant"
                and (v["start_weight_decay"] is None or v["end_weight_decay"] is None),
                "weight_decay_incr_style needs start_weight_decay and end_weight_decay", "set both in the same entry"),
    Requirement(("lr_decay_style", "lr_wsd_decay_iters"),
                lambda v: v["lr_decay_style"] == "WSD" and v["lr_wsd_decay_iters"] is None,
                "lr_decay_style WSD needs lr_wsd_decay_iters", "set lr_wsd_decay_iters in the same entry"),
    Requirement(("lr_warmup_fraction",), lambda v: v["lr_warmup_fraction"] is not None
                and not 0 <= v["lr_warmup_fraction"] < 1,
                "lr_warmup_fraction is a share of the schedule, from 0 to below 1",
                "for example `lr_warmup_fraction: 0.01`"),
    Requirement(("lr_warmup_iters", "lr_decay_iters"),
                lambda v: v["lr_warmup_fraction"] is None and v["lr_decay_iters"] is not None
                and v["lr_warmup_iters"] >= v["lr_decay_iters"],
                "lr_warmup_iters must be below lr_decay_iters", "lower the one or raise the other"),
    Requirement(("kl_coef", "kl_loss_coef"), lambda v: v["kl_coef"] != 0 and v["kl_loss_coef"] != 0,
                "kl_coef and kl_loss_coef are both set", "set one of them to 0"),
    Requirement(("kl_coef", "use_kl_loss", "ref_load"),
                lambda v: (v["kl_coef"] != 0 or v["use_kl_loss"]) and v["ref_load"] is None,
                "a KL term needs a reference model", "set ref_load, or --ref-load for all roles"),
    Requirement(("use_opd", "opd_type", "opd_teacher_load"), lambda v: v["use_opd"] and v["opd_type"] is None,
                "use_opd needs opd_type", "set opd_type to sglang or megatron"),
    Requirement(("use_opd", "opd_type", "opd_teacher_load"),
                lambda v: v["use_opd"] and v["opd_type"] == "megatron" and v["opd_teacher_load"] is None,
                "opd_type megatron needs opd_teacher_load", "set opd_teacher_load to the teacher's checkpoint"),
    Requirement(("only_train_params_name_list", "freeze_params_name_list"),
                lambda v: v["only_train_params_name_list"] and v["freeze_params_name_list"],
                "only_train_params_name_list and freeze_params_name_list are both set", "keep one of the two"),
    Requirement(("use_dynamic_batch_size", "max_tokens_per_gpu"),
                lambda v: v["use_dynamic_batch_size"] and v["max_tokens_per_gpu"] is None,
                "use_dynamic_batch_size needs max_tokens_per_gpu", "set max_tokens_per_gpu in the same entry"),
    Requirement(("balance_by_flops", "use_dynamic_batch_size"),
                lambda v: v["balance_by_flops"] and not v["use_dynamic_batch_size"],
                "balance_by_flops needs use_dynamic_batch_size", "set use_dynamic_batch_size to true"),
    Requirement(("use_rollout_logprobs", "use_tis"), lambda v: v["use_rollout_logprobs"] and v["use_tis"],
                "use_rollout_logprobs and use_tis exclude each other", "set one of them to false"),
    Requirement(("get_mismatch_metrics", "custom_tis_function_path"),
                lambda v: v["get_mismatch_metrics"] and v["custom_tis_function_path"] is None,
                "get_mismatch_metrics needs custom_tis_function_path", "set custom_tis_function_path"),
    Requirement(("enable_mtp_training", "mtp_num_layers"),
                lambda v: v["enable_mtp_training"] and not v["mtp_num_layers"],
                "enable_mtp_training needs mtp_num_layers", "set mtp_num_layers in the same entry"),
    Requirement(("save", "save_interval"), lambda v: v["save"] is not None and v["save_interval"] is None,
                "save needs save_interval", "set save_interval in the same entry"),
    Requirement(("save_interval",), lambda v: v["save_interval"] is not None and v["save_interval"] <= 0,
                "save_interval must be at least 1", "null switches saving off"),
    Requirement(("micro_batch_size",), lambda v: v["micro_batch_size"] is None or v["micro_batch_size"] <= 0,
                "micro_batch_size must be at least 1", "for example `micro_batch_size: 1`"),
    Requirement(("seq_length", "max_position_embeddings", "encoder_seq_length"),
                lambda v: v["max_position_embeddings"] < v["seq_length"],
                "max_position_embeddings is smaller than seq_length", "raise it in the same entry"),
    Requirement(("hidden_size", "num_attention_heads", "kv_channels"),
                lambda v: v["kv_channels"] is None and v["hidden_size"] % v["num_attention_heads"],
                "hidden_size is no multiple of num_attention_heads", "change one of the two, or set kv_channels"),
    Requirement(("accumulate_allreduce_grads_in_fp32",),
                lambda v: v["bf16"] and v["accumulate_allreduce_grads_in_fp32"]
                and str(v["main_grads_dtype"]) not in ("fp32", "torch.float32"),
                "accumulate_allreduce_grads_in_fp32 needs main_grads_dtype fp32",
                "set accumulate_allreduce_grads_in_fp32 to false in the same entry"),
    Requirement(("recompute_granularity", "recompute_method"),
                lambda v: v["recompute_granularity"] == "selective" and v["recompute_method"] is not None,
                "recompute_granularity selective goes without a recompute_method", "set recompute_method to null"),
    Requirement(("fp16_lm_cross_entropy", "fp16"), lambda v: v["fp16_lm_cross_entropy"] and not v["fp16"],
                "fp16_lm_cross_entropy needs fp16", "set fp16 to true, or fp16_lm_cross_entropy to false"),
    Requirement(("fp4", "fp8"), lambda v: v["fp4"] and v["fp8"],
                "fp4 and fp8 exclude each other", "set one of them to null"),
    Requirement(("optimizer", "use_distributed_optimizer"),
                lambda v: "muon" in v["optimizer"] and v["use_distributed_optimizer"],
                "muon does not work with the distributed optimizer, which slime always uses",
                "write `optimizer: adam`"),
    Requirement(("optimizer_cpu_offload", "use_precision_aware_optimizer"),
                lambda v: v["optimizer_cpu_offload"] and not v["use_precision_aware_optimizer"],
                "optimizer_cpu_offload needs use_precision_aware_optimizer",
                "set use_precision_aware_optimizer to true"),
    Requirement(("load_main_params_from_ckpt", "no_load_optim"),
                lambda v: v["load_main_params_from_ckpt"] and not v["no_load_optim"],
                "load_main_params_from_ckpt needs no_load_optim", "set no_load_optim to true"),
    Requirement(("multi_latent_attention", "group_query_attention"),
                lambda v: v["multi_latent_attention"] and v["group_query_attention"],
                "multi_latent_attention and group_query_attention exclude each other", "set one of them to false"),
    Requirement(("num_experts", "expert_model_parallel_size"),
                lambda v: v["expert_model_parallel_size"] > 1
                and (not v["num_experts"] or v["num_experts"] % v["expert_model_parallel_size"]),
                "num_experts must be a multiple of expert_model_parallel_size", "change num_experts"),
    Requirement(("attention_backend", "spec"),
                lambda v: getattr(v["attention_backend"], "name", v["attention_backend"]) == "local"
                and (not v["spec"] or v["spec"][0] != "local"),
                "attention_backend local needs spec [local]", "write another attention_backend, or `spec: [local]`"),
    Requirement(("ckpt_format", "use_torch_fsdp2", "use_megatron_fsdp"),
                lambda v: (v["ckpt_format"] == "torch_dcp" and not v["use_torch_fsdp2"])
                or (v["ckpt_format"] == "fsdp_dtensor" and not v["use_megatron_fsdp"]),
                "ckpt_format torch_dcp and fsdp_dtensor need their FSDP", "write `ckpt_format: torch_dist`"),
    Requirement(("use_torch_fsdp2", "use_distributed_optimizer"),
                lambda v: v["use_torch_fsdp2"] and v["use_distributed_optimizer"],
                "use_torch_fsdp2 does not work with the distributed optimizer, which slime always uses", "take it out"),
    Requirement(("use_legacy_models", "ckpt_format"), lambda v: v["use_legacy_models"] and v["ckpt_format"] != "torch",
                "use_legacy_models needs ckpt_format torch", "set ckpt_format to torch"),
    Requirement(("delay_wgrad_compute", "fine_grained_activation_offloading", "transformer_impl"),
                lambda v: (v["delay_wgrad_compute"] or v["fine_grained_activation_offloading"])
                and v["transformer_impl"] != "transformer_engine",
                "needs transformer_impl transformer_engine", "set transformer_impl, or this to false"),
    Requirement(("distribute_saved_activations", "recompute_granularity", "recompute_method"),
                lambda v: v["distribute_saved_activations"]
                and (v["recompute_granularity"] != "full" or v["recompute_method"] is None),
                "distribute_saved_activations needs full recomputation", "set recompute_granularity and _method"),
    Requirement(("overlap_param_gather", "overlap_grad_reduce"),
                lambda v: v["overlap_param_gather"] and not v["overlap_grad_reduce"],
                "overlap_param_gather needs overlap_grad_reduce", "set overlap_grad_reduce to true"),
    Requirement(("overlap_param_gather_with_optimizer_step", "overlap_param_gather"),
                lambda v: v["overlap_param_gather_with_optimizer_step"] and not v["overlap_param_gather"],
                "overlap_param_gather_with_optimizer_step needs overlap_param_gather", "set it to true"),
    Requirement(("log_memory_interval", "log_interval"),
                lambda v: v["log_memory_interval"] is not None and v["log_memory_interval"] % v["log_interval"],
                "log_memory_interval must be a multiple of log_interval", "change one of the two"),
    Requirement(("save_retain_interval", "save_interval"), lambda v: v["save"] is not None and v["save_retain_interval"] is not None
                and (v["save_retain_interval"] <= 0 or v["save_retain_interval"] % v["save_interval"]),
                "save_retain_interval must be a multiple of save_interval", "change one of the two"),
    Requirement(("moe_latent_size", "num_experts"), lambda v: v["moe_latent_size"] is not None
                and (v["moe_latent_size"] <= 0 or v["num_experts"] is None),
                "moe_latent_size must be above 0, in a model with experts", "set num_experts, or this to null"),
    Requirement(("replication", "replication_jump"), lambda v: v["replication"] and v["replication_jump"] is None,
                "replication needs replication_jump", "set replication_jump in the same entry"),
    Requirement(("tp_comm_overlap", "sequence_parallel"), lambda v: v["tp_comm_overlap"] and not v["sequence_parallel"],
                "tp_comm_overlap needs sequence_parallel", "set it to false, or --sequence-parallel for the job"),
    Requirement(("position_embedding_type", "mrope_section"),
                lambda v: v["position_embedding_type"] == "mrope" and v["mrope_section"] is None,
                "position_embedding_type mrope needs mrope_section", "set mrope_section in the same entry"),
    Requirement(("mtp_num_layers", "position_embedding_type"),
                lambda v: v["mtp_num_layers"] and v["position_embedding_type"] not in ("rope", "none"),
                "mtp_num_layers needs position_embedding_type rope or none", "set position_embedding_type"),
    Requirement(("fp4_param", "fp4"), lambda v: v["fp4_param"] and not v["fp4"], "fp4_param needs fp4", "set fp4 too"),
    Requirement(("num_dataset_builder_threads",), lambda v: v["num_dataset_builder_threads"] <= 0,
                "num_dataset_builder_threads must be at least 1", "for example `num_dataset_builder_threads: 1`"),
)  # fmt: skip

ADVICE: tuple[Advice, ...] = (
    Advice(("lr_warmup_iters",), lambda v: v["lr_warmup_fraction"] is not None and v["lr_warmup_iters"],
           "lr_warmup_iters has no effect, because lr_warmup_fraction is set and goes first"),
    Advice(("params_dtype",), lambda v: str(v["params_dtype"]) != (
        "torch.float16" if v["fp16"] else "torch.bfloat16" if v["bf16"] else "torch.float32"),
           "params_dtype differs from what bf16 and fp16 say; override bf16 or fp16, and it follows"),
    Advice(("save",), lambda v: v["save"] is None and v["save_interval"] is not None,
           "save is null, so nothing of this role is saved, although save_interval is set"),
    Advice(("fp16",), lambda v: v["fp16"] and v["accumulate_allreduce_grads_in_fp32"],
           "accumulate_allreduce_grads_in_fp32 stays true; for bf16 validation sets it, for fp16 only its flag does"),
)  # fmt: skip


def broken(values: Values, written: Values) -> list[tuple[str, Requirement]]:
    """The requirements that a role's arguments break, each with the argument of the role file to
    blame.
    """
    return [
        (_first(rule.keys, written), rule)
        for rule in REQUIREMENTS
        if _applies(rule.keys, rule.is_broken, values, written)
    ]


def late(values: Values, written: Values) -> list[Requirement]:
    """The requirements broken that validation lets pass."""
    return [rule for _, rule in broken(values, written) if rule.is_late]


def advice(values: Values, written: Values) -> list[str]:
    """What is worth a warning in a role's arguments."""
    return [rule.text for rule in ADVICE if _applies(rule.keys, rule.when, values, written)]


def _first(keys: tuple[str, ...], written: Values) -> str:
    return next(key for key in keys if key in written)


def _applies(
    keys: tuple[str, ...], test: Callable[[Values], Any], values: Values, written: Values
) -> bool:
    if not any(key in written for key in keys):
        return False
    try:
        return bool(test(values))
    except (LookupError, TypeError, ArithmeticError, OSError, ValueError):
        return False
