"""Which names say that their value is a secret.

Policy: a name is judged by its words (`sglangApiKey` -> sglang, api, key), never by its value. What
says password, secret, credential or one of `SECRET_PHRASES` is a secret anywhere. `key` and `token`
as the last word are a secret unless the word before them says otherwise (`HARMLESS_BEFORE`:
`reward_key`, `pad_token`); their plurals are counts and columns unless the word before them says so
(`api_keys`). A last word that says what is known *about* a secret (`api_key_file`,
`password_length`) makes a name harmless.
"""

from __future__ import annotations

import enum
import re
import unicodedata


def word_set(*lines: str) -> frozenset[str]:
    """The words of some lines, for tables that are read more often than changed."""
    return frozenset(" ".join(lines).split())


class Verdict(enum.IntEnum):
    """How a value under a name is treated; higher is stricter."""

    SHOWN = 0
    IF_RANDOM = 1
    """Hidden where it looks like a generated key (`secret_forms.looks_random`); the name alone
    (`key`, `sig`) says too little.
    """
    IN_DATA = 2
    """Hidden in mappings, on command lines and in JSON text; in running text, where `token:
    expected` is prose, as `IF_RANDOM`.
    """
    HIDDEN = 3
    FORCED = 4
    """Hidden by the user's own rule: bools too."""


SECRET_WORDS = word_set(
    "password passwd passphrase passcode secret credential credentials creds apikey apikeys apitoken authtoken",
    "accesstoken accesskey privatekey secretkey sessiontoken refreshtoken authkey accountkey sharedkey masterkey",
    "sshkey signingkey encryptionkey wandbkey hftoken bottoken keytab 密码 口令 密钥 令牌 凭证",
)
"""Looked for inside each word, so that `dbpassword` and `PGPASSWORD` are found; none of them is
part of an everyday word.
"""

SECRET_QUALIFIERS = word_set(
    "api access private secret auth authentication authorization session refresh bearer oauth oauth2 id_token",
    "personal service account storage master root admin user client app application bot deploy deployment",
    "encryption encrypt decryption signing sign shared ssh ssl tls gpg pgp aes rsa hmac jwt csrf xsrf license",
    "webhook subscription registry push device security wandb weave hf huggingface hub openai anthropic claude",
    "gemini google gcp aws azure github gitlab git gitea slack discord telegram dingtalk feishu lark wechat",
    "mlflow databricks swanlab trackio comet neptune clearml aim tensorboard modelscope dashscope deepseek",
    "moonshot kimi qwen zhipu glm volcengine ark minimax siliconflow openrouter together groq fireworks mistral",
    "cohere replicate nvidia ngc nvapi serper tavily exa bing brave jina serpapi e2b daytona modal docker npm",
    "pypi kaggle ray sglang vllm sglang_router judge teacher grader verifier reward_model search tool_server",
)
"""Words before `keys` and `tokens` that make them secrets."""

HARMLESS_BEFORE = word_set(
    # columns of a dataset and of what is made of it
    "input output label reward tool tools metadata meta prompt completion response answer question chosen",
    "rejected target source src tgt text image images video videos audio message messages chat conversation",
    "instruction context document doc problem solution truth score scores row column col field data dataset",
    "sample item record example feature eval train test val extra info group domain category task subset split",
    "index idx uid multimodal media mm",
    # the mechanics of dictionaries, caches, databases, attention
    "sort sorting sorted order dict map mapping cache lookup primary foreign composite unique partition shard",
    "routing route bucket join merge state step metric metrics log logging attr attribute param parameter option",
    "config arg args kwarg kwargs flag value key kv num max min head heads attention attn rope position hot short",
    "json yaml xml object path file module layer weight buffer optimizer scheduler missing unexpected ignore",
    "ignored skip redacted hidden allowed excluded included random rng prng public pub language lang translation",
    "i18n",
    # tokens of a tokenizer and their counts
    "pad padding eos eod bos unk mask masked sep cls prefix suffix middle special stop start end begin final",
    "think thinking vision vocab vocabulary next last first prev previous current new old per valid invalid loss",
    "class separator newline space assistant observation call draft speculative accepted generated generation",
    "decode prefill forced action soft hard sub subword word char byte total all each every any one single two",
    "top reasoning latent register memory eot eom boi eoi fim placeholder dummy virtual continuous discrete",
    "expert experts moe router routed dropped mtp",
)
"""Words before a last `key` or `token` that say it is no secret. What is not here is hidden: a
wrong guess costs a `--tracking-show`.
"""

ABOUT = word_set(
    "file files path paths dir directory folder filename env variable name names type types kind length len size",
    "count num number ttl expiry expires expiration timeout interval policy format mode method enabled disabled",
    "required optional allowed url uri endpoint provider backend manager rotation header headers helper usage",
    "limit limits algorithm algo scheme version style class column field prompt template error errors status",
    "valid",
)
"""Last words that say something about a secret instead of being it."""

SUFFIXES = word_set(
    "value val text txt str string raw plain plaintext b64 base64 encoded encrypted hex prod production dev",
    "development test testing staging stage default primary secondary backup fallback old new current previous",
    "main local remote global override in out bytes v",
)
"""Last words (and numbers) that change nothing: `api_key_2`, `password_plain` are judged as
`api_key`, `password`.
"""

PASS_BEFORE = word_set(
    "db database smtp mysql pg postgres redis mongo mongodb user login admin root ftp sftp ssh proxy http mail",
    "email imap ldap wifi rabbit rabbitmq amqp my sql wandb sudo key keystore cert pem ssl",
)
"""Words before a last `pass` or `pw` that make it a password; elsewhere it is a pass
(`forward_pass`, `pass@1`).
"""

HARMLESS_NAMES = word_set(
    "redacted_keys tracking_hide tracking_show apply_query_key_layer_scaling key_value_channels public_key",
    "ssh_public_key",
)
"""Whole names that are settled here, before any rule."""

MAX_NAME_CHARS = 256
"""Longer names are judged by their end; the longest option of Megatron and slime has 57
characters.
"""

HINT = re.compile(
    r"key|token|secret|passw|passp|passc|_pass|pwd|cred|auth|\bsig|signature|cookie|\bpat\b|_pat|jwt|bearer|dsn|webhook|connection|"
    r"\bpass\b|\bpw|_pw|密|口令|令牌|凭证"
)
"""Found in the lower-case text of every name that can be a secret: the quick way past all
others.
"""

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_SEGMENT = re.compile(r"[/.:\[\]]+")
_SIGNATURES = frozenset({"signature", "sig", "credential"})
_ALONE = {
    "auth",
    "authorization",
    "cookie",
    "cookies",
    "jwt",
    "bearer",
    "dsn",
    "webhook",
    "pat",
    "setcookie",
}


def leaf(name: str) -> str:
    """The last part of a path of names: `critic/wandb_key` and `critic.wandb_key` ->
    `wandb_key`.
    """
    parts = [part for part in _SEGMENT.split(name) if part.strip("-_ ")]
    return parts[-1] if parts else name


def judge(name: str) -> Verdict:
    """How a value under this name is treated, by the tables above.

    The last part of a path decides; earlier parts count where they are plainly secret
    (`secrets/database/user`).
    """
    name = unicodedata.normalize("NFKC", name[-MAX_NAME_CHARS:])
    if not HINT.search(name.lower()):
        return Verdict.SHOWN
    parts = [part for part in _SEGMENT.split(name) if part.strip("-_ ")]
    if not parts:
        return Verdict.SHOWN
    if parts[-1].strip("-").replace("-", "_").lower() in HARMLESS_NAMES:
        return Verdict.SHOWN
    if any(_is_plainly_secret(_words(part)) for part in parts[:-1]):
        return Verdict.HIDDEN
    return _judge_words(_words(parts[-1]))


def _words(part: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(part)]
    # `APIkey` falls apart into ap, ikey; the same text in one case does not.
    whole = re.findall(r"[^\W_]+", part.lower())
    if any(_has_secret_word(word) for word in whole) and not any(
        _has_secret_word(word) for word in words
    ):
        words = whole
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in SUFFIXES):
        words.pop()
    return words


def _has_secret_word(word: str) -> bool:
    return any(secret in word for secret in SECRET_WORDS)


def _is_plainly_secret(words: list[str]) -> bool:
    """Whether the words themselves are a secret's: one of `SECRET_WORDS`, or key(s) and token(s)
    with a `SECRET_QUALIFIERS` word.
    """
    if not words or words[-1] in ABOUT:
        return False
    if any(_has_secret_word(word) for word in words):
        return True
    return any(
        word in ("key", "keys", "token", "tokens") and words[at - 1] in SECRET_QUALIFIERS
        for at, word in enumerate(words)
        if at
    )


def _judge_words(words: list[str]) -> Verdict:
    if not words:
        return Verdict.SHOWN
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if [before, last] == ["webhook", "url"]:
        return Verdict.HIDDEN  # whoever has the address can post
    if last in ABOUT:
        return Verdict.SHOWN
    if (
        last in ("keys", "tokens", "key", "token")
        and before in HARMLESS_BEFORE
        and not _is_plainly_secret(words[:-1])
    ):
        return Verdict.SHOWN
    if words[0] in ("num", "max", "min", "total", "count") and last.endswith("s"):
        return Verdict.SHOWN
    if last in ("keys", "tokens"):
        return (
            Verdict.HIDDEN
            if before in SECRET_QUALIFIERS or _has_secret_word(before)
            else Verdict.SHOWN
        )
    if words[-3:] == ["access", "key", "id"] or any(_has_secret_word(word) for word in words):
        return Verdict.HIDDEN
    if last in ("key", "token"):
        return Verdict.HIDDEN if before else Verdict.IF_RANDOM if last == "key" else Verdict.IN_DATA
    return _judge_last(words, last, before)


def _judge_last(words: list[str], last: str, before: str) -> Verdict:
    if last in ("pass", "pw", "pwd"):
        if before in PASS_BEFORE or (last == "pwd" and before and before != "old"):
            return Verdict.HIDDEN
        return Verdict.IF_RANDOM if not before or last == "pwd" else Verdict.SHOWN
    if last in _ALONE or "".join(words[-2:]) in ("basicauth", "connectionstring", "proxyauth"):
        return (
            Verdict.HIDDEN
            if before or last in ("authorization", "cookie", "webhook")
            else Verdict.IN_DATA
        )
    if last in _SIGNATURES:
        return Verdict.HIDDEN if "amz" in words or "goog" in words else Verdict.IF_RANDOM
    return Verdict.SHOWN
