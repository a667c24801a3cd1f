"""Combinations that validation refuses, each with the values that make it so."""

from __future__ import annotations

import ast
import copy
import inspect
import json
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.errors import RoleConfigError
from slime_logging.roles.megatron import (
    derive,
    derived,
    model_requirements,
    places,
    requirements,
    training_requirements,
)
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.megatron.requirements import ADVICE, REQUIREMENTS, advice, broken
from slime_logging.roles.roles import parse_role_file

KNOWN = frozenset(OptionTable.shipped()) | frozenset(vars(ppo_namespace()))

BROKEN: list[tuple[str, list[str], dict[str, Any]]] = [
    ("have no derived value", ["num_attention_heads: 0"], {}),
    ("min_lr is larger than lr", ["min_lr: 1e-3"], {}),
    ("with weight_decay_incr_style constant", ["start_weight_decay: 0.0"], {}),
    ("needs start_weight_decay", ["weight_decay_incr_style: cosine"], {"start_weight_decay": None}),
    ("WSD needs lr_wsd_decay_iters", ["lr_decay_style: WSD"], {}),
    ("a share of the schedule", ["lr_warmup_fraction: 10"], {}),
    ("must be below lr_decay_iters", ["lr_warmup_iters: 10", "lr_decay_iters: 10"], {}),
    ("kl_coef and kl_loss_coef", ["kl_coef: 0.1", "kl_loss_coef: 0.1"], {}),
    ("a KL term needs a reference model", ["use_kl_loss: true"], {"ref_load": None}),
    ("use_opd needs opd_type", ["use_opd: true"], {}),
    ("needs opd_teacher_load", ["use_opd: true", "opd_type: megatron"], {}),
    ("are both set", ["only_train_params_name_list: [a]", "freeze_params_name_list: [b]"], {}),
    ("needs max_tokens_per_gpu", ["use_dynamic_batch_size: true"], {}),
    ("balance_by_flops needs", ["balance_by_flops: true"], {}),
    ("exclude each other", ["use_rollout_logprobs: true", "use_tis: true"], {}),
    ("needs custom_tis_function_path", ["get_mismatch_metrics: true"], {}),
    ("needs mtp_num_layers", ["enable_mtp_training: true"], {}),
    ("save needs save_interval", ["save: /x"], {"save_interval": None}),
    ("save_interval must be", ["save_interval: 0"], {}),
    ("are whole numbers", ["phase_transition_iterations: 10 20"], {}),
    ("micro_batch_size must be", ["micro_batch_size: 0"], {}),
    ("smaller than seq_length", ["max_position_embeddings: 8"], {}),
    (
        "needs main_grads_dtype fp32",
        ["main_grads_dtype: bf16", "accumulate_allreduce_grads_in_fp32: true"],
        {},
    ),
    (
        "without a recompute_method",
        ["recompute_granularity: selective", "recompute_method: block"],
        {},
    ),
    ("needs fp16", ["fp16_lm_cross_entropy: true"], {}),
    ("fp4 and fp8", ["fp4: e2m1", "fp8: hybrid"], {}),
    ("muon does not work", ["optimizer: muon"], {}),
    ("needs use_precision_aware_optimizer", ["optimizer_cpu_offload: true"], {}),
    ("needs no_load_optim", ["load_main_params_from_ckpt: true"], {"no_load_optim": False}),
    (
        "multi_latent_attention and",
        ["multi_latent_attention: true", "group_query_attention: true"],
        {},
    ),
    ("must be a multiple of expert", ["num_experts: 3"], {"expert_model_parallel_size": 2}),
    ("attention_backend local needs", ["attention_backend: local"], {}),
    (
        "no multiple of num_attention_heads",
        ["hidden_size: 66", "kv_channels: null"],
        {"kv_channels": None},
    ),
    ("need their FSDP", ["ckpt_format: torch_dcp"], {}),
    ("use_torch_fsdp2 does not work", ["use_torch_fsdp2: true"], {}),
    ("use_legacy_models needs", ["use_legacy_models: true"], {}),
    ("needs transformer_impl", ["delay_wgrad_compute: true"], {}),
    ("needs full recomputation", ["distribute_saved_activations: true"], {}),
    ("needs overlap_grad_reduce", ["overlap_param_gather: true"], {}),
    ("needs overlap_param_gather", ["overlap_param_gather_with_optimizer_step: true"], {}),
    ("multiple of log_interval", ["log_memory_interval: 4"], {"log_interval": 3}),
    ("multiple of save_interval", ["save_retain_interval: 4"], {}),
    ("in a model with experts", ["moe_latent_size: 4"], {}),
    ("needs replication_jump", ["replication: true"], {}),
    ("needs sequence_parallel", ["tp_comm_overlap: true"], {}),
    ("needs mrope_section", ["position_embedding_type: mrope"], {}),
    ("needs position_embedding_type", ["mtp_num_layers: 1"], {}),
    ("fp4_param needs fp4", ["fp4_param: true"], {}),
    ("must be at least 1", ["num_dataset_builder_threads: 0"], {}),
    ("needs start_weight_decay", ["weight_decay_incr_style: linear"], {}),
    (
        "not what the checkpoint's config.json says",
        ["num_layers: 5"],
        {"hf_checkpoint": "CHECKPOINT"},
    ),
    ("no derived value", ["num_layers: null"], {"num_layers": None}),
    ("save_interval needs save", ["save_interval: 5"], {"save": None}),
    ("opd_teacher_load needs use_opd", ["opd_teacher_load: /x"], {}),
    ("needs evaluation data", ["eval_interval: 5"], {"eval_datasets": []}),
    ("rollout_temperature must be", ["rollout_temperature: 0"], {}),
    (
        "disk needs update_weight_disk_dir",
        ["update_weight_transport: disk"],
        {"update_weight_transport": "nccl", "update_weight_disk_dir": None},
    ),
    (
        "delta needs",
        ["update_weight_mode: delta"],
        {
            "update_weight_mode": "full",
            "update_weight_transport": "nccl",
            "update_weight_local_checkpoint_dir": None,
        },
    ),
    ("moe_use_upcycling needs save", ["moe_use_upcycling: true"], {"save": None}),
    (
        "multiple of the pipeline",
        ["num_layers: 3"],
        {"transformer_pipeline_model_parallel_size": 2},
    ),
    ("exclude each other", ["mock_data: true", "data_path: [x]"], {}),
    ("train_samples goes without", ["train_samples: 8", "lr_decay_iters: 8"], {}),
    ("train_iters goes without", ["train_iters: 8", "lr_warmup_samples: 8"], {}),
    (
        "lr_warmup_iters exclude",
        ["lr_warmup_fraction: 0.1", "lr_warmup_iters: 1"],
        {"train_iters": 8},
    ),
    ("needs NCCL_ALGO", ["deterministic_mode: true"], {}),
    ("needs Megatron FSDP", ["fsdp_manual_registration: true"], {}),
    ("needs calculate_per_token_loss", ["hybrid_context_parallel: true"], {}),
    ("needs a pipeline", ["inference_batch_times_seqlen_threshold: 4"], {}),
    ("needs non_persistent_local_ckpt_dir", ["non_persistent_ckpt_type: local"], {}),
    ("is no JSON mapping", ["heterogeneous_layers_config_encoded_json: no"], {}),
    ("slime always sets seq_length", ["encoder_seq_length: 8"], {}),
    ("encoder_num_layers and num_layers", ["encoder_num_layers: 4"], {}),
    ("decides debug_train_only", ["load_debug_rollout_data: /x"], {}),
    (
        "ref_load is not there",
        ["ref_load: /no/such"],
        {"use_kl_loss": True, "kl_loss_coef": 0.1, "hf_checkpoint": "CHECKPOINT"},
    ),
]

ADVISED: list[tuple[str, list[str], dict[str, Any]]] = [
    ("lr_warmup_iters has no effect", ["lr_warmup_iters: 5"], {"lr_warmup_fraction": 0.1}),
    ("params_dtype differs", ["params_dtype: fp32"], {}),
    ("save is null", ["save: null"], {}),
    ("accumulate_allreduce_grads_in_fp32 stays true", ["fp16: true"], {}),
]


@pytest.fixture(scope="module")
def pristine() -> Namespace:
    return ppo_namespace()


def resolve(
    base: Namespace, folder: Path, lines: list[str], changes: dict[str, Any]
) -> tuple[str, ...]:
    base = copy.deepcopy(base)
    model = {"num_hidden_layers": base.num_layers, "hidden_size": base.hidden_size}
    (folder / "config.json").write_text(json.dumps(model))
    here = {name: str(folder) for name, value in changes.items() if value == "CHECKPOINT"}
    vars(base).update(changes | here)
    path = folder / "roles.yaml"
    path.write_text(
        "megatron:\n  - role: actor\n    overrides:\n"
        + "".join(f"      {line}\n" for line in lines)
    )
    return parse_role_file(base, str(path)).warnings


@pytest.mark.parametrize(
    ("reason", "lines", "changes"),
    BROKEN,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_combination_that_validation_refuses_is_refused(
    reason: str, lines: list[str], changes: dict[str, Any], pristine: Namespace, tmp_path: Path
) -> None:
    """With the reason, and the place of an override that takes part in it."""
    with pytest.raises(RoleConfigError, match=reason) as caught:
        resolve(pristine, tmp_path, lines, changes)
    assert "roles.yaml:4:" in str(caught.value) or "roles.yaml:5:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "lines", "changes"), ADVISED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_would_not_do_what_it_says_is_warned_about(
    text: str, lines: list[str], changes: dict[str, Any], pristine: Namespace, tmp_path: Path
) -> None:
    """The override stands, with a warning."""
    assert any(text in warning for warning in resolve(pristine, tmp_path, lines, changes))


def test_a_role_with_a_checkpoint_of_its_own_goes_on_from_it(
    pristine: Namespace, tmp_path: Path
) -> None:
    """The base had no checkpoint, so validation set finetune; a role that has one is read whole."""
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("7")
    changes = {"load": "/r", "ref_load": "/r", "finetune": True, "no_load_optim": True}
    told = resolve(pristine, tmp_path, [f"load: {tmp_path}"], changes | {"no_load_rng": True})
    assert any("`finetune` follows load: true -> false" in text for text in told)


def test_every_requirement_and_advice_is_tried() -> None:
    """Each rule of the tables is broken by one of the cases above."""
    assert len(BROKEN) >= len(REQUIREMENTS)
    assert len(ADVISED) == len(ADVICE)


def test_a_base_that_breaks_a_rule_by_itself_is_left_alone(
    pristine: Namespace, tmp_path: Path
) -> None:
    """A rule speaks only where the role file sets one of its arguments."""
    assert resolve(pristine, tmp_path, ["clip_grad: 1"], {"min_lr": 1.0}) == ()


def test_rules_whose_inputs_are_missing_hold() -> None:
    """Another version of Megatron may lack any of the arguments."""
    written = dict.fromkeys(KNOWN, 1)
    assert broken({}, written) == []
    assert advice({}, written) == []


@pytest.mark.parametrize(
    "module", [derived, places, requirements, training_requirements, model_requirements]
)
def test_the_rules_read_real_arguments(module: ModuleType) -> None:
    """A misspelt name in a rule would never apply: each that is read by name is an argument."""
    tree = ast.parse(inspect.getsource(module))
    read = {
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("v", "values", "base", "written")
        and isinstance(node.slice, ast.Constant)
    }
    assert read - KNOWN == set() and read


def test_the_rules_name_real_arguments() -> None:
    """So are their keys, targets and sources."""
    named = {key for rule in (*REQUIREMENTS, *ADVICE) for key in rule.keys}
    for rule in (*derived.FIRST, *derived.FOLLOWING, *derived.IMPLIED):
        named |= {rule.target, *rule.sources} if not getattr(rule, "is_new", False) else set()
    named |= {*derived.ALWAYS, *derive.PLACES, *derive.DATASETS, *places.WITHOUT_CHECKPOINT}
    named |= {argument for _, argument in places.CONFIGURED}
    assert named - KNOWN == set()
