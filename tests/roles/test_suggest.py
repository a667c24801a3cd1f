"""Suggestions, measured on names that users of other trainers write."""

from __future__ import annotations

import pytest

from slime_logging.demo.namespace import ppo_namespace
from slime_logging.roles.megatron.options import OptionTable
from slime_logging.roles.suggest import nearest, nearest_texts
from slime_logging.roles.synonyms import SYNONYMS

KNOWN = frozenset(vars(ppo_namespace()))

WRONG_KEYS = {
    # verl: trainer configuration
    "optim.lr": "lr",
    "lr_warmup_steps": "lr_warmup_iters",
    "lr_warmup_steps_ratio": "lr_warmup_fraction",
    "warmup_style": "lr_decay_style",
    "grad_clip": "clip_grad",
    "clip_ratio": "eps_clip",
    "clip_ratio_high": "eps_clip_high",
    "clip_ratio_c": "eps_clip_c",
    "cliprange_value": "value_clip",
    "entropy_coeff": "entropy_coef",
    "ppo_mini_batch_size": "global_batch_size",
    "ppo_micro_batch_size_per_gpu": "micro_batch_size",
    "use_dynamic_bsz": "use_dynamic_batch_size",
    "ppo_max_token_len_per_gpu": "max_tokens_per_gpu",
    "ulysses_sequence_parallel_size": "context_parallel_size",
    "lam": "lambd",
    "adv_estimator": "advantage_estimator",
    "critic_warmup": "num_critic_only_steps",
    "max_response_length": "rollout_max_response_len",
    "save_freq": "save_interval",
    # OpenRLHF: command line
    "actor_learning_rate": "lr",
    "critic_learning_rate": "lr",
    "max_norm": "clip_grad",
    "init_kl_coef": "kl_coef",
    "micro_train_batch_size": "micro_batch_size",
    "train_batch_size": "global_batch_size",
    "generate_max_len": "rollout_max_response_len",
    "prompt_max_len": "rollout_max_prompt_len",
    "lr_warmup_ratio": "lr_warmup_fraction",
    "lr_scheduler": "lr_decay_style",
    "l2": "weight_decay",
    "freezing_actor_steps": "num_critic_only_steps",
    "ring_attn_size": "context_parallel_size",
    "save_path": "save",
    "kl_estimator": "kl_loss_type",
    # NeMo-RL: YAML
    "max_grad_norm": "clip_grad",
    "train_global_batch_size": "global_batch_size",
    "train_micro_batch_size": "micro_batch_size",
    "ratio_clip_min": "eps_clip",
    "ratio_clip_max": "eps_clip_high",
    "reference_policy_kl_penalty": "kl_loss_coef",
    "num_prompts_per_step": "rollout_batch_size",
    "num_generations_per_prompt": "n_samples_per_prompt",
    "max_total_sequence_length": "seq_length",
    "tensor_parallel_size": "tensor_model_parallel_size",
    # TRL and transformers: training arguments and model configurations
    "learning_rate": "lr",
    "warmup_steps": "lr_warmup_iters",
    "warmup_ratio": "lr_warmup_fraction",
    "lr_scheduler_type": "lr_decay_style",
    "adam_epsilon": "adam_eps",
    "per_device_train_batch_size": "micro_batch_size",
    "gradient_checkpointing": "recompute_granularity",
    "num_generations": "n_samples_per_prompt",
    "max_completion_length": "rollout_max_response_len",
    "cliprange": "eps_clip",
    "output_dir": "save",
    "num_hidden_layers": "num_layers",
    "intermediate_size": "ffn_hidden_size",
    "rope_theta": "rotary_base",
    "num_key_value_heads": "num_query_groups",
}
"""60 names as those trainers document them -> the argument that does the same here."""

TYPOS = {
    "clip_gard": "clip_grad",
    "weigth_decay": "weight_decay",
    "eps_clip_hihg": "eps_clip_high",
    "lr_warmup_iter": "lr_warmup_iters",
    "lr_decay_stile": "lr_decay_style",
    "adam_beta_1": "adam_beta1",
    "entropy_coeficient": "entropy_coef",
    "use_kl_los": "use_kl_loss",
    "mirco_batch_size": "micro_batch_size",
    "max_token_per_gpu": "max_tokens_per_gpu",
    "recompute_num_layer": "recompute_num_layers",
    "normalise_advantages": "normalize_advantages",
    "WeightDecay": "weight_decay",
    "--min-lr": "min_lr",
    "freeze_param_names_list": "freeze_params_name_list",
}

ASKED_FOR = [
    "learning_rate",
    "max_grad_norm",
    "tp_size",
    "pp_size",
    "wd",
    "beta1",
    "warmup_steps",
    "scheduler",
]
ASKED_FOR += ["cliprange", "value_clip_range", "kl", "gae_lambda", "seq_len", "batch_size"]


def test_the_right_argument_comes_first_for_85_percent_of_60_foreign_names() -> None:
    """Names from verl, OpenRLHF, NeMo-RL, TRL and transformers lead to the argument that does the same."""
    assert len(WRONG_KEYS) == 60
    right = [wrong for wrong, key in WRONG_KEYS.items() if nearest(wrong, KNOWN)[:1] == [key]]
    assert len(right) >= 0.85 * len(WRONG_KEYS), set(WRONG_KEYS) - set(right)


@pytest.mark.parametrize("typo", TYPOS)
def test_a_typo_leads_to_the_argument(typo: str) -> None:
    """A slip of letters, a plural, camel case or a leading `--` is recognised."""
    assert nearest(typo, KNOWN)[0] == TYPOS[typo]


@pytest.mark.parametrize("name", ASKED_FOR)
def test_a_usual_foreign_name_has_a_suggestion(name: str) -> None:
    """The names that users bring most often are in the table, with an argument that the job has."""
    assert nearest(name, KNOWN)[0] in SYNONYMS[name]


def test_every_synonym_names_an_option() -> None:
    """No entry of the table leads to a name that neither Megatron-LM nor slime has."""
    options = KNOWN | set(OptionTable.shipped())
    assert [
        name for name, keys in SYNONYMS.items() if not any(key in options for key in keys)
    ] == []


def test_no_synonym_is_an_argument_itself() -> None:
    """A name that the job has is never called wrong."""
    assert KNOWN & set(SYNONYMS) == set()


def test_only_arguments_of_the_job_are_suggested() -> None:
    """A job without the argument gets another suggestion, or none."""
    assert nearest("learning_rate", {"weight_decay"}) == []


def test_a_dotted_path_ends_in_the_argument() -> None:
    """`optim.lr`, as nested configurations have it, is `lr`."""
    assert nearest("policy.optim.lr", KNOWN)[0] == "lr"


def test_nothing_is_suggested_for_a_name_like_no_other() -> None:
    """A far guess is worse than none."""
    assert nearest("zzqqxx", KNOWN) == []


def test_likeness_is_by_letters_and_by_words() -> None:
    """A word more or less, or a slip of a letter, keeps names alike."""
    assert nearest_texts("override", ["name", "role", "overrides"], 1) == ["overrides"]
