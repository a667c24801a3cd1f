"""The argument that a wrong key was meant to be.

Policy: names that users bring from other trainers are looked up in `SYNONYMS` (the first candidate that the job has
wins); anything else is compared with the job's own arguments, by letters and by words. Nothing is ever renamed quietly:
a suggestion is only part of an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence

from slime_logging.config.synonyms import SYNONYMS

MIN_SCORE = 0.6
"""Below it a name is no nearer than chance: `difflib`'s own default cutoff."""

SLIP_SCORE = 0.9
"""From here on a name is the key with a slip of the finger (one letter in ten)."""


def nearest(key: str, known: Collection[str], limit: int = 3) -> list[str]:
    """The arguments that `key` may have been meant to be, best first; empty where nothing is near.

    Args:
        key: The key as written.
        known: The job's arguments.
        limit: How many at most.
    """
    plain = _plain(key)
    for name in (plain, _plain(key.rpartition(".")[2])):
        if name in known:
            return [name]
    whole, *ends = [[name for name in SYNONYMS.get(form, ()) if name in known] for form in _forms(plain)]
    slips = nearest_texts(plain, known, limit, SLIP_SCORE)
    found = [*whole, *slips, *(name for end in ends for name in end), *nearest_texts(plain, known, limit)]
    return list(dict.fromkeys(found))[:limit]


def nearest_texts(text: str, known: Iterable[str], limit: int = 3, min_score: float = MIN_SCORE) -> list[str]:
    """The texts of `known` that are like `text`, best first."""
    scored = sorted((-_score(text, name), len(name), name) for name in known)
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
