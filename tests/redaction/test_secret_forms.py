"""`slime_logging.redaction.secret_forms`: the shapes of tokens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.redact import Redactor
from slime_logging.redaction.search import engine
from slime_logging.redaction.secret_forms import FRAME_HINT, FRAMES, Form

HEX40 = "0123456789abcdef0123456789abcdef01234567"
MIXED = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d"

TOKENS = {
    "wandb": "wandb_v1_" + MIXED,
    "wandb local": "local-" + HEX40,
    "hugging face": "hf_" + MIXED[:34],
    "hugging face organisation": "api_org_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
    "openai": "sk-" + MIXED,
    "openai project": "sk-proj-" + MIXED + "_-" + MIXED,
    "anthropic": "sk-ant-api03-" + MIXED,
    "stripe": "sk_live_" + MIXED,
    "github classic": "ghp_" + MIXED[:36],
    "github server": "ghs_" + MIXED[:36],
    "github fine-grained": "github_pat_" + MIXED + MIXED,
    "gitlab": "glpat-" + MIXED[:20],
    "aws": "AKIA" + "ABCDEFGHIJ234567",
    "aws temporary": "ASIA" + "ABCDEFGHIJ234567",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + MIXED,
    "slack": "xoxb-1234567890-" + MIXED,
    "slack app": "xapp-1-A0123-456-" + MIXED,
    "slack webhook": "https://hooks.slack.com/services/T00000000/B00000000/" + MIXED[:24],
    "discord webhook": "https://discord.com/api/webhooks/123456789012345678/" + MIXED,
    "feishu webhook": "https://open.feishu.cn/open-apis/bot/v2/hook/123e4567-e89b-12d3-a456-426614174000",
    "dingtalk webhook": "https://oapi.dingtalk.com/robot/send?access_token=" + HEX40,
    "telegram": "1234567890:AA" + MIXED[:33],
    "google key": "AIza" + MIXED[:35],
    "google token": "ya29." + MIXED,
    "google secret": "GOCSPX-" + MIXED[:28],
    "azure sas": "https://a.blob.core.windows.net/c?sv=2020&sig=" + MIXED + "%3D",
    "azure storage": "AccountName=a;AccountKey="
    + MIXED
    + MIXED
    + "==;EndpointSuffix=core.windows.net",
    "databricks": "dapi" + HEX40[:32],
    "nvidia": "nvapi-" + MIXED,
    "groq": "gsk_" + MIXED,
    "npm": "npm_" + MIXED[:36],
    "pypi": "pypi-AgEIcHlwaS5vcmc" + MIXED,
    "vault": "hvs." + MIXED,
    "pem": "-----BEGIN EC PRIVATE KEY-----\n" + MIXED + "\n-----END EC PRIVATE KEY-----",
    "openssh": "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    + MIXED
    + "\n-----END OPENSSH PRIVATE KEY-----",
    "bearer": "Bearer " + MIXED,
    "basic": "Basic " + "dXNlcjpwYXNzd29yZA==",
    "userinfo": "https://user:" + MIXED + "@host/path",
    "userinfo with a colon": "redis://:" + MIXED + "@host:6379/0",
}


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("around", ["{}", "see {} there", '"{}"', "x={},y=1", "line\n{}\nline"])
def test_every_form_is_found_in_any_text(kind: str, around: str) -> None:
    """What makes the token a secret is gone."""
    redacted = Redactor().text(around.format(TOKENS[kind]))
    assert "<hidden: " in redacted
    assert not any(
        core in redacted
        for core in (
            MIXED[:16],
            HEX40[:16],
            "dXNlcjpwYXNz",
            "ABCDEFGHIJ234567",
            "e89b-12d3",
            "GhIjKlMn",
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        HEX40,
        "624b824ad1f7c1b6bc1c0f57b7a0a1f7c2a39e11",
        "123e4567-e89b-12d3-a456-426614174000",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "/mnt/data/checkpoints/Qwen3-235B-A22B_torch_dist/iter_0001000",
        "https://api.wandb.ai/entity/project/runs/abc12345?workspace=user",
        "http://user-guide.example.org:8080/@scope/package",
        "mailto:judge4711@example.org",
        "image: vllm/vllm-openai:v0.10.2-cu128@sha256:e3b0c44298fc1c14",
        "time 12:30pm2024@example.org",
        "model:checkpoint7b@main",
        "git@github.com:THUDM/slime.git",
        "ssh://git@github.com/THUDM/slime.git",
        "hf_checkpoint hf_tokenizer_path hf_config_overrides",
        "sk-learn task-specific-parameters-for-models disk-usage-of-everything",
        "basic understanding, Bearer of news, Basic Authentication",
        "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8",
        "torch.distributed.optim.zero_redundancy_optimizer",
        "2024-01-02T03:04:05.678901+00:00",
        "-----BEGIN CERTIFICATE-----",
        "PPO_actor_lr1e-6_critic_lr1e-5_seed42_run20240102",
    ],
)
def test_what_merely_looks_long_stays_readable(text: str) -> None:
    """Hashes, identifiers, paths, addresses and names of models."""
    assert Redactor().text(text) == text


@pytest.mark.parametrize("text", ["aB3dE5fG7hJ9kL1m", "0123456789abcdef", "abcdefghIJKLMNOP"])
def test_generated_keys_look_random(text: str) -> None:
    """Letters and digits, or both cases, mixed."""
    assert looks_random(text)


@pytest.mark.parametrize(
    "text",
    [
        "reward",
        "short1A",
        "/root/aB3dE5fG7hJ9kL1m",
        "two words 123456 ABC",
        "1234567890123456",
        "a/b/c/D1234567890123",
    ],
)
def test_words_paths_and_numbers_do_not_look_random(text: str) -> None:
    """They are shown under a name that says too little."""
    assert not looks_random(text)


@pytest.mark.parametrize(
    "text",
    [
        "judge:x7y8z9a1b2@db.example.org:5432/x",
        "to root:x7y8z9a1b2@localhost",
        "u:x7y8z9a1b2@10.0.0.1",
    ],
)
def test_a_password_in_an_address_without_scheme_is_found(text: str) -> None:
    """Where it has letters and digits."""
    assert "<hidden: password>" in Redactor().text(text) and "x7y8z9a1b2" not in Redactor().text(
        text
    )


@pytest.mark.parametrize(
    "text",
    [
        "? db_password\n: x7y8z9 a1b2\n",
        "- ? 'api_key'\n  : \"x7y8z9 a1b2\"\nnext: 1",
        "a: 1\n? hf_token\n: x7y8z9",
    ],
)
def test_yaml_with_the_key_on_a_line_of_its_own(text: str) -> None:
    """`? key` and `: value`; what is around them stays."""
    redacted = Redactor().text(text)
    assert "x7y8z9" not in redacted and "a1b2" not in redacted
    assert redacted.replace('"', "").endswith(
        text.replace('"', "").rpartition("a1b2")[2] if "a1b2" in text else ">"
    )


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.pattern[:30])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_whatever_matches_a_frame_has_the_hint_in_it(frame: Form, data: st.DataObject) -> None:
    """Else its secret would never be looked for."""
    text = data.draw(st.from_regex(re.compile(frame.pattern.encode("latin-1")), fullmatch=True))
    if engine(frame.pattern).search(text):  # RE2 and Python differ in what is a space
        assert engine(FRAME_HINT).search(text)
