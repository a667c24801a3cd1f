"""What validation reads from places: checkpoints, the model's own configuration, and datasets.

Policy: nothing is refused because a file is absent, unless the base's own stands on this machine:
then the job's files are here, and a missing one is a mistake. Sources as in `derive.py`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Values = Mapping[str, Any]

CONFIGURED: tuple[tuple[str, str], ...] = (
    ("hidden_size", "hidden_size"),
    ("num_attention_heads", "num_attention_heads"),
    ("num_hidden_layers", "num_layers"),
    ("intermediate_size", "ffn_hidden_size"),
    ("moe_intermediate_size", "moe_ffn_hidden_size"),
    ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"),
    ("rms_norm_eps", "layernorm_epsilon"),
    ("rope_theta", "rotary_base"),
)
"""Names in a checkpoint's config.json -> arguments that must be equal."""

WITHOUT_CHECKPOINT: Mapping[str, Any] = {
    "finetune": False,
    "no_load_optim": None,
    "no_load_rng": None,
}
"""True without a Megatron checkpoint to load, else what their flags say; with their defaults."""


DATASET_FIELDS: Mapping[str, tuple[str, ...]] = {
    "n_samples_per_eval_prompt": ("n_samples_per_eval_prompt", "n_samples_per_prompt"),
    "temperature": ("eval_temperature", "rollout_temperature"),
    "top_p": ("eval_top_p", "rollout_top_p"),
    "top_k": ("eval_top_k", "rollout_top_k"),
    "max_response_len": ("eval_max_response_len", "rollout_max_response_len"),
    "stop": ("rollout_stop",),
    "stop_token_ids": ("rollout_stop_token_ids",),
    "min_new_tokens": ("eval_min_new_tokens",),
    "input_key": ("eval_input_key", "input_key"),
    "label_key": ("eval_label_key", "label_key"),
    "tool_key": ("eval_tool_key", "tool_key"),
    "metadata_key": ("metadata_key",),
    "multimodal_keys": ("multimodal_keys",),
    "apply_chat_template": ("apply_chat_template",),
    "apply_chat_template_kwargs": ("apply_chat_template_kwargs",),
    "custom_rm_path": ("custom_rm_path",),
}
"""What a dataset of the evaluation has -> the arguments that it comes from, the first that is
set.
"""

DEFAULT_NAME = "aime"
"""Of a single dataset that is given without a name."""


def datasets(base: Values, values: Values) -> dict[str, Any]:
    """The evaluation's datasets, which slime makes of other arguments; empty where the base has
    none, of which others could be made.
    """
    found = [copy.copy(one) for one in values.get("eval_datasets") or ()]
    if not found:
        return {}
    for one in found:
        for name, sources in DATASET_FIELDS.items():
            was, now = _first_set(base, sources), _first_set(values, sources)
            if was != now and getattr(one, name, None) == was:
                setattr(one, name, now)
    said = values.get("eval_prompt_data")
    if not said or values.get("eval_config") is not None or said == base.get("eval_prompt_data"):
        return {"eval_datasets": found}
    said = [DEFAULT_NAME, *said] if len(said) == 1 else said
    named = [copy.copy(found[0]) for _ in said[::2]]
    for one, name, path in zip(named, said[::2], said[1::2], strict=False):
        one.name, one.path = name, path
    return {"eval_datasets": named, "eval_prompt_data": said}


def _first_set(values: Values, names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def has_checkpoint(folder: Any) -> bool:
    """Whether this is a Megatron checkpoint on this machine."""
    return isinstance(folder, str) and (Path(folder) / "latest_checkpointed_iteration.txt").exists()


def loaded(base: Values, values: Values, written: Values) -> dict[str, Any]:
    """What slime makes of `load` and of what depends on it; empty where an argument is missing."""
    names = ("load", "ref_load", "ref_ckpt_step", "ckpt_step", "start_rollout_id")
    if any(name not in base for name in (*names, *WITHOUT_CHECKPOINT)):
        return {}
    was_replaced = base["load"] == base["ref_load"] and all(
        base[name] is True for name in WITHOUT_CHECKPOINT
    )
    load = written["load"] if "load" in written else None if was_replaced else base["load"]
    found: dict[str, Any] = {"load": load}
    if has_checkpoint(load):
        for name, default in WITHOUT_CHECKPOINT.items():
            if name not in written and (was_replaced or not has_checkpoint(base["load"])):
                found[name] = default
        if was_replaced and values["start_rollout_id"] == 0:
            found["start_rollout_id"] = None
        return found
    found.update(dict.fromkeys(WITHOUT_CHECKPOINT, True))
    if not (isinstance(load, str) and (Path(load) / "config.json").exists()):
        found["load"] = values["ref_load"]
    if values["start_rollout_id"] is None:
        found["start_rollout_id"] = 0
    if values["ref_ckpt_step"] is not None:
        found["ckpt_step"] = values["ref_ckpt_step"]
    return found


def tokenizer(base: Values, values: Values, written: Values) -> dict[str, Any]:
    """The tokenizer, which is the checkpoint's where nothing else is asked for."""
    names = ("tokenizer_model", "tokenizer_type", "hf_checkpoint")
    if any(name not in base for name in names):
        return {}
    was_model = base["tokenizer_model"] == base["hf_checkpoint"]
    was_type = was_model and base["tokenizer_type"] == "HuggingFaceTokenizer"
    model = written.get("tokenizer_model", None if was_model else base["tokenizer_model"])
    kind = written.get("tokenizer_type", None if was_type else base["tokenizer_type"])
    if model:
        return {"tokenizer_model": model, "tokenizer_type": kind}
    return {
        "tokenizer_model": values["hf_checkpoint"],
        "tokenizer_type": kind or "HuggingFaceTokenizer",
    }


def misfit(values: Values) -> str:
    """The first argument that is not what the checkpoint's config.json says, as a sentence; empty
    where there is none, or no such file.
    """
    try:
        config = json.loads((Path(values["hf_checkpoint"]) / "config.json").read_text())
        config = config.get("text_config", config)
        pairs = [(config[name], name, key) for name, key in CONFIGURED if name in config]
        if any("expert" in name or name == "moe_intermediate_size" for name in config):
            pairs = [pair for pair in pairs if pair[1] != "intermediate_size"]
        wrong = next((it for it in pairs if it[2] in values and values[it[2]] != it[0]), None)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return ""
    return "" if wrong is None else f"{wrong[2]} is {wrong[0]} in the checkpoint's config.json"


def is_missing(path: Any, *others: Any) -> bool:
    """Whether a path is not there, on a machine where another of the job's is."""
    is_here = any(isinstance(other, str) and other and Path(other).exists() for other in others)
    return is_here and isinstance(path, str) and not Path(path).exists()
