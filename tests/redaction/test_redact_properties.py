"""Properties of redaction over generated configurations: every secret gone, nothing else changed, and once is
enough."""

from __future__ import annotations

import base64
import io
import json
import urllib.parse
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from slime_logging.redaction.placeholder import PLACEHOLDER
from slime_logging.redaction.redact import Redactor

SECRET_NAMES = (
    "wandb_key", "critic/wandb_key", "sglangApiKey", "HF_TOKEN", "api-key", "password", "client_secret", "credentials",
    "Authorization", "OPENAI_API_KEY", "aws_secret_access_key", "x-api-key", "private_key", "db_pass",
    "auth_token", "api_keys",
)  # fmt: skip
HARMLESS_NAMES = (
    "lr", "max_tokens_per_gpu", "tokenizer_type", "moe_token_dispatcher_type", "key_value_channels",
    "loss_mask_type", "sort_keys", "num_query_groups", "seed", "path", "reward_key", "rollout/tokens_per_sec",
    "eos_token_id", "nested", "items",
)  # fmt: skip

harmless_names = st.sampled_from(HARMLESS_NAMES)
plain_text = st.text("abcdefghij /._-", max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, width=32)
    | plain_text
)
canaries = st.text("ABCDEFGHkmnpq23456789", min_size=16, max_size=40).map(lambda text: "Zq7" + text)
awkward_canaries = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]),
    min_size=10,
    max_size=30,
).map(lambda text: "Zq7w" + text + "x9")


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mappings and lists of harmless names around the leaves."""
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(harmless_names, inner, max_size=4)
        ),
        max_leaves=12,
    )


def texts(value: Any) -> list[str]:
    """Every text in a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in [key, *texts(item)]]
    return []


def yaml_of(value: Any) -> str:
    out = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.dump(value, out)
    return out.getvalue()


def assert_gone(secret: str, value: Any) -> None:
    data = secret.encode()
    for text in texts(value):
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            base64.b64encode(data).decode().rstrip("="),
            base64.urlsafe_b64encode(data).decode().rstrip("="),
            urllib.parse.quote(secret, safe=""),
            urllib.parse.quote_plus(secret),
        ):
            assert form not in text


WAYS = {
    "mapping": lambda name, secret: {name: secret},
    "list under the name": lambda name, secret: {name: [secret, secret]},
    "mapping under the name": lambda name, secret: {name: {"inner": secret}},
    "json text": lambda name, secret: {"env": json.dumps({"a": 1, name: secret, "b": [2]})},
    "indented json text": lambda name, secret: {
        "env": json.dumps({name: secret, "b": [2]}, indent=2)
    },
    "json text of a list": lambda name, secret: {"env": json.dumps({name: [secret, "x"], "b": 1})},
    "json text in json text": lambda name, secret: {
        "env": json.dumps({"a": json.dumps({name: secret, "z": 1})})
    },
    "json text in json text in json text": lambda name, secret: {
        "e": json.dumps([json.dumps([json.dumps({name: secret})])])
    },
    "python repr": lambda name, secret: {"env": repr({"a": 1, name: secret, "b": None})},
    "yaml text": lambda name, secret: {"env": yaml_of({"a": 1, name: secret, "z": [1]})},
    "yaml list text": lambda name, secret: {
        "env": yaml_of({"a": 1, name: [secret, secret], "z": [1]})
    },
    "nested yaml text": lambda name, secret: {
        "env": yaml_of({"a": [{"b": 1, name: secret}], "z": 1})
    },
    "yaml comment": lambda name, secret: {"env": f"lr: 1\n# {name}: {json.dumps(secret)}\nb: 2"},
    "name-value pair": lambda name, secret: {"env": [{"name": name, "value": secret}]},
    "name-value pair text": lambda name, secret: {
        "env": json.dumps([{"name": name, "value": secret}])
    },
    "tuple": lambda name, secret: {"items": [[name.rpartition("/")[2], secret]]},
}
PLAIN_WAYS = {
    "KEY=VALUE": lambda name, secret: {"env": f"A=1 {name}={secret} B=2"},
    "lines": lambda name, secret: {"env": f"A=1\nexport {name}={secret}\nB=2"},
    "flag=value": lambda name, secret: {"cmd": f"python train.py --{name}={secret} --lr 1"},
    "flag value": lambda name, secret: {"cmd": f"python train.py --{name} {secret} --lr 1"},
    "argv": lambda name, secret: {"cmd": ["train.py", f"--{name}", secret, "--lr", "1"]},
    "argv of one item": lambda name, secret: {"cmd": ["train.py", f"--{name}={secret}", "--lr", "1"]},
    "argv as text": lambda name, secret: {"cmd": str(["train.py", f"--{name}", secret, "--lr", "1"])},
    "query": lambda name, secret: {"url": f"https://host/path?a=1&{name}={secret}&b=2#top"},
    "userinfo": lambda name, secret: {"url": f"mongodb://user:{secret}@host:27017/db"},
    "header": lambda name, secret: {"log": f"sent Authorization: Bearer {secret}"},
    "exception": lambda name, secret: {"log": f"ValueError: bad {name}: {secret}"},
    "repr": (
        lambda name, secret: {"log": f"Namespace(lr=1, {name.rpartition('/')[2].replace('-', '_')}='{secret}', b=2)"}
    ),
    "xml": lambda name, secret: {"x": f"<{name}>{secret}</{name}>"},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None)
@given(secret=awkward_canaries, name=st.sampled_from(SECRET_NAMES), around=nested(scalars))
def test_no_secret_under_a_secret_name_is_left_however_it_is_written(
    way: str, secret: str, name: str, around: Any
) -> None:
    """By name alone: the redactor was told nothing."""
    redacted = Redactor().config({"nested": around, "items": [around, WAYS[way](name, secret)]})
    assert_gone(secret, redacted)


@pytest.mark.parametrize("way", PLAIN_WAYS)
@settings(max_examples=40, deadline=None)
@given(secret=canaries, name=st.sampled_from(SECRET_NAMES), around=nested(scalars))
def test_no_secret_is_left_in_lines_commands_and_addresses(
    way: str, secret: str, name: str, around: Any
) -> None:
    """Where the syntax has no quotes, secrets have no characters that would need them."""
    redacted = Redactor().config({"nested": around, "items": PLAIN_WAYS[way](name, secret)})
    assert_gone(secret, redacted)


@settings(max_examples=150, deadline=None)
@given(secret=awkward_canaries, data=st.data())
def test_a_known_secret_is_left_nowhere_in_no_encoding(secret: str, data: st.DataObject) -> None:
    """By value alone: the names are harmless; keys, parts of texts and encoded forms count too."""
    encode = data.draw(
        st.sampled_from(
            [
                lambda text: text,
                lambda text: f"a {text} b",
                lambda text: base64.b64encode(text.encode()).decode(),
                lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
                lambda text: base64.urlsafe_b64encode(f"u2:{text}:tail".encode()).decode(),
                lambda text: urllib.parse.quote(text, safe=""),
                urllib.parse.quote_plus,
                json.dumps,
                lambda text: json.dumps({"a": text}),
                lambda text: json.dumps([json.dumps({"a": text})]),
                repr,
            ]
        )
    )
    around = data.draw(nested(scalars | st.just(encode(secret))))
    redactor = Redactor.of({"wandb_key": secret}, {})
    redacted = redactor.config(
        {"nested": around, f"x/{encode(secret)}": encode(secret), "items": [encode(secret)]}
    )
    assert_gone(secret, redacted)


@settings(max_examples=300, deadline=None)
@given(values=st.dictionaries(harmless_names, nested(scalars), max_size=6))
def test_values_without_secrets_come_back_as_they_went_in(values: dict[str, Any]) -> None:
    """Nothing else changes: not a key, not a value, not an order."""
    redacted = Redactor.of({"wandb_key": "Zq7-the-only-secret"}, {}).config(values)
    assert orjson.dumps(redacted) == orjson.dumps(values)


any_text = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "api_key", "=", ":", " ", "\n", '"', "'", "\\", "--", "password", "token", "{", "}", "[", "]",
            "abc123DEF456ghi789", ",", "&",
            "?", "<hidden: x>", "<hidden: ", ">", "://", "@", "Bearer ", "Basic ", "value", "%3A", "  ", "- ",
            "|", "(", "null", "sk-",
            "hf_", "machine ", "login ", "-----BEGIN RSA PRIVATE KEY-----", "name", "key", "#",
        ]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(text=any_text)
@example(text='&0Key":0')
@example(text='?api_key="x&y#z"')
def test_redacting_a_text_twice_changes_nothing_more(text: str) -> None:
    """What a redacted text shows is final, whatever nonsense it was."""
    redactor = Redactor.of({"wandb_key": "abc123DEF456ghi789x"}, {})
    once = redactor.text(text)
    assert redactor.text(once) == once


@settings(max_examples=300, deadline=None)
@given(values=nested(any_text | scalars), name=st.sampled_from(SECRET_NAMES))
def test_redacting_a_configuration_twice_changes_nothing_more(values: Any, name: str) -> None:
    """Also with secret names around marks of other secrets."""
    redactor = Redactor.of({"wandb_key": "abc123DEF456ghi789x"}, {})
    once = redactor.config({"a": values, name: values})
    assert redactor.config(once) == once


@settings(max_examples=100, deadline=None)
@given(secret=awkward_canaries, name=st.sampled_from(SECRET_NAMES))
def test_json_text_with_a_secret_stays_json_text(secret: str, name: str) -> None:
    """The text around the secret is byte for byte what it was, so it still parses."""
    text = json.dumps({"a": 1.50, name: secret, "b": [1, {"c": None}]})
    redacted = json.loads(Redactor().text(text))
    assert PLACEHOLDER.fullmatch(redacted.pop(name))
    assert redacted == {"a": 1.50, "b": [1, {"c": None}]}
