"""Which texts look like a secret whatever they are called: the published shapes of tokens.

Policy: a shape is here only if its prefix or frame makes it unmistakable; lengths are lower bounds
below the published ones. No shape has an unbounded run before a part that may be missing, so that
many searches are linear as one is. A bare run of 40 hexadecimal digits (W&B's old keys) looks like
a commit: by name or value only.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from slime_logging.errors import SettingsError
from slime_logging.redaction.random_text import is_mixed, looks_random
from slime_logging.redaction.search import Budget, Found, Replacement, engine, lasting, replaced


class Form(NamedTuple):
    """One shape: the label in `<hidden: label>`, its pattern, its source. Of a frame (`Bearer x`)
    the first group is the secret.
    """

    label: str
    pattern: str
    source: str


_GITLEAKS = "gitleaks 8, config/gitleaks.toml"

TOKENS: tuple[Form, ...] = (
    Form("wandb key", r"wandb_v\d{1,3}_\w{16,}", "docs.wandb.ai, API keys"),
    Form("wandb key", r"local-[0-9a-f]{40}", "W&B client, on-premises keys"),
    Form("hugging face token", r"hf_(?:oauth_[\w.-]{16,}|[A-Za-z0-9]{16,})", _GITLEAKS),
    Form("hugging face token", r"api_org_[A-Za-z]{20,}", _GITLEAKS),
    Form("api key", r"sk-[A-Za-z0-9][\w-]{15,}", _GITLEAKS),
    Form("api key", r"[rs]k_(?:test|live|prod)_\w{10,}", _GITLEAKS),
    Form("github token", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}", _GITLEAKS),
    Form("gitlab token", r"gl(?:pat|ptt|dt|rt|cbt|oas|soat|ffct|imt|agent)-[\w.-]{16,}", _GITLEAKS),
    Form("aws access key", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", _GITLEAKS),
    Form("slack token", r"xox[a-z]-[\w-]{8,}|xapp-[\w-]{16,}", _GITLEAKS),
    Form("telegram token", r"\d{8,10}:AA[\w-]{30,}", "core.telegram.org/bots/api"),
    Form("google key", r"AIza[\w-]{30,}", _GITLEAKS),
    Form("google token", r"ya29\.[\w-]{16,}", "Google OAuth 2 access tokens"),
    Form("google secret", r"GOCSPX-[\w-]{16,}", "Google OAuth 2 client secrets"),
    Form("azure client secret", r"[\w~.]{3}\dQ~[\w~.-]{31,34}", _GITLEAKS),
    Form("databricks token", r"dapi[0-9a-f]{32}(?:-\d{1,3})?", _GITLEAKS),
    Form("nvidia key", r"nvapi-[\w-]{20,}", "docs.nvidia.com, NGC"),
    Form("groq key", r"gsk_[A-Za-z0-9]{20,}", "console.groq.com"),
    Form("xai key", r"xai-[A-Za-z0-9]{20,}", "docs.x.ai"),
    Form("replicate token", r"r8_[A-Za-z0-9]{20,}", "replicate.com/docs"),
    Form("perplexity key", r"pplx-[A-Za-z0-9]{20,}", _GITLEAKS),
    Form("npm token", r"npm_[A-Za-z0-9]{30,}", _GITLEAKS),
    Form("pypi token", r"pypi-AgE[\w-]{20,}", _GITLEAKS),
    Form("docker token", r"dckr_(?:pat|oat)_[\w-]{16,}", "docs.docker.com, access tokens"),
    Form("sendgrid key", r"SG\.[\w-]{16,64}\.[\w-]{16,}", _GITLEAKS),
    Form("vault token", r"hv[sbr]\.[\w-]{20,}", _GITLEAKS),
    Form("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{30,}", _GITLEAKS),
)
"""What is a token from its first character to its last."""

_USER = r"[^\s/?#\"'<>@:\x00\xff]"
_AFTER_COLON = r"[^\s/\"'<>@\x00\xff]"

FRAMES: tuple[Form, ...] = (
    Form("url userinfo", rf"://({_USER}{{0,128}}:{_AFTER_COLON}{{0,300}}|{_USER}{{12,128}})@[\w\[%.-]",
         "RFC 3986, 3.2.1"),
    Form("url userinfo", r"(?i:%3a%2f%2f)([^%\s/&]{0,64}(?i:%3a)[^\s/&@%\"']{1,128}(?:%[0-9A-Fa-f]"
         r"{2}[^\s/&@%\"']{0,64}){0,4})(?i:%40)", "RFC 3986, quoted"),
    Form("password", rf":({_USER}{{3,128}})@(?:(?:[\w-]{{1,63}}\.){{1,8}}[A-Za-z0-9-]{{1,63}}|"
         r"localhost\b|[\w-]{1,63}:\d{2,5})", "an address without its scheme"),
    Form("authorization", r"(?i:bearer)[ \t]{1,4}([\w.~+/=-]{8,})", "RFC 6750"),
    Form("authorization", r"(?i:basic)[ \t]{1,4}([A-Za-z0-9+/]{8,}={0,2})", "RFC 7617"),
    Form("azure sas", r"[?&;]sig=([\w%+/=-]{20,})", "learn.microsoft.com, service SAS"),
    Form("slack webhook", r"hooks\.slack\.com/[a-z]{8,9}/([\w/-]{16,})", _GITLEAKS),
    Form("discord webhook", r"/api/webhooks/(\d{1,24}/[\w-]{16,})", "discord.com/developers"),
    Form("feishu webhook", r"/open-apis/bot/(?:v2/)?hook/([\w-]{16,})", "open.feishu.cn"),
    Form("user and password", r"curl[ \t][^\n\r]{0,300}?(?:-u|--user|--proxy-user)[ =]?[\"']?"
         r"([^\s\"':<]{1,64}:[^\s\"'<\xff]{1,256})", "curl(1)"),
    Form("wandb key", r"wandb\s{1,4}login\s{1,4}(?:--\S{1,64}\s{1,4}){0,4}([\w-]{16,})", "W&B"),
    Form("password", r"(?:sshpass|(?:docker|podman|helm)[ \t][^\n\r]{0,40}?login[^\n\r]{0,100}?)"
         r"\s{1,4}-p\s{0,4}[\"']?([^\s\"'<\xff]{1,256})", "sshpass(1), docker-login(1)"),
    Form("password", r"redis-cli[ \t][^\n\r]{0,100}?-a[ \t]{1,4}[\"']?([^\s\"'<\xff]{1,256})",
         "redis-cli"),
    Form("password", r"[A-Za-z*][\w.*-]{0,100}:(?:\d{1,5}|\*):[\w.*-]{1,64}:[\w.*-]{1,64}:"
         r"([^\s:\"'<>@\xff]{8,256})", "a line of .pgpass"),
    Form("netrc password", r"machine\s{1,8}\S{1,128}\s{1,8}(?:login\s{1,8}\S{1,128}\s{1,8})?"
         r"(?:account\s{1,8}\S{1,128}\s{1,8})?password\s{1,8}([^\s<\xff]{1,256})", "netrc(5)"),
)  # fmt: skip
"""What is a secret for what stands around it; in a row only where it looks random."""

FRAME_HINT = (
    r"@|%40|(?i:bearer|basic)[ \t]|sig=|hooks?[./]|curl[ \t]|wandb\s|\s-p|redis-cli|machine\s|"
    r":(?:\d{1,5}|\*):"
)
"""In whatever matches a frame: their own pattern takes 40 ms to be compiled, and most processes
never need it.
"""

LONG: tuple[tuple[str, Form], ...] = (
    ("-----BEGIN", Form(
        "private key", r"-----BEGIN[ A-Z0-9_-]{0,100}(?:PRIVATE KEY|PGP MESSAGE)(?: BLOCK)?-----"
        r"(?:[^-\xff]|-[^-\xff])*(?:-----END[ A-Z0-9_-]{0,100}-----)?", "RFC 7468, RFC 4880")),
    ("eyJ", Form("json web token", r"eyJ[\w-]{8,}\.[\w-]*\.[\w.-]*", "RFC 7519, RFC 7516")),
)  # fmt: skip
"""What has no bounded length: searched for one by one, and only where this text occurs."""


class FormRules:
    """Every shape, compiled, and the user's own `text:` patterns.

    Raises:
        SettingsError: a pattern that RE2 cannot read, is empty, or has several groups.
    """

    def __init__(self, hide: Sequence[str] = ()) -> None:
        self._own = [_own(text) for text in hide if text.startswith("text:")]

    @property
    def source(self) -> str:
        """A pattern that finds wherever there may be one."""
        own = [f"(?:{pattern.pattern.decode()})" for pattern in self._own]
        return "|".join([ANY_TOKEN, _FRAMES, *(form.pattern for _, form in LONG), *own])

    def hide(self, data: bytes, found: Found, in_row: bool, budget: Budget) -> bytes:
        """The text, or several between bytes of 255, with every secret of a known shape replaced by
        `found(label, secret)`; in a row frames count only around what looks random.
        """

        def decide(start: int, end: int) -> Replacement | None:
            form, start, end = _named(data, start, end)
            secret = data[start:end].decode(errors="replace")
            around = data[max(0, start - 66) : start], data[end : end + 300]
            if form is not None and form.pattern.startswith("sk-"):
                budget.num_looked_at -= 1  # names of classes begin so too: `sk-toggleable__control`
                if budget.num_looked_at >= 0 and not looks_random(secret[3:]):
                    return None
            elif form is None or not _is_secret(form, secret, around, in_row=in_row):
                return None
            return start, end, found(form.label, secret)

        for hint, pattern in _SEARCHES:
            if lasting(hint).search(data):
                kind = {"is_doubtful" if hint == FRAME_HINT else "is_token": True}
                data = replaced(data, lasting(pattern), decide, budget, **kind)
        for own in self._own:  # one by one: it may find any byte, that between two texts too
            texts = data.split(b"\xff")
            data = b"\xff".join(_hide_own(text, own, found, budget) for text in texts)
        return data


def _hide_own(data: bytes, pattern: Any, found: Found, budget: Budget) -> bytes:
    def decide(start: int, end: int) -> Replacement | None:
        match = pattern.match(data, start, end)
        start, end = match.span(pattern.groups) if match else (start, start)
        secret = data[start:end].decode(errors="replace")
        return None if start == end else (start, end, found("pattern", secret))

    return replaced(data, pattern, decide, budget)


ANY_TOKEN = f"(?:^|[^A-Za-z0-9])(?:{'|'.join(form.pattern for form in TOKENS)})"
_FRAMES = "|".join(re.sub(r"(?<!\\)\((?!\?)", "(?:", form.pattern) for form in FRAMES)
_SEARCHES = (
    *((hint, rf"(?:^|[^\w-])(?:{form.pattern})") for hint, form in LONG),
    (FRAME_HINT, _FRAMES),
    ("", ANY_TOKEN),
)
"""What is searched for one behind the other, each only where its hint is in the text."""


@functools.cache
def _namer() -> tuple[re.Pattern[bytes], list[Form]]:
    """Tells which shape it is that RE2 found, and where its group stands."""
    forms = [*TOKENS, *(form for _, form in LONG), *FRAMES]
    parts = [
        f"(?P<f{number}>{form.pattern if form in FRAMES else f'[^A-Za-z0-9]?({form.pattern})'})"
        for number, form in enumerate(forms)
    ]
    return re.compile("|".join(parts).encode("latin-1")), forms


def _named(data: bytes, start: int, end: int) -> tuple[Form | None, int, int]:
    pattern, forms = _namer()
    match = pattern.match(data, start, end)
    if match is None or match.lastgroup is None:
        return None, start, end
    group = pattern.groupindex[match.lastgroup]
    return forms[int(match.lastgroup[1:])], *match.span(group + 1)


def _is_secret(form: Form, secret: str, around: tuple[bytes, bytes], *, in_row: bool) -> bool:
    if form not in FRAMES:
        return True
    password = secret.rpartition(":")[2] if form.label != "discord webhook" else secret
    if form.source.startswith("an address"):
        user = re.search(rb"(?:^|[^\w.+-])([A-Za-z][\w.+-]{0,63}):\Z", around[0])
        if user is None or user.group(1).lower() == b"mailto":
            return False
        if not in_row and re.match(rb"@[\w.-]{1,255}:\d", around[1]):
            return True
        return is_mixed(password)
    if in_row or form.source.startswith("a line"):
        return is_mixed(password) or looks_random(password) or login_in(secret) != ""
    if form.label == "authorization":
        return not re.fullmatch("[A-Za-z]?[a-z]*", secret)
    if form.label == "url userinfo" and ":" not in secret and "%" not in secret:
        return not re.fullmatch("[a-z._-]*", secret)
    return True


LOGIN = re.compile(r"[\w.+-]{0,128}:[^\s/:]{1,512}\Z")


def login_in(text: str) -> str:
    """What base64 of `user:password` says; empty for other texts."""
    if not re.fullmatch(r"[A-Za-z0-9+/]{8,1024}={0,2}", text):
        return ""
    try:
        login = base64.b64decode(text, validate=True).decode()
    except ValueError:
        return ""
    return login if LOGIN.match(login) else ""


def _own(text: str) -> Any:
    pattern = engine(text.removeprefix("text:"))
    if pattern.pattern and pattern.groups <= 1:
        return pattern
    raise SettingsError(
        f"--tracking-hide {text!r}: the pattern must not be empty and may have one group."
    )
