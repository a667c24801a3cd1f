"""The secrets this process knows by their text, found wherever they turn up, encoded too.

Policy: what is learned stays in this object and in no `repr`. Texts of fewer than `MIN_CHARS`
characters and everyday values (`EVERYDAY`) are not learned: they would be hidden in every word that
holds them, and be found out by what is missing. A short or purely alphabetic secret is replaced
only where it stands alone as a word.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
import urllib.parse
from collections.abc import Callable
from typing import TypeAlias

from slime_logging.redaction.marks import MARK
from slime_logging.redaction.secret_names import word_set

MIN_CHARS = 6
"""Shorter texts occur by chance. No service issues shorter keys."""
MIN_DIGITS = 10
"""Of a purely numeric secret: shorter numbers are steps, seeds and sizes."""
ANYWHERE_CHARS = 12
"""From this length on a secret that is not purely alphabetic is replaced even inside of a word."""
LINE_CHARS = 16
"""Lines of a secret of several lines (PEM) are secrets of their own from this length on."""
MAX_CHARS = 16_384
"""The longest text that is learned; a private key of 16,384 bits has 13,000."""

MAX_FRESH_FORMS = 400
"""Forms (about 20 a secret) that are searched for apart from the others, because compiling all of
them again takes longer.
"""
MAX_NOTICED = 200
"""Secrets learned in passing, from values and texts that were hidden by name or form; so that a
long job stays bounded.
"""

_PATH = re.compile(
    r"(?:~|\.{1,2}|/(?:root|home|usr|etc|var|tmp|mnt|data|opt|run|srv|dev|proc|workspace|scratch|nfs|lustre|shared|secrets|Users))/"
)
_WORDS = re.compile(r"[A-Za-z ,.:;'_<>()|-]*\d?")

EVERYDAY = word_set(
    "none null true false default password passwd secret secrets changeme change_me example unknown empty public",
    "private admin root user username guest anonymous localhost token api_key apikey key your_api_key",
    "your-api-key dummy placeholder disabled enabled online offline shared auto string optional required",
    "undefined redacted hidden wandb sglang slime megatron openai huggingface bearer basic not_needed",
    "no-key-required no_key_required",
)
"""Values that people write where no key is needed; compared in lower case."""


_Patterns: TypeAlias = tuple[re.Pattern[str], ...]


class KnownSecrets:
    """A growing set of secret texts, each with the name it is shown by."""

    def __init__(self) -> None:
        self._plain: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._fresh: list[str] = []
        self._num_noticed = 0
        self._patterns: tuple[_Patterns, _Patterns] = ((), ())
        self._is_stale = False
        self._is_settled = True
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._plain)

    def __repr__(self) -> str:
        return f"KnownSecrets(num_secrets={len(self._plain)})"

    @property
    def forms(self) -> tuple[str, ...]:
        """Every text that `replace` looks for."""
        return tuple(self._names)

    def learn(self, name: str, text: str, ordinary: frozenset[str] = frozenset()) -> bool:
        """Remember a secret's text under a name; returns whether it is new.

        Args:
            name: what the replacement shows.
            text: the secret, as it is used.
            ordinary: texts that are no secrets here, such as the names of the options.
        """
        text = text.strip()
        if text in self._plain or text in ordinary or not is_learnable(text):
            return False
        forms = encoded_forms(text)
        with self._lock:
            # A longer secret must be found before one inside of it. The fresh ones are looked for
            # first, so one that is inside of an older one has to be settled together with it.
            if len(self._fresh) >= MAX_FRESH_FORMS or any(text in known for known in self._plain):
                self._is_settled = False
            self._fresh += forms
            self._plain[text] = name
            for form in forms:
                self._names.setdefault(form, name)
            self._is_stale = True
        return True

    def notice(self, name: str, text: str, ordinary: frozenset[str] = frozenset()) -> bool:
        """As `learn`, for what was hidden in passing: plain words and addresses are passed over,
        and the number is bounded.
        """
        if self._num_noticed >= MAX_NOTICED or _WORDS.fullmatch(text.strip()) or "://" in text:
            return False
        is_new = self.learn(name, text, ordinary)
        self._num_noticed += is_new
        return is_new

    def is_known(self, text: str) -> bool:
        """Whether the whole text is a known secret."""
        return text in self._plain

    def replace(self, text: str, shown: Callable[[str], str]) -> str:
        """The text with every known secret, plain or encoded, replaced by `shown(name)`; marks are
        left alone.
        """
        if not self._plain:
            return text
        if self._is_stale:
            self._compile()
        for patterns in self._patterns:
            for pattern in patterns:
                if pattern.search(text):
                    text = self._replaced(text, pattern, shown)
        return text

    def _replaced(self, text: str, pattern: re.Pattern[str], shown: Callable[[str], str]) -> str:
        pieces: list[str] = []
        done = 0
        for mark in MARK.finditer(text):
            pieces += [
                pattern.sub(lambda m: shown(self._names[m.group()]), text[done : mark.start()]),
                mark.group(),
            ]
            done = mark.end()
        return "".join([*pieces, pattern.sub(lambda m: shown(self._names[m.group()]), text[done:])])

    def _compile(self) -> None:
        """Compile the fresh forms, and the settled ones only where those changed: learning one more
        secret stays cheap.
        """
        with self._lock:
            settled = self._patterns[1]
            if not self._is_settled:
                settled = _patterns_of(list(self._names))
                self._fresh = []
            self._patterns = (_patterns_of(self._fresh), settled)
            self._is_settled = True
            self._is_stale = False

    def cut_off(self, text: str) -> tuple[int, str] | None:
        """Where a known secret begins that the end of the text cuts off, and its name; None if
        there is none.
        """
        best: tuple[int, str] | None = None
        for form, name in list(self._names.items()):
            for size in range(min(len(form) - 1, len(text)), MIN_CHARS - 1, -1):
                if text.endswith(form[:size]) and not form[:size].isalpha():
                    if best is None or len(text) - size < best[0]:
                        best = (len(text) - size, name)
                    break
        return best


def _patterns_of(forms: list[str]) -> _Patterns:
    anywhere = _any_of([form for form in forms if not _stands_alone(form)])
    alone = _any_of([form for form in forms if _stands_alone(form)])
    found = [re.compile(anywhere)] if anywhere else []
    return (*found, re.compile(rf"(?<!\w)(?:{alone})(?!\w)")) if alone else tuple(found)


def _stands_alone(form: str) -> bool:
    """Whether a form is so short or wordlike that it counts only where no letter or digit touches
    it.
    """
    return (
        len(form) < ANYWHERE_CHARS
        or form.isdigit()
        or (form.isalpha() and len(form) < 2 * ANYWHERE_CHARS)
    )


def _any_of(forms: list[str]) -> str:
    """A pattern for any of the forms, longest first, grouped by first character, so that most
    positions cost one comparison.
    """
    by_first: dict[str, list[str]] = {}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        by_first.setdefault(form[0], []).append(form[1:])
    return "|".join(
        f"{re.escape(first)}(?:{'|'.join(map(re.escape, rests))})"
        for first, rests in sorted(by_first.items())
    )


def is_learnable(text: str) -> bool:
    """Whether a text is long and rare enough to be looked for everywhere."""
    if not MIN_CHARS <= len(text) <= MAX_CHARS or text.lower() in EVERYDAY or "<hidden: " in text:
        return False
    if _PATH.match(text) and len(text.split()) == 1 and len(text) < 256:
        return False  # the file that holds the secret
    if text.isdigit():
        return len(text) >= MIN_DIGITS
    return len(set(text)) > 2


def encoded_forms(text: str) -> list[str]:
    """The text and the ways it is written in base64, URLs, JSON, Python, shell and HTML, without
    repeats.
    """
    data = text.encode("utf-8", "surrogatepass")
    forms = [text, *(line.strip() for line in text.splitlines() if len(line.strip()) >= LINE_CHARS)]
    forms += [
        urllib.parse.quote(data, safe=""),
        urllib.parse.quote(data),
        urllib.parse.quote_plus(data),
        re.sub(r"%[0-9A-F]{2}", lambda m: m.group().lower(), urllib.parse.quote(data, safe="")),
        urllib.parse.quote(urllib.parse.quote(data, safe=""), safe=""),
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(text))[3:-3],
        repr(text)[1:-1],
        text.replace("'", "''"),
        text.replace("'", "'\"'\"'"),
        html.escape(text),
        data.hex(),
    ]
    forms += _base64_forms(data)
    return list(dict.fromkeys(form for form in forms if len(form) >= MIN_CHARS))


def _base64_forms(data: bytes) -> list[str]:
    """Base64 of the secret at each of the three places it can have in longer data, without the
    characters its neighbours share.
    """
    out = []
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + data).decode()
        core = encoded[(0, 2, 3)[lead] :].rstrip("=")
        # The last character also holds bits of what follows, unless the data ends on a byte triple.
        if (lead + len(data)) % 3:
            core = core[:-1]
        if len(core) >= 8:
            out += [core, core.replace("+", "-").replace("/", "_")]
        if lead == 0:
            out += [encoded, encoded.rstrip("="), encoded.replace("+", "-").replace("/", "_")]
    return out
