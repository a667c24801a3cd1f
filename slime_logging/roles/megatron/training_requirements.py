"""What validation refuses of weights, schedule, loss and batches, and of a model that is not the
checkpoint's.
"""

from __future__ import annotations

import json
import os

from slime_logging.roles.megatron.places import is_missing, misfit
from slime_logging.roles.megatron.requirement import Requirement, Values

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


TRAINING_REQUIREMENTS: tuple[Requirement, ...] = (
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
                "set seq_length; encoder_seq_length follows it", is_of_flags=True),
    Requirement(("encoder_num_layers",), lambda v: v["encoder_num_layers"] is not None and v["num_layers"] is not None,
                "encoder_num_layers and num_layers exclude each other", "set num_layers; encoder_num_layers follows it",
                is_of_flags=True),
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
    Requirement(("phase_transition_iterations",), lambda v: isinstance(v["phase_transition_iterations"], str)
                and v["phase_transition_iterations"],
                "phase_transition_iterations are whole numbers", 'write them with commas: "100,200"'),
)  # fmt: skip
