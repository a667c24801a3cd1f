"""Derived values: each rule of the table, on a validated namespace."""

from __future__ import annotations

import copy
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.megatron.derive import derive
from slime_logging.roles.megatron.derived import FOLLOWING, IMPLIED
from slime_logging.roles.roles import parse_role_file

KNOWN = frozenset(vars(ppo_namespace()))


@pytest.fixture(scope="module")
def pristine() -> Namespace:
    return ppo_namespace()


def resolve(
    base: Namespace, folder: Path, *lines: str, **changes: Any
) -> tuple[Namespace, tuple[str, ...]]:
    """The actor's arguments and all warnings, for a base with `changes` and an entry with `lines`."""
    base = copy.deepcopy(base)
    vars(base).update(changes)
    path = folder / "roles.yaml"
    path.write_text(
        "megatron:\n  - role: actor\n    overrides:\n"
        + "".join(f"      {line}\n" for line in lines)
    )
    found = parse_role_file(base, str(path))
    return found.args["actor"], found.warnings


FOLLOWED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("weight_decay: 0.0", {}, {"start_weight_decay": 0.0, "end_weight_decay": 0.0}),
    (
        "weight_decay: 0.0",
        {"start_weight_decay": 0.2, "weight_decay_incr_style": "linear"},
        {"start_weight_decay": 0.2},
    ),
    ("eps_clip: 0.1", {}, {"eps_clip_high": 0.1}),
    ("eps_clip: 0.1", {"eps_clip_high": 0.28}, {"eps_clip_high": 0.28}),
    ("bf16: false", {}, {"bf16": True, "params_dtype": torch.bfloat16, "fp16": False}),
    ("use_distributed_optimizer: false", {}, {"use_distributed_optimizer": True}),
    (
        "ckpt_fully_parallel_load: false",
        {"ckpt_fully_parallel_load": True},
        {"ckpt_fully_parallel_load": True},
    ),
    ("overlap_p2p_comm: true", {}, {"overlap_p2p_comm": False}),
    ("accumulate_allreduce_grads_in_fp32: false", {}, {"accumulate_allreduce_grads_in_fp32": True}),
    ("seq_length: null", {}, {"seq_length": 4096, "encoder_seq_length": 4096}),
    ("dataloader_type: null", {}, {"dataloader_type": "single"}),
    ("vocab_size: null", {}, {"padded_vocab_size": None}),
    (
        "use_rotary_position_embeddings: false",
        {"use_rotary_position_embeddings": True, "position_embedding_type": "rope"},
        {"position_embedding_type": "learned_absolute"},
    ),
    (
        "use_dynamic_batch_size: false",
        {
            "use_dynamic_batch_size": True,
            "max_tokens_per_gpu": 9,
            "log_probs_max_tokens_per_gpu": 9,
        },
        {"log_probs_max_tokens_per_gpu": None},
    ),
    (
        "tokenizer_model: /x",
        {
            "tokenizer_model": "/hf",
            "hf_checkpoint": "/hf",
            "tokenizer_type": "HuggingFaceTokenizer",
        },
        {"tokenizer_model": "/x", "tokenizer_type": None},
    ),
    (
        "ref_load: /x",
        {
            "load": "/r",
            "ref_load": "/r",
            "finetune": True,
            "no_load_optim": True,
            "no_load_rng": True,
        },
        {"load": "/x", "finetune": True},
    ),
    ("load: null", {"load": "/r", "ref_load": "/r"}, {"load": "/r", "no_load_rng": True}),
    (
        "fp16: true",
        {},
        {"bf16": False, "params_dtype": torch.float16, "check_for_nan_in_loss_and_grad": False},
    ),
    ("fp16: false", {"fp16": True, "bf16": False, "params_dtype": torch.float16}, {"bf16": True}),
    ("num_layers: 4", {}, {"encoder_num_layers": 4}),
    ("seq_length: 64", {}, {"encoder_seq_length": 64, "max_position_embeddings": 64}),
    ("hidden_size: 128", {}, {"ffn_hidden_size": 512, "kv_channels": 32}),
    ("hidden_size: 128", {"ffn_hidden_size": 999}, {"ffn_hidden_size": 999, "kv_channels": 32}),
    ("swiglu: true", {}, {"ffn_hidden_size": 128}),
    ("num_attention_heads: 8", {}, {"kv_channels": 8}),
    ("num_experts: 4", {}, {"moe_ffn_hidden_size": 256}),
    ("num_experts: 0", {"num_experts": 4}, {"num_experts": None}),
    (
        "padded_vocab_size: 0",
        {"vocab_size": 1000, "padded_vocab_size": 5},
        {"padded_vocab_size": 1024},
    ),
    ("vocab_size: 300", {}, {"padded_vocab_size": 512}),
    ("hf_checkpoint: /m", {"tokenizer_model": "/nonexistent/Qwen3-4B"}, {"tokenizer_model": "/m"}),
    ("hf_checkpoint: /m", {}, {"tokenizer_model": "x"}),
    ("ckpt_format: torch", {}, {"use_dist_ckpt": False}),
    ("dump_details: /d", {}, {"save_debug_train_data": "/d/train_data/{rollout_id}.pt"}),
    ("reward_key: score", {}, {"eval_reward_key": "score"}),
    (
        "max_tokens_per_gpu: 512",
        {"use_dynamic_batch_size": True},
        {"log_probs_max_tokens_per_gpu": 512},
    ),
    (
        "rollout_max_context_len: 512",
        {},
        {"rollout_max_prompt_len": 511, "eval_max_context_len": 512},
    ),
    ("moe_token_dispatcher_type: allgather", {}, {"moe_token_dispatcher_type": "alltoall"}),
    ("grad_reduce_in_bf16: true", {}, {"accumulate_allreduce_grads_in_fp32": False}),
    ("add_bias_linear: false", {}, {"bias_gelu_fusion": False, "add_qkv_bias": False}),
    ("add_qkv_bias: false", {}, {"add_qkv_bias": True}),
    ("position_embedding_type: none", {"apply_rope_fusion": True}, {"apply_rope_fusion": False}),
    ("use_rotary_position_embeddings: true", {}, {"position_embedding_type": "rope"}),
    ("apply_query_key_layer_scaling: true", {}, {"attention_softmax_in_fp32": True}),
    ("use_rollout_routing_replay: true", {}, {"use_routing_replay": True}),
    ("skip_train: true", {"no_load_optim": False}, {"no_load_optim": True}),
    ("cpu_offloading_num_layers: 1", {}, {"cpu_offloading": True}),
    ("cuda_graph_impl: transformer_engine", {}, {"te_rng_tracker": True}),
    ("cuda_graph_scope: full", {}, {"cuda_graph_scope": []}),
    (
        "no_weight_decay_cond_type: apply_wd_to_qk_layernorm",
        {},
        {"no_weight_decay_cond_type": None},
    ),
    ("replication_jump: 2", {}, {"replication_jump": None}),
    ("data_path: [a]", {}, {"split": "969, 30, 1"}),
    (
        "fake_process_group: true",
        {},
        {"enable_gloo_process_groups": False, "check_for_nan_in_loss_and_grad": False},
    ),
    ("rl_use_sequence_packing: true", {}, {"consumed_train_bins": 0}),
    ("encoder_seq_length: null", {}, {}),
    ("encoder_num_layers: null", {}, {}),
    ("perform_rl_step: true", {}, {"grpo_samples_per_iteration": 64}),
    ('phase_transition_iterations: "200, 100"', {}, {"phase_transition_iterations": [100, 200]}),
    ("enable_cuda_graph: true", {}, {"cuda_graph_impl": "local"}),
    ("multi_latent_attention: true", {}, {"rope_type": "yarn"}),
]


@pytest.mark.parametrize(
    ("line", "changes", "wanted"),
    FOLLOWED,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_derived_value_is_what_validation_would_have_made(
    line: str, changes: dict[str, Any], wanted: dict[str, Any], pristine: Namespace, tmp_path: Path
) -> None:
    """After the override, the derived arguments are those of the command line with that flag."""
    args, _ = resolve(pristine, tmp_path, line, **changes)
    assert {name: getattr(args, name) for name in wanted} == wanted


def test_the_log_says_what_followed(pristine: Namespace, tmp_path: Path) -> None:
    """The warning names the argument, what it follows, and both values."""
    _, warnings = resolve(pristine, tmp_path, "eps_clip: 0.1")
    assert "actor: `eps_clip_high` follows eps_clip: 0.2 -> 0.1" in warnings


def test_what_the_entry_sets_is_not_overwritten(pristine: Namespace, tmp_path: Path) -> None:
    """A derived value may still be chosen by itself."""
    args, _ = resolve(pristine, tmp_path, "eps_clip: 0.1", "eps_clip_high: 0.3")
    assert (args.eps_clip, args.eps_clip_high) == (0.1, 0.3)


def test_null_asks_for_the_derived_value(pristine: Namespace, tmp_path: Path) -> None:
    """Unset on the command line means derived, so null does in a role file."""
    args, _ = resolve(
        pristine,
        tmp_path,
        "eps_clip_high: null",
        "ffn_hidden_size: null",
        eps_clip_high=0.4,
        ffn_hidden_size=7,
    )
    assert (args.eps_clip_high, args.ffn_hidden_size) == (0.2, 256)


def test_nothing_is_derived_without_an_override(pristine: Namespace, tmp_path: Path) -> None:
    """A value that contradicts a rule in the base is the base's own business."""
    args, _ = resolve(pristine, tmp_path, "lr: 1", start_weight_decay=0.7, eps_clip_high=0.9)
    assert (args.start_weight_decay, args.eps_clip_high) == (0.7, 0.9)


def test_rules_whose_inputs_are_missing_do_nothing() -> None:
    """Another version of Megatron may lack any of the arguments."""
    assert derive({"eps_clip": 1.0}, {"eps_clip": 2.0}, {"eps_clip"}, {"eps_clip": 2.0}) == []
    assert derive({}, {"ffn_hidden_size": None, "hidden_size": None}, {"hidden_size"}, {}) == []


def test_the_rules_name_real_arguments() -> None:
    """A misspelt name in a table would never apply."""
    made = {rule.target for rule in IMPLIED if rule.is_new}
    named = {
        name for rule in (*FOLLOWING, *IMPLIED) for name in (rule.target, *rule.sources)
    } - made
    assert named - KNOWN == set()


def test_bf16_is_what_fp16_is_not(pristine: Namespace, tmp_path: Path) -> None:
    """slime sets bf16 by fp16, whatever its flag says."""
    changes: dict[str, Any] = {"fp16": True, "bf16": False, "params_dtype": torch.float16}
    args, _ = resolve(pristine, tmp_path, "bf16: true", **changes)
    assert (args.bf16, args.params_dtype) == (False, torch.float16)
    args, _ = resolve(pristine, tmp_path, "bf16: true", "fp16: false", **changes)
    assert args.params_dtype is torch.bfloat16


def test_an_argument_that_validation_takes_away_is_gone(
    pristine: Namespace, tmp_path: Path
) -> None:
    """It is recorded as asked for in vain."""
    path = tmp_path / "roles.yaml"
    path.write_text("megatron: [{role: actor, overrides: {external_cuda_graph: true}}]")
    found = parse_role_file(pristine, path)
    assert not hasattr(found.args["actor"], "external_cuda_graph")
    assert found.args["actor"].cuda_graph_impl == "transformer_engine"
    (one,) = [one for one in found.overrides["actor"] if one.key == "external_cuda_graph"]
    assert (one.value, one.source, one.asked) == (None, "derived", True)


@dataclass
class Dataset:
    """As slime has them."""

    name: str
    path: str
    top_p: float | None = None
    input_key: str | None = None


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("eval_top_p: 0.5", [Dataset("a", "a.jsonl", 0.5, "q"), Dataset("b", "b.jsonl", 0.9, "q")]),
        (
            "rollout_top_p: 0.5",
            [Dataset("a", "a.jsonl", 0.5, "q"), Dataset("b", "b.jsonl", 0.9, "q")],
        ),
        ("input_key: x", [Dataset("a", "a.jsonl", 1.0, "x"), Dataset("b", "b.jsonl", 0.9, "x")]),
        ("eval_prompt_data: [c, c.jsonl]", [Dataset("c", "c.jsonl", 1.0, "q")]),
        ("eval_prompt_data: c.jsonl", [Dataset("aime", "c.jsonl", 1.0, "q")]),
        ("lr: 1e-5", [Dataset("a", "a.jsonl", 1.0, "q"), Dataset("b", "b.jsonl", 0.9, "q")]),
    ],
)
def test_the_evaluations_datasets_follow_the_arguments_that_they_are_made_of(
    line: str, wanted: list[Dataset], pristine: Namespace, tmp_path: Path
) -> None:
    """What a dataset has of its own stays; the base's datasets stay as they are."""
    args = copy.copy(pristine)
    args.eval_top_p, args.rollout_top_p, args.eval_input_key, args.input_key = None, 1.0, None, "q"
    args.eval_prompt_data, args.eval_config = ["a", "a.jsonl", "b", "b.jsonl"], None
    args.eval_datasets = [Dataset("a", "a.jsonl", 1.0, "q"), Dataset("b", "b.jsonl", 0.9, "q")]
    path = tmp_path / "roles.yaml"
    path.write_text(f"megatron: [{{role: actor, overrides: {{{line}}}}}]")
    assert parse_role_file(args, path).args["actor"].eval_datasets == wanted
    assert [one.top_p for one in args.eval_datasets] == [1.0, 0.9]
