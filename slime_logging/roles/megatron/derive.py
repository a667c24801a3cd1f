"""Values that Megatron-LM's and slime's validation compute from others, computed again for a role.

The role file is applied after validation, so what validation derived on the command line would go
stale. Each rule below was read in `validate_args` of Megatron-LM (1dcf0daf), `slime_validate_args`,
`_set_default_megatron_args` or the `validate_args` of slime's Megatron backend (slime 624b824).

| decision | when |
|---|---|
| follow (`FOLLOWING`) | the base holds what the rule gives from the base's values, so it was
derived: computed again | | imply (`IMPLIED`) | validation sets it whatever the command line said:
it is set here too | | reject, warn | combinations that validation refuses or that would not do what
they say: `requirements.py` |

Policy: an argument that the role file itself sets is never overwritten by a `FOLLOWING` rule,
unless it is set to null, which means "derive it" on the command line too. A rule whose inputs an
older or newer Megatron lacks does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from slime_logging.roles.megatron.derived import (
    ALWAYS,
    FIRST,
    FOLLOWING,
    GONE,
    IMPLIED,
    KEEP,
    Follow,
    Imply,
    Values,
)
from slime_logging.roles.megatron.places import DATASET_FIELDS, datasets, loaded, tokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """A value that a rule set (None where it took the argument away), and where it came from."""

    key: str
    value: Any
    sources: tuple[str, ...]


def derive(
    base: Values, values: dict[str, Any], changed: Collection[str], written: Values
) -> list[Derived]:
    """Bring derived values of a role up to date, in `values`.

    Args:
        base: The base's arguments.
        values: The role's arguments, with its overrides; changed in place.
        changed: The arguments that differ from the base's, or are set by the role file.
        written: What the role file itself sets, by name.

    Returns:
        What was changed, in order.
    """
    moved = set(changed)
    found: list[Derived] = []
    for key, value in _from_places(base, values, moved, written):
        if not _equal(values.get(key), value):
            sources = tuple(name for name in (*PLACES, *DATASETS) if name in moved)
            values[key] = value
            moved.add(key)
            found.append(Derived(key=key, value=value, sources=sources))
    rules: tuple[Follow | Imply, ...] = (*FIRST, *FOLLOWING, *IMPLIED)
    for rule in rules:
        is_there = rule.target in values or (isinstance(rule, Imply) and rule.is_new)
        if not is_there or moved.isdisjoint((*rule.sources, rule.target)):
            continue
        value = (
            _followed(rule, base, values, written)
            if isinstance(rule, Follow)
            else _implied(rule, values)
        )
        if value is KEEP or _equal(values.get(rule.target), value):
            continue
        _put(values, rule.target, value)
        moved.add(rule.target)
        sources = tuple(name for name in rule.sources if name in moved)
        found.append(Derived(key=rule.target, value=values.get(rule.target), sources=sources))
    return found


def fill(values: dict[str, Any]) -> None:
    """Compute what validation derives in arguments fresh from the parser, in place."""
    rules: tuple[Follow | Imply, ...] = (*FIRST, *FOLLOWING, *IMPLIED)
    for rule in rules:
        if isinstance(rule, Imply):
            value = _implied(rule, values)
        elif values.get(rule.target, KEEP) is None:
            value = _tried(rule.compute, values)
        else:
            continue
        if rule.target in values and value is not KEEP:
            _put(values, rule.target, value)


PLACES = (
    *("load", "ref_load", "ref_ckpt_step", "finetune", "no_load_optim", "no_load_rng"),
    *("tokenizer_model", "tokenizer_type", "hf_checkpoint"),
)
"""What checkpoints and tokenizers go by in `places.py`."""

DATASETS = ("eval_prompt_data", *(name for names in DATASET_FIELDS.values() for name in names))
"""What datasets go by."""


def _from_places(
    base: Values, values: Values, moved: set[str], written: Values
) -> list[tuple[str, Any]]:
    found = [(name, True) for name in ALWAYS if name in moved and base.get(name) is True]
    if not moved.isdisjoint(PLACES[:6]):
        found += loaded(base, values, written).items()
    if not moved.isdisjoint(PLACES[6:]):
        found += tokenizer(base, values, written).items()
    if not moved.isdisjoint(DATASETS):
        found += datasets(base, values).items()
    return found


def _followed(rule: Follow, base: Values, values: Values, written: Values) -> Any:
    is_asked = rule.target in written and written[rule.target] is None
    if rule.target in written and not is_asked:
        return KEEP
    was = _tried(rule.compute, base)
    is_derived = was is not KEEP and _equal(base.get(rule.target), was)
    if not is_asked and not is_derived and base.get(rule.target) is not None:
        return KEEP
    return _tried(rule.compute, values)


def _implied(rule: Imply, values: Values) -> Any:
    holds = _tried(rule.when, values)
    if holds is KEEP or not holds:
        return KEEP
    return rule.value(values) if callable(rule.value) else rule.value


def _put(values: dict[str, Any], target: str, value: Any) -> None:
    if value is GONE:
        del values[target]
    else:
        values[target] = value


def _tried(compute: Callable[[Values], Any], values: Values) -> Any:
    """What a rule gives, or `KEEP` where its inputs are missing or unset."""
    try:
        return compute(values)
    except (LookupError, TypeError, ArithmeticError, ImportError):
        return KEEP


def _equal(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)
