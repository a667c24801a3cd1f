"""`slime_logging.redaction.secret_names`: which names are a secret's."""

from __future__ import annotations

import pytest

from slime_logging.redaction.secret_names import Verdict, judge, leaf

SECRET = (
    "wandb_key", "WANDB_API_KEY", "critic/wandb_key", "sglangApiKey", "HF_TOKEN", "--api-key", "api_keys", "APIkey",
    "apikey", "X-Api-Key", "PGPASSWORD", "MYSQL_PWD", "dbpassword", "db_pass", "smtp_pw", "Authorization",
    "proxy-authorization", "set-cookie", "access_token", "refreshToken", "OAuth2Token", "client_secret",
    "clientSecret", "aws_access_key_id", "AWS_SECRET_ACCESS_KEY", "GITHUB_PAT", "ssl_keyfile_password",
    "sglang_api_key", "sglang_admin_api_key", "secrets/database/user", "credentials", "OPENAI_API_KEY_2",
    "api_key_prod", "password_plain", "x-amz-signature", "judge_api_key", "hf_tokens", "openai.api_key",
    "env[HF_TOKEN]", "GOOGLE_APPLICATION_CREDENTIALS", "privateKey", "ssh_key", "encryption_key", "webhook",
    "webhook_url", "some_unknown_key", "some_unknown_token", "session_token", "passphrase", "SWANLAB_API_KEY",
    "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "密码", "basic_auth", "judge_api_key_2", "GITLAB_PAT",
    "db.passwd", "azure_sas", "volc_sk", "oss_ak", "wifi_psk", "userpass", "csrftoken", "auth_code",
    "contraseña", "пароль", "パスワード", "비밀번호", "sentry_dsn", "VOLC_SECRETKEY", "accessKeySecret",
)  # fmt: skip
HARMLESS = (
    "max_tokens_per_gpu", "tokenizer_type", "token_dispatcher_type", "moe_token_dispatcher_type",
    "key_value_channels", "loss_mask_type", "sort_keys", "kv_channels", "num_query_groups",
    "rollout/tokens_per_sec", "train/critic-token_loss", "input_key", "reward_key", "tool_key", "pad_token",
    "eos_token_id", "multimodal_keys", "linear_num_key_heads", "linear_key_head_dim", "author", "authors",
    "keyword", "monkey_patch", "hotkeys", "num_tokens", "total_tokens", "prompt_tokens", "public_key",
    "primary_key", "cache_key", "step_key", "api_key_file", "wandb_key_path", "password_length", "token_type",
    "secret_name", "auth_mode", "token_url", "forward_pass", "pass_rate", "log_passrate", "num_passes", "compass",
    "signal", "exit_signal", "design", "calculate_per_token_loss", "redacted_keys", "tracking_hide",
    "max_new_tokens", "image_token", "vocab_tokens", "num_api_keys", "tokens", "keys", "lr", "loss", "value",
    "name", "rng_key",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets_are_hidden(name: str) -> None:
    """Snake, kebab and camel case, prefixes, numbers and environments behind them."""
    assert judge(name) is Verdict.HIDDEN


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_names_are_shown(name: str) -> None:
    """Counts, columns, tokenizers, and what is merely about a secret."""
    assert judge(name) is Verdict.SHOWN


@pytest.mark.parametrize("name", ["key", "sig", "signature", "pass", "PWD", "eval/pass@1"])
def test_names_that_say_too_little_need_a_random_value(name: str) -> None:
    """`{"key": "loss"}` is shown, `{"key": "<a generated key>"}` is not."""
    assert judge(name) is Verdict.IF_RANDOM


@pytest.mark.parametrize("name", ["token", "auth", "jwt", "bearer", "dsn", "pat"])
def test_names_that_are_words_of_prose_are_hidden_in_data(name: str) -> None:
    """`{"token": "x"}` is hidden, `token: expected` in a sentence is not."""
    assert judge(name) is Verdict.IN_DATA


def test_leaf_is_the_last_part_of_a_path() -> None:
    """Slashes, dots and brackets part names."""
    assert [
        leaf(name) for name in ("critic/wandb_key", "a.b.api_key", "env[HF_TOKEN]", "x", "")
    ] == [
        "wandb_key",
        "api_key",
        "HF_TOKEN",
        "x",
        "",
    ]
