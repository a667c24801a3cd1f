"""What redaction adds to a row of sixteen samples of 64 KiB, by what the samples are.

Beside it the least that a row takes: the same row as JSON. The adversarial ones are made to be slow: names without
values, beginnings of tokens, a row full of tokens, one full of assignments. Fifty secrets are known.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import orjson

from slime_logging.redaction.redact import Redactor
from tests.bench import Figure, figure, quantile, ratios, take_turns

NUM_SAMPLES, SAMPLE_CHARS, NUM_ROUNDS = 16, 65_536, 20
LIMIT_MS = 50.0
ROOT = Path(__file__).parents[2]
ADVERSARIAL = {
    "names and commas": "token=1,",
    "an address of colons": "http://:",
    "beginnings of web tokens": "-eyJ",
    "tokens": "hf_aB3dE5fG7hJ9kL1mN3pQ ",
    "random assignments": "token=aB3dE5fG7hJ9kL1m,",
    "addresses without an end": "a:bcd@e.",
    "classes that begin as keys": "sk-abcdefghijklmnopq ",
    "tokens in false placeholders": "<hidden: hf_aB3dE5fG7hJ9kL1mN3pQ> ",
    "harmless assignments": "key: iter_0000100_rank, ",
}


def texts() -> dict[str, str]:
    """One megabyte of each kind."""
    chosen = random.Random(1)
    pages = "\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    words = [word for word in pages.split() if word.isalpha()]
    code = "\n".join(path.read_text() for path in sorted((ROOT / "slime_logging").rglob("*.py")))
    found = {"prose": " ".join(chosen.choices(words, k=300_000)), "code": code}
    found |= {f"adversarial, {name}": piece for name, piece in ADVERSARIAL.items()}
    size = NUM_SAMPLES * SAMPLE_CHARS
    return {name: (text * (size // len(text) + 1))[:size] for name, text in found.items()}


def run(quick: bool = False) -> list[Figure]:
    """Milliseconds a row."""
    environ = {
        f"SERVICE_{number}_API_KEY": f"Zq7k{number:04d}mWx9Lr4TnB8vHs" for number in range(50)
    }
    redactor = Redactor.of(None, environ)
    return [
        _figure(name, text, redactor, 2 if quick else NUM_ROUNDS) for name, text in texts().items()
    ]


def _figure(name: str, text: str, redactor: Redactor, num_rounds: int) -> Figure:
    starts = range(0, len(text), SAMPLE_CHARS)
    row: Mapping[str, str] = {f"sample_{at}": text[at : at + SAMPLE_CHARS] for at in starts}
    redactor.row({**row})
    rounds = take_turns(
        {"ours": lambda: redactor.row({**row}), "orjson": lambda: orjson.dumps(row)}, num_rounds
    )
    ours_ms = quantile(rounds["ours"], 0.5) * 1000
    return figure(
        f"redact a row of {NUM_SAMPLES} samples of 64 KiB, {name}",
        ours_ms,
        "ms",
        n=len(rounds["ours"]),
        others={"orjson": quantile(rounds["orjson"], 0.5) * 1000},
        ratio=ratios(rounds, "ours"),
        target=f"<= {LIMIT_MS:g} ms",
        is_met=ours_ms <= LIMIT_MS,
    )
