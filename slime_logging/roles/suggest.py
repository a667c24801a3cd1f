"""The argument that a wrong key was meant to be.

Policy: names that users bring from other trainers are looked up in `SYNONYMS` (the first candidate
that the job has wins); anything else is compared with the job's own arguments, by letters and by
words. Nothing is ever renamed quietly: a suggestion is only part of an error.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Sequence

from slime_logging.roles.synonyms import SYNONYMS

MIN_SCORE = 0.6
"""Below it a name is no nearer than chance: `difflib`'s own default cutoff."""

MAX_CHARS = 100
"""Longer keys are compared by their beginning; the longest option has 58 characters."""

NUM_CLOSE = 30
"""How many names are compared letter by letter, which takes most of the time."""

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
    whole, *ends = [
        [name for name in SYNONYMS.get(form, ()) if name in known] for form in _forms(plain)
    ]
    like = _scored(plain, known)
    slips = [name for score, name in like if score >= SLIP_SCORE]
    others = [name for score, name in like if score >= MIN_SCORE]
    return list(dict.fromkeys([*whole, *slips, *(name for end in ends for name in end), *others]))[
        :limit
    ]


def nearest_texts(text: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """The texts of `known` that are like `text`, best first."""
    return [name for score, name in _scored(text, known)[:limit] if score >= MIN_SCORE]


def _scored(text: str, known: Iterable[str]) -> list[tuple[float, str]]:
    """The most alike with their scores, best first; only what shares letter pairs or words is
    looked at closely.
    """
    text = text[:MAX_CHARS]
    pairs, words = _pairs(text), set(text.split("_"))
    rough = sorted(
        known,
        key=lambda name: (
            -_overlap(pairs, _pairs(name)) - _overlap(words, set(name.split("_"))),
            name,
        ),
    )
    scored = sorted((-_score(text, name), len(name), name) for name in rough[:NUM_CLOSE])
    return [(-score, name) for score, _, name in scored]


@functools.lru_cache(maxsize=4096)
def _pairs(text: str) -> frozenset[str]:
    return frozenset(first + second for first, second in itertools.pairwise(f" {text} "))


def _overlap(left: Collection[str], right: Collection[str]) -> float:
    return 2 * len(set(left) & set(right)) / (len(left) + len(right))


def _plain(key: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key[:MAX_CHARS].strip().lstrip("-"))
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def _forms(plain: str) -> Sequence[str]:
    """The key, and its ends: `optim.lr_warmup_steps` and `actor_lr_warmup_steps` end in a known
    name.
    """
    words = plain.split("_")
    return ["_".join(words[start:]) for start in range(len(words))]


def _score(text: str, name: str) -> float:
    """Likeness from 0 to 1: by letters, or by shared words where they are most of the name."""
    letters = difflib.SequenceMatcher(None, text, name, autojunk=False).ratio()
    return max(letters, 0.95 * _overlap(set(text.split("_")), set(name.split("_"))))
