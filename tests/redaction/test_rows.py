"""Rows: what models write stays as it is, but for secrets that are known or unmistakable; and rows teach nothing."""

from __future__ import annotations

import json
import signal
from argparse import Namespace
from pathlib import Path

import pytest

from slime_logging.redaction.known_secrets import KnownSecrets
from slime_logging.redaction.random_text import looks_random
from slime_logging.redaction.redact import Redactor
from slime_logging.redaction.row_text import MAX_REPLACED
from slime_logging.redaction.secret_names import Verdict, judge

HARMLESS = json.loads(Path(__file__).with_name("harmless.json").read_text("utf-8"))
KEY = "Zq7kP2mWx9Lr4TnB8vHs"
OTHER = "hG5tR1yQ8wE3uI6oP0aS"


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor.of({"wandb_key": KEY}, {"HF_TOKEN": "hf_" + "aB3" * 11})


def test_there_are_two_hundred_harmless_names_and_texts() -> None:
    assert sum(map(len, HARMLESS.values())) >= 200
    assert all(len(set(texts)) == len(texts) for texts in HARMLESS.values())


@pytest.mark.parametrize("name", HARMLESS["names"])
def test_a_harmless_name_hides_nothing(name: str, redactor: Redactor) -> None:
    """In a configuration, with a text and with a number; and as a metric's name."""
    for value in ("some text", 7, 0.5, ["a", "b"]):
        assert redactor.config({name: value, f"critic/{name}": value}) == {
            name: value,
            f"critic/{name}": value,
        }
    assert redactor.key(f"train/{name}") == f"train/{name}"


@pytest.mark.parametrize("text", HARMLESS["texts"])
def test_a_harmless_text_stays_whole_in_a_row(text: str, redactor: Redactor) -> None:
    """Alone, among others, in lists, mappings and tables."""
    row = {
        "a": text,
        "samples": [text, 1, {"prompt": text, "n": [text]}],
        "table": {"columns": ["token", "answer"], "data": [[text, text]]},
    }
    assert redactor.row(row) == row


@pytest.mark.parametrize("text", HARMLESS["values"])
def test_hashes_paths_and_identifiers_stay_in_a_configuration_too(
    text: str, redactor: Redactor
) -> None:
    assert redactor.config({"note": text, "list": [text]}) == {"note": text, "list": [text]}


def test_rows_teach_nothing() -> None:
    """Not a metric's name, not an axis, not another row; and a real key that comes later is hidden."""
    redactor = Redactor()
    text = 'password = "train/pg_loss" and secret_key="train/step" ' + " ".join(
        f"password='made-up-{number}-Xy9'" for number in range(300)
    )
    assert redactor.row({"text": text}) == {"text": text}
    assert repr(redactor).startswith("Redactor(num_known=0,")
    assert redactor.row({"train/pg_loss": 0.5, "train/step": 1}) == {
        "train/pg_loss": 0.5,
        "train/step": 1,
    }
    redactor.config({"api_key": KEY})
    assert KEY not in str(redactor.row({"text": f"echo {KEY}"}))


ASSIGNED = [
    "api_key={}", "api_key: {}", 'os.environ["OPENAI_API_KEY"] = "{}"', '{{"hf_token": "{}"}}', "--api-key {}",
    "--wandb-key={}", "X-Api-Key: {}", "Authorization: Bearer {}", "https://h/?x=1&access_token={}&y=2",
    "next=http%3A%2F%2Fh%2F%3Fpassword%3D{}", "curl -u me:{} http://h", "postgres://me:{}@db/x",
    "- **API key**: {}", "| api_key | {} |", "api_key: >-\n  {}\n", "api_key: &k {}\n", "api_key: !!str {}\n",
    "docker login -u me -p {} ghcr.io", "redis-cli -a {} ping", "db.example.org:5432:x:me:{}",
    "export AWS_SECRET_ACCESS_KEY={}", "password='{}'", "client_secret => {}", "token: b'{}'", '\\"password\\": \\"{}\\"',
]  # fmt: skip


@pytest.mark.parametrize("shape", ASSIGNED)
@pytest.mark.parametrize(
    "value",
    [KEY, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"],
)
def test_a_random_value_of_an_assignment_is_hidden_where_it_stands(shape: str, value: str) -> None:
    """And nothing around it is touched."""
    if "/" in value and "postgres:" in shape:
        pytest.skip("a slash ends what is before the host")
    before, after = shape.replace("{{", "{").replace("}}", "}").split("{}")
    hidden = Redactor().row({"text": f"see {before}{value}{after} ok"})["text"]
    assert value[:8] not in str(hidden) and value[-8:] not in str(hidden)
    assert str(hidden).startswith("see ") and str(hidden).endswith(f"{after} ok")


def test_known_secrets_and_tokens_are_hidden_wherever_they_stand(redactor: Redactor) -> None:
    row = {"a": f"x{KEY}y", "b": [{"c": "sees ghp_" + "aB3dE" * 6}], f"m/{KEY}": 1.0, "n": 1}
    assert redactor.row(row) == {
        "a": "x<hidden: wandb_key>y",
        "b": [{"c": "sees <hidden: github token>"}],
        "m/<hidden: wandb_key>": 1.0,
        "n": 1,
    }


def test_only_random_texts_are_hidden_under_a_secrets_name() -> None:
    row = {
        "password": "hunter2",
        "api_key": KEY,
        "data": {"columns": ["token", "n"], "rows": [["the", 1], [OTHER, 2]]},
    }
    assert Redactor().row(row) == {
        "password": "hunter2",
        "api_key": "<hidden: api_key>",
        "data": {"columns": ["token", "n"], "rows": [["the", 1], ["<hidden: token>", 2]]},
    }


def test_a_row_full_of_secrets_is_hidden_from_where_its_budget_ends(redactor: Redactor) -> None:
    """No secret is shown behind it, and no text is lost."""
    row = {f"s{number}": f"{KEY} " * 1_000 for number in range(MAX_REPLACED // 1_000 + 2)}
    hidden = redactor.row(row)
    assert list(hidden) == list(row) and KEY not in str(hidden)
    last = f"s{MAX_REPLACED // 1_000 + 1}"
    assert hidden[last] == "<hidden: rest of a row with too many secrets>"


def test_known_secrets_and_tokens_are_hidden_behind_thousands_of_harmless_assignments(
    redactor: Redactor,
) -> None:
    text = "pad_token=" + "aB3dE5fG7hJ9kL1m, pad_token=" * 20_000
    row = redactor.row({"a": f"{text} {KEY} ghp_{'aB3dE' * 6}"})
    assert row == {"a": f"{text} <hidden: wandb_key> <hidden: github token>"}


@pytest.mark.parametrize(
    "text", ["half \ud83d of a pair", "\x00\xff\x01", "ÿ\xffÿ", "密码=" + KEY + "中文", ""]
)
def test_odd_characters_are_kept(text: str) -> None:
    """Halves of surrogates, zero bytes, other scripts."""
    secret = Redactor.of({"api_key": OTHER}, {})
    shown = secret.row({"a": text, "b": f"{text}{OTHER}{text}"})
    expected = text.replace(KEY, "<hidden: 密码>")
    assert shown == {"a": expected, "b": f"{expected}<hidden: api_key>{expected}"}


def test_a_signal_handler_may_learn_while_its_thread_is_learning() -> None:
    """Neither waits for the other, and no secret is lost."""
    redactor = Redactor()
    learned: list[str] = []

    def handler(*_: object) -> None:
        if len(learned) >= 50:
            return
        learned.append(f"Zq7sig{len(learned):06d}Xy9Kp")
        redactor.learn("late_key", learned[-1])
        assert learned[-1] not in redactor.text(f"a {learned[-1]} b")

    before = signal.signal(signal.SIGVTALRM, handler)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.01)
    try:
        own = [f"Zq7own{number:06d}Xy9Kp" for number in range(150)]
        for text in own:
            redactor.learn("own_key", text)
            assert text not in redactor.text(f"a {text} b")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert learned
    shown = redactor.text(" ".join([*own, *learned]))
    assert not any(text in shown for text in (*own, *learned))


def test_our_own_advice_is_not_garbled() -> None:
    advice = "wandb: no key; set --wandb-key or WANDB_API_KEY, or run `wandb login` once (--wandb-key WANDB_API_KEY)."
    redactor = Redactor.of(Namespace(wandb_key=None), {})
    assert redactor.text(advice) == advice == redactor.message(advice)
    assert redactor.config({"note": advice}) == {"note": advice}


def test_names_are_never_altered_by_a_value_that_is_learned_later() -> None:
    """Neither a metric's nor an argument's."""
    redactor = Redactor()
    assert redactor.key("train/pg_loss_q1") == "train/pg_loss_q1"
    redactor.config({"lr_decay_style": 1})
    redactor.config({"password": "train/pg_loss_q1", "api_key": "lr_decay_style"})
    assert redactor.key("train/pg_loss_q1") == "train/pg_loss_q1"
    assert redactor.config({"lr_decay_style": 1}) == {"lr_decay_style": 1}
    assert redactor.row({"train/pg_loss_q1": 0.5}) == {"train/pg_loss_q1": 0.5}


@pytest.mark.parametrize("text", ["model.layers.0.self_attn.q_proj", "tokenizer.decode_batch2", "getApiKeyFromEnv2",
                                  "2024-01-02T03:04:05.678", "Llama-3.1-Nemotron-Instruct", "my_secret_key_for_test_1"])  # fmt: skip
def test_identifiers_names_of_models_and_dates_do_not_look_random(text: str) -> None:
    assert not looks_random(text)


@pytest.mark.parametrize("text", [KEY, OTHER, "9f86d081884c7d659a2feaa0c55ad015", "123e4567-e89b-12d3-a456-426614174000",
                                  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "k3jx92mq7vb1zt0w"])  # fmt: skip
def test_generated_texts_look_random(text: str) -> None:
    assert looks_random(text)


SECRET_NAMES = [
    "api_key_openai",
    "openai_api_key_us",
    "access_key_judge",
    "private_key_pem",
    "hf_token_ro",
    "authorization_header",
    "identitytoken",
    "client-key-data",
    "SSHPASS",
    "ansible_vault_pass",
    "sasl_pass",
    "ldap_bindpw",
    "session_id",
    "key_openai",
    "token_judge",
    "PHPSESSID",
    "wandb_api_key_value",
    "azure_openai_key1",
    "kafka_sasl_password",
    "tls_key_pem",
    "jwt_key",
    "registryPassword",
    "_authToken",
    "http_auth",
    "X-Goog-Api-Key",
    "api_key_v2",
    "client_secret_staging",
    "openai_keys",
    "judge_token_ro",
    "DB_DSN",
    "SECRET_KEY_BASE",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_word_that_means_a_secret_means_one_wherever_it_stands(name: str) -> None:
    assert judge(name) >= Verdict.HIDDEN or (name == "http_auth" and judge(name) >= Verdict.IN_DATA)
    assert Redactor().config({name: "abc", f"critic/{name}": "x y"}) == {
        name: f"<hidden: {name}>",
        f"critic/{name}": f"<hidden: {name}>",
    }


INSIDE = {
    "AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=c",
    "DB_DSN": "postgres://u:{}@h:5432/x",
    "AWS_CREDENTIALS": '{{"Version": 1, "SecretAccessKey": "{}"}}',
    "DOCKER_AUTH": '{{"auths": {{"ghcr.io": {{"auth": "{b64}"}}}}}}',
    "DOCKER_AUTH_CONFIG": '{{"auths": {{"ghcr.io": {{"identitytoken": "{}"}}}}}}',
    "https_proxy": "user:{}@proxy:3128",
    "HTTP_PROXY": "http://user:{}@proxy:3128",
    "data_url": "https://b.s3.amazonaws.com/k?AWSAccessKeyId=a&Signature={}%2Bab%3D&Expires=1",
    "odbc": "Driver={{ODBC Driver 18}};Server=db;Uid=sa;Pwd={};Encrypt=yes",
    "JUDGE_LOGIN_SECRET": "judge:{}",
    "REDIS_URL": "redis://:{}@host:6379/0",
    "MY_LOGIN_SECRET": "docker login -u me -p {} ghcr.io",
    "KUBECONFIG_TEXT": "users:\n- name: me\n  user:\n    client-key-data: {}\n",
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("secret", [KEY, "pw1-Kx93"])
@pytest.mark.parametrize("place", ["argument", "environment", "argv", "log_config"])
def test_a_secret_inside_a_hidden_value_is_known_alone(name: str, secret: str, place: str) -> None:
    """The part alone, echoed by an error or a model."""
    import base64

    value = INSIDE[name].format(secret, b64=base64.b64encode(f"me:{secret}".encode()).decode())
    given = {name: value}
    if place == "log_config":
        redactor = Redactor()
        assert secret not in str(redactor.config(given))
    else:
        redactor = Redactor.of(
            given if place == "argument" else None,
            given if place == "environment" else {},
            argv=[f"--{name}={value}"] if place == "argv" else [],
        )
    if name == "data_url":
        assert "Signature=<hidden" in str(redactor.config(given)["data_url"])
        assert f"{secret}%2Bab" not in redactor.text(f"x {secret}%2Bab%3D y")
        assert f"{secret}+ab" not in redactor.text(f"x {secret}+ab= y")
        return
    assert secret not in redactor.text(f"refused: {secret} !")
    assert secret not in str(redactor.row({"a": f"refused: {secret} !"}))


@pytest.mark.parametrize(
    "value",
    [
        "session={}; path=/; HttpOnly",
        "https://hooks.slack.com/services/T000/B000/{}",
        "api_key: &k {}\nother: *k",
        "name,api_key\nme,{}",
        "echo {} | gh auth login --with-token",
    ],
)
def test_the_random_parts_of_a_hidden_value_are_known_alone(value: str) -> None:
    redactor = Redactor.of(None, {"JUDGE_SECRET": value.format(KEY)})
    assert KEY not in redactor.text(f"refused: {KEY} !")


def test_the_fields_of_a_numpy_record_have_names() -> None:
    np = pytest.importorskip("numpy")
    kind = [("user", "U10"), ("password", "U20")]
    record = np.array([("me", "pw1-Kx93")], dtype=kind)
    from slime_logging.values.serialize import arguments_to_json

    args = Namespace(one=record[0], some=record, rec=record.view(np.recarray)[0])
    shown = Redactor().config(arguments_to_json(args))
    assert "pw1-Kx93" not in str(shown) and "'user': 'me'" in str(shown)


def test_known_secrets_stay_bounded() -> None:
    from slime_logging.redaction.known_secrets import MAX_SECRETS

    known = KnownSecrets()
    for number in range(MAX_SECRETS + 10):
        known.learn("key", f"Zq7x{number:012d}x")
    assert len(known) == MAX_SECRETS


@pytest.mark.parametrize("pattern", ["internal.*", "[^x]+", "a*", "(?s)see.*", "\\xff", "$|^"])
def test_a_pattern_of_ones_own_ends_with_its_text(pattern: str) -> None:
    """Also where it finds anything, and nothing: the row keeps each of its texts, hidden as if it were alone."""
    redactor = Redactor.of(None, {}, hide=[f"text:{pattern}"])
    row = {"x": "see internal y", "xx": "", "xxx": "other internal", "xxxx": ["xa", "é\nb", ""]}
    alone = {"x": redactor.text("see internal y"), "xx": "", "xxx": redactor.text("other internal"),
             "xxxx": [redactor.text("xa"), redactor.text("é\nb"), ""]}  # fmt: skip
    assert redactor.row(row) == alone


@pytest.mark.parametrize(
    "text", ["<hidden: {}", "<hidden: {}>", "<hidden: api_key={}", "x <hidden: y\n{}\n"]
)
def test_no_text_makes_itself_a_placeholder_around_a_token(text: str) -> None:
    token = "ghp_" + "aB3dE" * 6
    redactor = Redactor()
    hidden = redactor.row({"a": text.format(token)})["a"]
    assert token[4:] not in str(hidden) and token[4:] not in redactor.text(text.format(token))
    assert redactor.row({"a": hidden}) == {"a": hidden}


@pytest.mark.parametrize("name", ["ghp_{}_key", "{}/api_key", "api_key_{}"])
def test_a_name_that_holds_a_token_is_shown_without_it(name: str) -> None:
    given = name.format("ghp_" + "aB3dE" * 6)
    redactor = Redactor()
    for shown in (
        redactor.config({given: "x y"}),
        redactor.row({given: KEY}),
        redactor.text(f"{given}: {KEY}"),
    ):
        assert "aB3dE" not in str(shown)
    assert "aB3dE" not in str(redactor.hidden)
