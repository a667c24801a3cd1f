"""The words by which names are judged: which mean a secret, and which say that there is none."""

from __future__ import annotations


def words_of(*lines: str) -> frozenset[str]:
    """The words of some lines, for tables that are read more often than changed."""
    return frozenset(" ".join(lines).split())


SECRET_WORDS = words_of(
    "password passwd passphrase passcode secret credential creds apikey apitoken authtoken",
    "accesstoken accesskey privatekey secretkey sessiontoken refreshtoken identitytoken authkey",
    "accountkey sharedkey masterkey sshkey signingkey encryptionkey wandbkey hftoken bottoken",
    "keytab sshpass bindpw keydata connectionstring proxyauth basicauth sessionid sessid",
    "idtoken csrftoken xsrftoken userpass authcode passwort contraseña senha пароль",
    "密码 口令 密钥 令牌 凭证 パスワード 비밀번호",
)
"""Looked for inside of the name without its separators' sides; part of no everyday word."""

QUALIFIERS = words_of(
    "api access private secret auth authentication authorization session refresh bearer oauth",
    "oauth2 identity personal service account storage master root admin user client app bot deploy",
    "encryption encrypt decryption signing sign shared ssh ssl tls gpg pgp aes rsa hmac jwt csrf",
    "xsrf license webhook subscription registry push device security wandb weave hf huggingface",
    "hub openai anthropic claude gemini google gcp aws azure github gitlab git gitea slack discord",
    "telegram dingtalk feishu lark wechat mlflow databricks swanlab trackio comet neptune clearml",
    "aim tensorboard modelscope dashscope deepseek moonshot kimi qwen zhipu glm volcengine ark",
    "minimax siliconflow openrouter together groq fireworks mistral cohere replicate nvidia ngc",
    "nvapi serper tavily exa bing brave jina serpapi e2b daytona modal docker npm pypi kaggle ray",
    "sglang vllm judge teacher grader verifier reward_model search application deployment",
)
"""Beside `key` or `token`, before or behind it, they make a secret of it, in the plural too."""

HARMLESS_BESIDE = words_of(
    # columns of a dataset and of what is made of it
    "input output label reward tool tools metadata meta prompt completion response answer question",
    "chosen rejected target source src tgt text image images video videos audio message messages",
    "chat conversation instruction context document doc problem solution truth score scores row",
    "column col field data dataset sample item record example feature eval train test val extra",
    "info group domain category task subset split index idx uid multimodal media mm",
    # the mechanics of dictionaries, caches, databases, attention
    "sort sorting sorted order dict map mapping cache lookup primary secondary foreign composite",
    "unique partition shard routing route bucket join merge state step metric metrics log logging",
    "attr attribute param parameter option config arg args kwarg kwargs flag value key kv num max",
    "min head heads attention attn rope position hot short json yaml xml object path file module",
    "layer weight buffer optimizer scheduler missing unexpected ignore ignored skip redacted",
    "hidden allowed excluded included random rng prng public pub language lang translation i18n",
    "query fn unnorm role content batch time event tag trace base chunk counter other another past",
    "expected stacked lora modal mesh dataloader rollout",
    # tokens of a tokenizer and their counts
    "pad padding eos eod bos unk mask masked sep cls prefix suffix middle special stop start end",
    "begin final think thinking vision vocab vocabulary next last first prev previous current new",
    "old per valid invalid loss class separator newline space assistant observation call draft",
    "speculative accepted generated generation decode prefill forced action soft hard sub subword",
    "word char byte total all each every any one single two top reasoning latent register memory",
    "eot eom boi eoi fim placeholder dummy virtual continuous discrete expert experts moe router",
    "routed dropped mtp dispatcher drop level ids id count counts entropy kl embedding embeddings",
    "budget mean sum logprob logprobs logits usage throughput tokens throttling len length size",
    "accuracy ratio rate type types tree parser limit window span sampling selection balance",
    "prob probs reject rejected sampled sequence actual global local shift merging pruning latency",
    "cost price indices positions baseline classification",
)
"""Beside an unqualified `key` or `token` they say that it is no secret. What is not here is hidden:
a wrong guess costs a `--tracking-show`.
"""

ABOUT = words_of(
    "file files path paths dir directory folder filename env variable name names type types kind",
    "length len size count num number ttl expiry expires expiration timeout interval policy format",
    "mode method enabled disabled required optional allowed url uri endpoint provider backend",
    "manager rotation helper usage limit limits algorithm algo scheme version style class column",
    "field prompt template error errors status valid strength rate",
)
"""Last words that say something about a secret instead of being it."""

HARMLESS_NAMES = words_of(
    "redacted_keys tracking_hide tracking_show apply_query_key_layer_scaling key_value_channels",
    "public_key ssh_public_key author_pat",
)
"""Whole names that are settled here, before any rule."""

SUFFIXES = words_of(
    "v value val text txt str string raw plain b64 base64 encoded encrypted hex prod production",
    "dev development test staging stage default backup fallback old new main local remote ro rw us",
    "eu",
)
"""Last words (and numbers) that change nothing: `api_key_2` is judged as `api_key`."""

ALONE = words_of(
    "auth authorization cookie cookies jwt bearer dsn webhook pat setcookie sas psk ak sk"
)
PASS_BEFORE = words_of(
    "db database smtp mysql pg postgres redis mongo mongodb user login admin root ftp sftp ssh",
    "proxy http mail email imap ldap bind wifi rabbit rabbitmq amqp my sql wandb sudo key keystore",
    "cert pem ssl vault sasl basic kafka broker registry docker odbc jdbc service account app",
)
"""Words before a last `pass` or `pw` that make it a password; elsewhere it is a pass."""
SIGNATURES = words_of("signature sig credential")

HINT = (
    "key|token|secret|pass|pwd|bindpw|cred|auth|sig|cookie|jwt|bearer|dsn|webhook|connection|sess|"
    "[_-](?:pat|pw|sas|psk|ak|sk)|contrase|senha|пароль|密|口令|令牌|凭证|パスワード|비밀번호"
)
"""Found in every name that can be a secret's, in lower case: the quick way past others."""
