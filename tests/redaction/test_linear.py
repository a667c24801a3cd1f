"""Redaction takes time in proportion to the text, whatever the text: for every form and every name, a text that is
twice as long takes less than three times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from slime_logging.redaction.redact import Redactor
from slime_logging.redaction.secret_forms import FRAMES, LONG, TOKENS
from tests.redaction.test_rows import KEY

NUM_CHARS = 1 << 19
"""Of the shorter text in a row; the longer one has a mebibyte."""
NUM_CONFIG_CHARS = 1 << 14
MAX_RATIO = 3.0
NUM_TRIES = 5

BEGINNINGS = (
    "wandb_v1_", "local-0", "hf_", "hf_a", "api_org_A", "sk-", "sk-a", "sk_live_", "ghp_", "github_pat_", "glpat-",
    "AKIA", "A3T", "xoxb-", "xapp-", "12345678:AA", "AIza", "ya29.", "GOCSPX-", "aaa1Q~", "dapi0", "nvapi-", "gsk_",
    "xai-", "r8_", "pplx-", "npm_", "pypi-AgE", "dckr_pat_", "SG.", "SG.aaaaaaaaaaaaaaaa.", "hvs.", "AGE-SECRET-KEY-1",
    "http://", "http://:", "http://a:", "http://haha@", "%3A%2F%2F", "%3A%2F%2Fa%3A", "a:", "a:b@", "a:bcd@e.", "Bearer ", "basic ", "?sig=",
    "hooks.slack.com/services/", "/api/webhooks/1/", "/open-apis/bot/hook/", "curl ", "curl -u ", "curl -u a",
    "wandb login ", "wandb login --a ", "sshpass -p ", "docker ", "docker login ", "docker login -p ", "redis-cli ", "redis-cli -a ", "h:1:", "h:1:a:b:", "machine ", "machine a login b ", "eyJ", "-eyJ", "eyJaaaaaaaa.",
    "-eyJaaaaaaaa-hf_aB3dE5fG7hJ9kL1mN3pQ", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN ", "-----END ",
)  # fmt: skip
NAMED = (
    "**key**: ", "key: |\n  ", "key: &k ", "token|", "token=1,", "token=", "key:", "api_key=", "password ", "password (", 'password="', "password='", "password=\\",
    'password=\\"', "--api-key ", "--api-keys a ", "--x-token", "secret: ", "secret:\n  ", "? api_key\n: ", "&key=a", "key%3D", "密码=",
    '{"api_key":', "api_key=[", "api_key={", "<password>", "auth.", "auth-", "pass_", "cookie: a;", "pwd=a;", '"token", ',
    "x_token=aB3dE5fG7hJ9kL1m,", "pad_token=aB3dE5fG7hJ9kL1m,", "key: iter_0000100_rank, ", '{"name": "token", "value": ',
)  # fmt: skip
OTHERS = ("\\", '"', "'", "`", " ", "\n", "\t", "-", "--a ", ":", "=", "a", "aA1", ".", "/", "@", "%", "<", "[", "{", "(",
          "<hidden: x>", "<hidden: ", "haha", "é", "密", KEY, KEY[:-1], f"{KEY} ", "… ", "\x00")  # fmt: skip


def test_every_form_has_a_beginning_here() -> None:
    """A form that is added is tested."""
    assert len(BEGINNINGS) > len(TOKENS) + len(FRAMES) + len(LONG)


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def assert_linear(run: Callable[[str], object], piece: str, num_chars: int) -> None:
    """Both are measured one behind the other, several times: the machine does other work too. Of a quadratic search
    every pair is near 4.
    """
    text = piece * (2 * num_chars // len(piece) + 1)
    short, long = text[:num_chars], text[: 2 * num_chars]
    found = []
    for _ in range(NUM_TRIES):
        found.append(seconds(lambda: run(long)) / seconds(lambda: run(short)))
        if found[-1] < MAX_RATIO:
            return
    raise AssertionError(f"{piece!r} twice takes {found} times as long")


@pytest.mark.parametrize("piece", [*BEGINNINGS, *NAMED, *OTHERS])
def test_a_rows_text_takes_time_in_proportion(piece: str) -> None:
    redactor = Redactor.of({"wandb_key": KEY}, {})
    redactor.row({"a": "warm"})
    assert_linear(lambda text: redactor.row({"a": text}), piece, NUM_CHARS)


@pytest.mark.parametrize("lead", ["", 'api_key="'])
@pytest.mark.parametrize("piece", [*BEGINNINGS, *NAMED, *OTHERS])
def test_a_configurations_text_takes_time_in_proportion(piece: str, lead: str) -> None:
    def run(text: str) -> None:
        Redactor().text(f"{lead}{text}")

    run("warm")
    assert_linear(run, piece, NUM_CONFIG_CHARS)


@pytest.mark.parametrize(
    "piece", ["token=1,", "api_key=", "http://:", "password (", '{"api_key":', "haha"]
)
def test_learning_takes_time_in_proportion(piece: str) -> None:
    """An argument delays the start by milliseconds."""
    assert_linear(
        lambda text: Redactor.of({"note": text, "api_key": text}, {}), piece, NUM_CONFIG_CHARS
    )
