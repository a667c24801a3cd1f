"""The secrets this process knows by their text, found wherever they turn up, encoded too.

Policy: what is learned stays in this object and in no `repr`. Short texts and everyday values are
not learned: they would be hidden in every word that holds them. A short or purely alphabetic secret
is replaced only where it stands alone as a word. Nothing waits: a table is only added to, one entry
in one step, and the pattern made of it is replaced as a whole; so a signal handler may learn a
secret while its thread is learning one.
"""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

from slime_logging.redaction.search import Budget, Replacement, decoded, encoded, engine, replaced
from slime_logging.redaction.secret_words import words_of

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
MAX_SECRETS = 2_000
"""Learned at most, so that a long job stays bounded; a job has some dozens."""

_PATH = re.compile(
    r"(?:~|\.{1,2}|/(?:root|home|usr|etc|var|tmp|mnt|data|opt|run|srv|dev|proc|workspace|scratch|"
    r"nfs|lustre|shared|secrets|Users))/"
)
EVERYDAY = words_of(
    "none null true false default password passwd secret secrets changeme change_me example",
    "unknown empty public private admin root user username guest anonymous localhost token",
    "api_key apikey key your_api_key your-api-key dummy placeholder disabled enabled online",
    "offline shared auto string optional required undefined redacted hidden wandb sglang slime",
    "megatron openai huggingface bearer basic not_needed no-key-required no_key_required",
)
"""Values that people write where no key is needed; compared in lower case."""


class KnownSecrets:
    """A growing set of secret texts, each with the name it is shown by."""

    def __init__(self) -> None:
        self._plain: dict[str, str] = {}
        self._names: dict[bytes, str] = {}
        self._compiled: tuple[int, Any] = (0, None)

    def __len__(self) -> int:
        return len(self._plain)

    def __repr__(self) -> str:
        return f"KnownSecrets(num_secrets={len(self._plain)})"

    def learn(self, name: str, text: str, ordinary: frozenset[str] = frozenset()) -> bool:
        """Remember a secret's text under the name that it is shown by; returns whether it is new.

        What is in `ordinary` is no secret here, such as the names of the options.
        """
        text = text.strip()
        is_full = len(self._plain) >= MAX_SECRETS
        if is_full or text in self._plain or text in ordinary or not is_learnable(text):
            return False
        for form in encoded_forms(text):
            self._names.setdefault(encoded(form), name)
        self._plain[text] = name
        return True

    def is_known(self, text: str) -> bool:
        """Whether the whole text is a known secret."""
        return text in self._plain

    def replace(self, data: bytes, shown: Callable[[str], str], budget: Budget) -> bytes:
        """The UTF-8 text with every known secret, plain or encoded, replaced by `shown(name)`."""
        if not self._names:
            return data

        def decide(start: int, end: int) -> Replacement:
            return start, end, shown(self._names[data[start:end]])

        return replaced(data, self._pattern(), decide, budget)

    def overwritten(self, data: bytes) -> bytes:
        """Any bytes, with every known secret replaced by as many `x`."""

        def decide(start: int, end: int) -> Replacement:
            return start, end, "x" * (end - start)

        return replaced(data, self._pattern(), decide, Budget()) if self._names else data

    @property
    def source(self) -> str:
        """The pattern that finds every one."""
        forms = list(self._names)  # one step: what a signal handler adds is in the next pattern
        return "|".join(map(_searched, forms))

    def _pattern(self) -> Any:
        size, pattern = self._compiled
        if size != len(self._names):
            import re2

            size = len(self._names)
            pattern = engine(self.source, is_longest=True)
            self._compiled = (size, pattern)
            re2.purge()  # its cache of patterns would keep every former one
        return pattern

    def cut_off(self, text: str) -> tuple[int, str] | None:
        """Where a known secret begins that the end of the text cuts off, and its name; None if
        there is none.
        """
        found = [
            (len(text) - size, name)
            for data, name in list(self._names.items())
            for form in [decoded(data)]
            for size in range(MIN_CHARS, min(len(form), len(text) + 1))
            if text.endswith(form[:size]) and not form[:size].isalpha()
        ]
        return min(found, default=None)


def _searched(form: bytes) -> str:
    """The pattern that finds a form; a short or wordlike one only where no letter or digit touches
    it.
    """
    text = decoded(form)
    is_alpha = text.isalpha() and len(text) < 2 * ANYWHERE_CHARS
    if len(text) >= ANYWHERE_CHARS and not text.isdigit() and not is_alpha:
        return re.escape(text)
    before, behind = (r"\b" if re.match(r"(?a:\w)", c) else r"\B" for c in (text[0], text[-1]))
    return f"{before}{re.escape(text)}{behind}"


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
    data = encoded(text)
    quoted = urllib.parse.quote(data, safe="")
    forms = [text, *(line.strip() for line in text.splitlines() if len(line.strip()) >= LINE_CHARS)]
    forms += [quoted, urllib.parse.quote(data), urllib.parse.quote_plus(data)]
    forms += [re.sub(r"%[0-9A-F]{2}", lambda m: m.group().lower(), quoted)]
    forms += [urllib.parse.quote(quoted, safe=""), json.dumps(json.dumps(text))[3:-3]]
    forms += [json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]]
    forms += [text.replace("'", "''"), text.replace("'", "'\"'\"'"), html.escape(text)]
    forms += [data.hex(), data.hex().upper(), *_base64_forms(data)]
    return list(dict.fromkeys(form for form in forms if len(form) >= MIN_CHARS))


def _base64_forms(data: bytes) -> list[str]:
    """Base64 of the secret at each of the three places it can have in longer data, without the
    characters its neighbours share.
    """
    whole = base64.b64encode(data).decode()
    out = [whole, whole.rstrip("=")]
    for lead in range(3):
        core = base64.b64encode(b"\0" * lead + data).decode()[(0, 2, 3)[lead] :].rstrip("=")
        # The last character also holds bits of what follows, unless the data ends on a byte triple.
        core = core[:-1] if (lead + len(data)) % 3 else core
        out += [core] if len(core) >= 8 else []
    return out + [form.replace("+", "-").replace("/", "_") for form in out]
