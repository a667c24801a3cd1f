"""`slime_logging.redaction.redact`: what is hidden, what stays readable, and how it is told."""

from __future__ import annotations

import base64
import copy
import json
from argparse import Namespace
from importlib import resources
from pathlib import Path

import pytest

from slime_logging.demo.namespace import grpo_namespace, ppo_namespace
from slime_logging.errors import SettingsError
from slime_logging.redaction.redact import Redactor
from slime_logging.values.serialize import arguments_to_json

SECRET = "Zq7-Canary_4711-xyz"

HARMLESS = {
    "max_tokens_per_gpu": 9216,
    "tokenizer_type": "HuggingFaceTokenizer",
    "token_dispatcher_type": "alltoall",
    "moe_token_dispatcher_type": "allgather",
    "key_value_channels": 128,
    "kv_channels": 128,
    "num_query_groups": 8,
    "loss_mask_type": "qwen",
    "sort_keys": True,
    "input_key": "prompt",
    "label_key": "label",
    "reward_key": "score",
    "rm_answer_key": "solution",
    "multimodal_keys": {"image": "images"},
    "fim_pad_token": "<fim_pad>",
    "eos_token": "<|endoftext|>",
    "eos_token_id": 151643,
    "rollout_stop_token_ids": [151643, 151645],
    "tokenizer_special_tokens": ["<pad>", "<eos>"],
    "rollout/tokens_per_sec": 1234.5,
    "train/critic-token_loss": 0.5,
    "eval/pass@1": 0.25,
    "forward_pass": "eager",
    "exit_signal": "SIGTERM",
    "commit": "624b824ad1f7c1b6bc1c0f57b7a0a1f7c2a39e11",
    "checkpoint_hash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "run_uuid": "123e4567-e89b-12d3-a456-426614174000",
    "load": "/root/checkpoints/Qwen3-4B_torch_dist/iter_0000100/mp_rank_00",
    "hf_checkpoint": "Qwen/Qwen3-4B-Instruct-2507",
    "rollout_function_path": "slime.rollout.sglang_rollout.generate_rollout",
    "wandb_host": "https://api.wandb.ai",
    "proxy": "http://proxy.example.org:3128",
    "repo": "git@github.com:THUDM/slime.git",
    "api_key_file": "/run/secrets/wandb",
    "author": "someone",
    "public_key": "ssh-ed25519",
    "redacted_keys": ["wandb_key", "train_env_vars/HF_TOKEN"],
    "tracking_hide": ["acme_key", "my_token"],
    "sglang_tokenizer_path": "/models/qwen",
    "sglang_tokenizer_mode": "auto",
    "sglang_skip_tokenizer_init": False,
    "sglang_max_total_tokens": 65536,
    "sglang_max_prefill_tokens": 16384,
    "sglang_speculative_num_draft_tokens": 4,
    "sglang_speculative_token_map": "thunlp/LLaMA3-Instruct-8B-FR-Spec/freq_32768.pt",
    "sglang_tool_call_parser": "qwen25",
    "sglang_ssl_keyfile": "/etc/ssl/server.pem",
    "sglang_prompt_tokens_buckets": ["default"],
    "sglang_kt_max_deferred_experts_per_token": 2,
    "chat_template": "{% for m in messages %}<|im_start|>{{ m['role'] }}: {{ m['content'] }}<|im_end|>{% endfor %}",
    "note": "KeyError: 'input_ids'; invalid token: expected a number; basic understanding of the bearer of news",
    "cmd": ["train.py", "--input-key", "prompt", "--max-tokens-per-gpu", "9216", "--lr", "1e-6"],
}


def test_every_argument_of_a_real_job_stays_readable() -> None:
    """873 names with the values of a validated job: 0 false positives."""
    for args in (ppo_namespace(), grpo_namespace()):
        values = arguments_to_json(args)
        redactor = Redactor.of(args, {})
        assert redactor.config(values) == values
        assert redactor.hidden == ()


def test_every_option_of_megatron_and_slime_stays_readable_with_a_text_value() -> None:
    """Whatever its type, no option but keys and passwords is hidden for what it is called."""
    table = (
        resources.files("slime_logging.roles.megatron")
        .joinpath("data/options.json")
        .read_text("utf-8")
    )
    values = {name: f"value-{number}" for number, name in enumerate(json.loads(table)["options"])}
    redactor = Redactor()
    changed = {name for name, value in redactor.config(values).items() if values[name] != value}
    assert changed == SECRET_OPTIONS


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_names_and_values_stay_readable(name: str) -> None:
    """In data, with the role's prefix, and in running text."""
    redactor = Redactor.of({"wandb_key": SECRET}, {"HF_TOKEN": "hf_" + "aB3" * 11})
    values = {
        name: HARMLESS[name],
        f"critic/{name}": [HARMLESS[name]],
        "text": f"{name}={HARMLESS[name]!r}, lr: 1",
    }
    assert redactor.config(values) == values


SECRET_OPTIONS = {
    "wandb_key",
    "router_api_key",
    "router_control_plane_api_keys",
    "router_oracle_password",
}

PLACES = {
    "WANDB_API_KEY in JSON text": {"train_env_vars": '{"WANDB_API_KEY": "' + SECRET + '", "NCCL_DEBUG": "INFO"}'},
    "flag with =": {"cmd": f"train.py --wandb-key={SECRET} --lr 1"},
    "flag and item": {"cmd": ["train.py", "--api-key", SECRET, "--lr", "1"]},
    "flag and items": {"cmd": ["--api-keys", "first-one", SECRET, "--lr", "1"]},
    "header mapping": {"headers": {"Authorization": f"Bearer {SECRET}"}},
    "header text": {"cmd": f"curl -H 'Authorization: Basic {SECRET}' https://host"},
    "camel case": {"sglangApiKey": SECRET},
    "environment line": {"env": f"HF_TOKEN={SECRET}"},
    "userinfo": {"url": f"mongodb://user:{SECRET}@host/db"},
    "token as user": {"url": f"https://{SECRET}@github.com/o/r.git"},
    "azure sas": {"url": f"https://a.blob.core.windows.net/c?sv=1&sig={SECRET}{SECRET}&se=2"},
    "presigned": {"url": f"https://b.s3.amazonaws.com/k?X-Amz-Signature={SECRET}&X-Amz-Date=1"},
    "connection string": {"x": f"Server=db;User Id=sa;Password={SECRET};Encrypt=true"},
    "pem": {"x": f"-----BEGIN RSA PRIVATE KEY-----\nabc\n{SECRET}\n-----END RSA PRIVATE KEY-----"},
    "cut pem": {"x": f"-----BEGIN PRIVATE KEY-----\nabc\n{SECRET}"},
    "list": {"api_keys": ["a", SECRET]},
    "mapping": {"credentials": {"alice": SECRET}},
    "deep": {"a": [{"b": {"openai": {"api_key": SECRET}}}]},
    "pair": {"headers": [["X-Api-Key", SECRET]]},
    "name and value": {"env": [{"name": "HF_TOKEN", "value": SECRET}]},
    "yaml block": {"y": f"lr: 1\nprivate_key: |\n  abc\n  {SECRET}\nb: 2"},
    "yaml comment": {"y": f"lr: 1  # wandb_key: {SECRET}\n"},
    "url-quoted JSON": {"q": f"?env=%7B%22api_key%22%3A%22{SECRET}%22%7D"},
    "escaped name": {"j": '{"\\u0061pi_key": "' + SECRET + '"}'},
    "secret str": {"r": f"Config(api_key=SecretStr('{SECRET}'), lr=1)"},
    "netrc": {"n": f"machine api.wandb.ai login user password {SECRET}"},
    "curl user": {"cmd": f"curl -s -u me:{SECRET} https://host"},
    "dated name": {"OPENAI_API_KEY_2": SECRET},
    "flattened": {"secrets/database/user": SECRET},
    "override": {"overrides/critic/wandb_key": {"base": None, "value": SECRET, "source": "file"}},
    "python code": {"code": f"os.environ['HF_TOKEN'] = '{SECRET}'"},
    "cookie": {"headers": f"Cookie: a=1; session={SECRET}"},
    "xml attribute": {"x": f'<add key="ApiKey" value="{SECRET}"/>'},
    "chinese": {"密码": SECRET},
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_hidden_in_every_place(place: str) -> None:
    """By name or form alone: the redactor was told nothing."""
    assert SECRET not in str(Redactor().config(PLACES[place]))


def test_the_mark_names_what_is_hidden_without_length_or_hash() -> None:
    """Two secrets of different length under one name look the same."""
    redactor = Redactor()
    assert redactor.config({"critic/wandb_key": "x" * 40}) == {
        "critic/wandb_key": "<hidden: wandb_key>"
    }
    assert redactor.config({"critic/wandb_key": "y"}) == {"critic/wandb_key": "<hidden: wandb_key>"}


def test_numbers_under_a_secret_name_are_hidden_but_none_and_bools_are_not() -> None:
    """A bool tells that there is a password, not which."""
    values = {
        "password": 123456,
        "use_token": True,
        "wandb_key": None,
        "api_keys": [],
        "secret": "",
    }
    assert Redactor().config(values) == {**values, "password": "<hidden: password>"}


def test_a_row_keeps_its_numbers_and_hides_its_texts() -> None:
    """A metric's number is a measurement, whatever its name."""
    row = {"rollout/api_token": 17.0, "wandb_key": SECRET}
    assert Redactor().row(row) == {"rollout/api_token": 17.0, "wandb_key": "<hidden: wandb_key>"}


def test_known_secrets_are_hidden_in_keys_metric_names_and_encodings() -> None:
    """By value: options, nested options and environment variables with secret names."""
    nested = Namespace(inner={"list": [{"openai_api_key": "Zq7-nested-canary"}]})
    args = Namespace(wandb_key=SECRET, custom=nested, url="http://me:Zq7pass%21word@host")
    redactor = Redactor.of(args, {"MY_TOKEN": "Zq7-env-canary"})
    assert redactor.key(f"train/{SECRET}/loss") == "train/<hidden: wandb_key>/loss"
    assert redactor.text("see Zq7-nested-canary") == "see <hidden: openai_api_key>"
    assert redactor.text("see Zq7-env-canary") == "see <hidden: MY_TOKEN>"
    assert redactor.text("see Zq7pass!word") == "see <hidden: url userinfo>"
    encoded = base64.b64encode(f"user:{SECRET}".encode()).decode()
    assert encoded[8:24] not in redactor.text(f"Proxy said {encoded}")


def test_what_config_hides_is_known_everywhere_in_it_even_before_the_place() -> None:
    """A secret that only this configuration holds is hidden in earlier values too."""
    values = {"a_note": f"started with {SECRET}", "wandb_key": SECRET}
    assert Redactor().config(values)["a_note"] == "started with <hidden: wandb_key>"


def test_hidden_lists_what_was_hidden_and_not_what_is_merely_known() -> None:
    """The run can say what was hidden in it."""
    redactor = Redactor.of(Namespace(wandb_key=SECRET), {"OTHER_TOKEN": "Zq7-other-canary"})
    assert redactor.hidden == ()
    redactor.config({"critic/wandb_key": SECRET, "password": "x"})
    assert redactor.hidden == ("password", "wandb_key")


def test_arguments_are_neither_changed_nor_shared() -> None:
    """The job goes on with the real values."""
    args = Namespace(wandb_key=SECRET, nested={"api_key": [SECRET]})
    before = copy.deepcopy(args)
    values = arguments_to_json(args)
    Redactor.of(args, {}).config(values)
    assert args == before
    assert values == arguments_to_json(before)


def test_repr_tells_counts_and_no_secret() -> None:
    """A redactor in a traceback or log gives nothing away."""
    redactor = Redactor.of(Namespace(wandb_key=SECRET), {})
    assert repr(redactor) == "Redactor(num_known=1, num_hidden=0)"


def test_learn_hides_a_value_from_then_on_but_renames_nothing() -> None:
    """Keys that a client got later are hidden as well; a name that was there before stays what it was."""
    redactor = Redactor()
    assert redactor.key(f"a/{SECRET}") == f"a/{SECRET}"
    redactor.learn("late_key", SECRET)
    assert redactor.key(f"a/{SECRET}") == f"a/{SECRET}"
    assert redactor.key(f"b/{SECRET}") == "b/<hidden: late_key>"
    assert redactor.text(f"see {SECRET}") == "see <hidden: late_key>"


@pytest.mark.parametrize(
    "value", ["", "none", "true", "0", "EMPTY", "abc12", "123456", "aaaaaaaa", "/run/secrets/key"]
)
def test_short_and_common_values_of_secrets_are_hidden_by_name_only(value: str) -> None:
    """Else every word that holds them would be torn up."""
    redactor = Redactor.of({"wandb_key": value}, {})
    assert redactor.text(f"a {value} b") == f"a {value} b"


def test_a_wordlike_secret_is_hidden_only_where_it_stands_alone() -> None:
    """`sglang` as a key does not tear up `sglangx`."""
    redactor = Redactor.of({"api_key": "letmein"}, {})
    assert redactor.text("letmein, letmeinside") == "<hidden: api_key>, letmeinside"


def test_a_secret_that_shortening_cut_in_half_is_hidden() -> None:
    """The half that is left of a known secret is a secret."""
    args = {"wandb_key": SECRET, "big": "a" * 16_370 + SECRET + "b" * 100}
    values = Redactor.of(args, {}).config(arguments_to_json(args))
    assert SECRET[:6] not in str(values)


def test_hide_adds_names_globs_and_patterns() -> None:
    """The user's own names, hidden even where the value is a bool."""
    redactor = Redactor(hide=["my-flag", "acme_*", "re:^x\\d+$", "text:ACME-[0-9]+"])
    values = {
        "my_flag": True,
        "critic/acme_id": 5,
        "x12": "v",
        "x12b": "v",
        "note": "see ACME-123 and my_flag=abc",
    }
    assert redactor.config(values) == {
        "my_flag": "<hidden: my_flag>",
        "critic/acme_id": "<hidden: acme_id>",
        "x12": "<hidden: x12>",
        "x12b": "v",
        "note": "see <hidden: pattern> and my_flag=<hidden: my_flag>",
    }


def test_show_allows_exact_names_only_for_what_they_are_called() -> None:
    """What is known or looks like a token stays hidden under a shown name."""
    redactor = Redactor.of({"wandb_key": SECRET}, {}, show=["my_key"])
    assert redactor.config({"critic/my_key": "readable", "my_key": SECRET}) == {
        "critic/my_key": "readable",
        "my_key": "<hidden: wandb_key>",
    }


@pytest.mark.parametrize("name", ["*", "my_*", "re:.*", "", "[a]", "a?"])
def test_show_refuses_patterns(name: str) -> None:
    """Allowing everything is not offered."""
    with pytest.raises(SettingsError, match="exact names"):
        Redactor(show=[name])


def test_hide_refuses_what_is_no_regular_expression() -> None:
    """The message names the flag and the pattern."""
    with pytest.raises(SettingsError, match=r"--tracking-hide 're:\('"):
        Redactor(hide=["re:("])


def test_logins_stored_on_disk_are_known(tmp_path: Path) -> None:
    """netrc, W&B's settings and Hugging Face's token, below the environment's HOME."""
    (tmp_path / ".netrc").write_text(
        "machine api.wandb.ai\n  login user\n  password Zq7-netrc-canary\n"
    )
    (tmp_path / ".config/wandb").mkdir(parents=True)
    (tmp_path / ".config/wandb/settings").write_text(
        "[default]\napi_key = Zq7-settings-canary\nentity = me\n"
    )
    (tmp_path / ".cache/huggingface").mkdir(parents=True)
    (tmp_path / ".cache/huggingface/token").write_text("Zq7-hub-canary\n")
    redactor = Redactor.of(None, {"HOME": str(tmp_path)})
    assert redactor.text("Zq7-netrc-canary Zq7-settings-canary Zq7-hub-canary entity me") == (
        "<hidden: netrc password> <hidden: api_key> <hidden: stored token> entity me"
    )


def test_two_keys_that_look_the_same_once_hidden_are_both_kept() -> None:
    """No value is lost because its key held a secret."""
    redactor = Redactor.of({"a_token": "Zq7-canary-a", "b_token": "Zq7-canary-b"}, {})
    redactor.learn("a_token", "Zq7-canary-c")
    assert redactor.config({"Zq7-canary-a": 1, "Zq7-canary-c": 2}) == {
        "<hidden: a_token>": 1,
        "<hidden: a_token> (2)": 2,
    }
