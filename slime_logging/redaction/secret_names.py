"""Which names say that their value is a secret.

Policy: a name is judged by its words (`sglangApiKey` -> sglang, api, key), never by its value. A
word that means a secret means one wherever it stands (`api_key_openai`, `hf_token_ro`), unless the
words beside it say otherwise (`reward_key`, `max_tokens`, `token_loss`), or the last word says that
the value only tells something about a secret (`api_key_file`, `password_length`).
"""

from __future__ import annotations

import enum
import fnmatch
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeAlias

from slime_logging.errors import SettingsError
from slime_logging.redaction import secret_words as tables
from slime_logging.redaction.secret_words import SECRET_WORDS


class Verdict(enum.IntEnum):
    """How a value under a name is treated; higher is stricter."""

    SHOWN = 0
    IF_RANDOM = 1
    """Hidden where it looks generated; the name (`key`, `sig`, `token_x`) says too little."""
    IN_DATA = 2
    """Hidden in data; in running text, where `token: expected` is prose, only if it is no word."""
    HIDDEN = 3
    FORCED = 4
    """Hidden by the user's own rule: bools and the numbers of a row too."""


Judge: TypeAlias = Callable[[str], Verdict]
"""How a value under a name is treated."""

_HINT = re.compile(rf"{tables.HINT}|\b(?:pat|pw)\b")

MAX_NAME_CHARS = 256
"""Longer names are judged by their end; the longest option of Megatron and slime has 57."""
MAX_REMEMBERED = 50_000
"""Verdicts kept; names come from options and metrics, so a sound job stays far below."""

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_KEYS = frozenset({"key", "keys", "token", "tokens"})
_SEGMENT = re.compile(r"[/.:\[\]]+")


def leaf(name: str) -> str:
    """The last part of a path of names: `critic/wandb_key`, `critic.wandb_key` -> `wandb_key`."""
    parts = _parts(name)
    return parts[-1] if parts else name


def judge(name: str) -> Verdict:
    """How a value under this name is treated, by the tables above.

    The last part of a path decides; earlier parts count where they are plainly secret
    (`secrets/database/user`).
    """
    name = unicodedata.normalize("NFKC", name[-MAX_NAME_CHARS:])
    if not may_be_secret(name):
        return Verdict.SHOWN
    parts = _parts(name)
    if not parts or parts[-1].strip("-").replace("-", "_").lower() in tables.HARMLESS_NAMES:
        return Verdict.SHOWN
    if parts[-1] == "PWD":
        return Verdict.IF_RANDOM  # the shell's working directory
    if any(_is_plain(_words(part)) for part in parts[:-1]):
        return Verdict.HIDDEN
    return _judge_words(_words(parts[-1]))


def may_be_secret(text: str) -> bool:
    """Whether a name could be a secret's, or a text have such a name in it."""
    return _HINT.search(text.lower()) is not None


def _parts(name: str) -> list[str]:
    return [part for part in _SEGMENT.split(name) if part.strip("-_ ")]


def _words(part: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(part)]
    # `APIkey` falls apart into ap, ikey; the same text in one case does not.
    whole = re.findall(r"[^\W_]+", part.lower())
    if any(map(_has_secret, whole)) and not any(map(_has_secret, words)):
        words = whole
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in tables.SUFFIXES):
        words.pop()
    return words


def _has_secret(word: str) -> bool:
    return not word.startswith("secretar") and any(secret in word for secret in SECRET_WORDS)


def _is_plain(words: list[str]) -> bool:
    """Whether the words themselves are a secret's: one of `SECRET_WORDS`, or a key or token with a
    qualifier beside it.
    """
    if not words or words[-1] in tables.ABOUT:
        return False
    return (
        any(map(_has_secret, words))
        or any(
            word in _KEYS
            and before in tables.QUALIFIERS
            and not (
                word.startswith("token") and behind in tables.HARMLESS_BESIDE
            )  # `teacher_token_ids`
            for before, word, behind in zip(["", *words], words, [*words[1:], ""], strict=False)
        )
    )


def _judge_words(words: list[str]) -> Verdict:
    if not words:
        return Verdict.SHOWN
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if [before, last] == ["webhook", "url"]:
        return Verdict.HIDDEN  # whoever has the address can post
    if last in tables.ABOUT:
        return Verdict.SHOWN
    if words[0] in ("num", "max", "min", "total", "count", "n") and last.endswith("s"):
        return Verdict.SHOWN
    joined = {"".join(words[at : at + 2]) for at in range(len(words) - 1)}
    if _is_plain(words) or joined & SECRET_WORDS or words[-3:] == ["access", "key", "id"]:
        is_column = last in _KEYS and before in tables.HARMLESS_BESIDE
        return Verdict.SHOWN if is_column and not _is_plain(words[:-1]) else Verdict.HIDDEN
    return max(_judge_at(words, at) for at in range(len(words)))


def _judge_at(words: list[str], at: int) -> Verdict:
    """What the word at this place says."""
    word, is_last = words[at], at == len(words) - 1
    before = words[at - 1] if at else ""
    behind = "" if is_last else words[at + 1]
    if word in ("key", "token"):
        if before in tables.HARMLESS_BESIDE or behind in tables.HARMLESS_BESIDE:
            return Verdict.SHOWN
        if behind in tables.QUALIFIERS or (before and is_last):
            return Verdict.HIDDEN
        if is_last:
            return Verdict.IF_RANDOM if word == "key" else Verdict.IN_DATA
        return Verdict.IF_RANDOM
    if word in ("pass", "pw") and before not in tables.PASS_BEFORE:
        return Verdict.IF_RANDOM if len(words) == 1 or words[1:] == ["1"] else Verdict.SHOWN
    if word in ("pass", "pw", "pwd"):
        return {"": Verdict.IN_DATA, "old": Verdict.IF_RANDOM}.get(before, Verdict.HIDDEN)
    if word in ("authorization", "cookie", "cookies", "setcookie", "webhook"):
        return Verdict.HIDDEN
    if word in tables.ALONE and (is_last or behind in ("config", "header", "headers")):
        return Verdict.HIDDEN if before else Verdict.IN_DATA
    if word in tables.SIGNATURES and is_last:
        return Verdict.HIDDEN if {"amz", "goog"} & set(words) else Verdict.IF_RANDOM
    return Verdict.SHOWN


class NameRules:
    """Judges names by the user's own rules first, then by the tables; verdicts are remembered.

    `show` (exact names) beats everything that goes by name, not what goes by value or form; `hide`
    (exact names, globs, `re:` patterns; `text:` ones are left to `secret_forms`) comes next.

    Raises:
        SettingsError: a pattern that does not compile, or one where only an exact name is allowed.
    """

    def __init__(self, *, hide: Sequence[str] = (), show: Sequence[str] = ()) -> None:
        for name in show:
            if not name.strip() or re.search(r"[*?\[\]]|^(?:re|text):", name):
                raise SettingsError(
                    f"--tracking-show {name!r}: only exact names can be shown, because a pattern"
                    " would show secrets that nobody thought of. Write each name out."
                )
        self._show = frozenset(map(_normal, show))
        names = [name for name in hide if not name.startswith("text:")]
        self._hide = [_compiled(name) for name in names]
        self._verdicts: dict[str, Verdict] = {}

    @property
    def has_own(self) -> bool:
        """Whether the user hides names of their own, which `HINT` knows nothing of."""
        return bool(self._hide)

    def judge(self, name: str) -> Verdict:
        """How a value under this name is treated."""
        verdict = self._verdicts.get(name)
        if verdict is None:
            if len(self._verdicts) >= MAX_REMEMBERED:
                self._verdicts.clear()
            verdict = self._verdicts[name] = self._judge(name)
        return verdict

    def _judge(self, name: str) -> Verdict:
        ways = {_normal(name), _normal(leaf(name))} if self._show or self._hide else set()
        if ways & self._show:
            return Verdict.SHOWN
        if any(pattern.search(way) for pattern in self._hide for way in ways):
            return Verdict.FORCED
        return judge(name)


def _normal(name: str) -> str:
    return name.strip().lstrip("-").replace("-", "_").lower()


def _compiled(name: str) -> re.Pattern[str]:
    if not name.startswith("re:"):
        is_glob = any(c in name for c in "*?[")
        written = fnmatch.translate(_normal(name)) if is_glob else re.escape(_normal(name)) + r"\Z"
        return re.compile(written if is_glob else rf"\A{written}", re.IGNORECASE)
    try:
        compiled = re.compile(name.removeprefix("re:"), re.IGNORECASE)
    except re.error as error:
        raise SettingsError(f"--tracking-hide {name!r}: no regular expression ({error}).") from None
    if not compiled.pattern:
        raise SettingsError(f"--tracking-hide {name!r}: the pattern must not be empty.")
    return compiled
