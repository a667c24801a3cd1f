"""Which texts look like a secret whatever they are called: the published shapes of tokens.

Policy: a shape is here only if its prefix or frame makes it unmistakable; lengths are lower bounds,
somewhat below the published ones, so that a token cut short or grown by its vendor is still found.
A bare run of 40 hexadecimal digits (W&B's old keys) looks like a commit and is found by name or
known value only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from slime_logging.redaction import marks


class Form(NamedTuple):
    """One shape: the label shown in `<hidden: label>`, a text that always occurs in it (lower
    case), its pattern, its source.

    The first group, where there is one, is what is replaced; else the whole match.
    """

    label: str
    hint: str
    pattern: str
    source: str


_GITLEAKS = "gitleaks 8 rule set, config/gitleaks.toml"
_START = r"(?<![A-Za-z0-9])"

_URL_USERINFO = (
    r"[a-zA-Z][a-zA-Z0-9+.-]*://"
    r"([^\s/?#\"'<>@]*:[^\s/\"'<>]*|(?!git@|[a-z]{1,12}@)[^\s/?#\"'<>@:]+)@(?=[\w\[%.-])"
)
_BARE_USERINFO = (
    r"(?<![\w/:@.+-])(?!mailto:)[A-Za-z][\w.+-]{0,63}:(?=[^\s@:/\"'<>]*\d)(?=[^\s@:/\"'<>]*[A-Za-z])([^\s@:/\"'<>]{8,128})@"
    r"(?=(?:[\w-]+\.)+[A-Za-z0-9-]+(?::\d+)?(?:[/\s\"',;?)\]}]|\Z)|localhost\b)"
)
_BASIC = r"(?i:\bbasic)\s+(?=[A-Za-z0-9+/]*[0-9A-Z+/=])(?![A-Z]?[a-z]+(?![\w+/=]))([A-Za-z0-9+/]{8,}={0,2})"
_CURL_USER = r"\bcurl\s(?:.{0,500}?\s)?(?:-u|--user|--proxy-user)[ =]?[\"']?([^\s\"':]+:[^\s\"']+)"
_NETRC = r"\bmachine\s+\S+\s+(?:login\s+\S+\s+)?(?:account\s+\S+\s+)?password\s+(\S+)"

FORMS: tuple[Form, ...] = (
    Form("private key", "-----begin", r"-----BEGIN[ A-Z0-9_-]{0,100}(?:PRIVATE KEY|PGP MESSAGE)(?: BLOCK)?-----[\s\S]*?"
         r"(?:-----END[ A-Z0-9_-]{0,100}-----|\Z)", "RFC 7468, RFC 4880; " + _GITLEAKS),
    Form("json web token", "eyj", _START + r"eyJ[\w-]{8,}\.(?:eyJ[\w-]{8,}|[\w-]*)\.[\w.-]*", "RFC 7519, RFC 7516"),
    Form("wandb key", "wandb_v", _START + r"wandb_v\d+_\w{16,}", "docs.wandb.ai, API keys"),
    Form("wandb key", "local-", _START + r"local-[0-9a-f]{40}\b", "W&B client, on-premises keys"),
    Form("hugging face token", "hf_", _START + r"hf_(?=\w*[A-Z0-9])[A-Za-z0-9]{16,}", _GITLEAKS),
    Form("hugging face token", "hf_oauth_", _START + r"hf_oauth_[\w.-]{16,}", "huggingface.co/docs/hub/oauth"),
    Form("hugging face token", "api_org_", _START + r"api_org_[A-Za-z]{20,}", _GITLEAKS),
    Form("api key", "sk-",
         _START + r"sk-(?=[\w-]*\d|[\w-]*[a-z][A-Z]|[\w-]{32})[A-Za-z0-9][\w-]{15,}", _GITLEAKS),
    Form("api key", "sk_", _START + r"[rs]k_(?:test|live|prod)_\w{10,}", _GITLEAKS),
    Form("github token", "gh", _START + r"gh[pousr]_[A-Za-z0-9]{20,}", _GITLEAKS),
    Form("github token", "github_pat_", _START + r"github_pat_\w{20,}", _GITLEAKS),
    Form("gitlab token", "gl", _START + r"gl(?:pat|ptt|dt|rt|cbt|oas|soat|ffct|imt|agent)-[\w.-]{16,}", _GITLEAKS),
    Form("aws access key", "a", _START + r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])", _GITLEAKS),
    Form("user and password", "curl", _CURL_USER, "curl(1)"),
    Form("wandb key", "wandb login", r"\bwandb\s+login\s+(?:--\S+\s+){0,9}([^\s-]\S{15,})", "W&B client"),
    Form("url userinfo", "%3a%2f%2f", r"(?i:%3a%2f%2f)([^%\s/]*(?i:%3a)[^\s&/]{1,300}?)(?i:%40)", "RFC 3986, quoted"),
    Form("password", "sshpass", r"\bsshpass\s+-p\s*(\S+)", "sshpass(1)"),
    Form("slack token", "xox", _START + r"xox[a-z]-[\w-]{8,}", _GITLEAKS),
    Form("slack token", "xapp-", _START + r"xapp-[\w-]{16,}", _GITLEAKS),
    Form("slack webhook", "hooks.slack.com",
         r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/-]{16,})", _GITLEAKS),
    Form("discord webhook", "/api/webhooks/", r"/api/webhooks/(\d+/[\w-]{16,})", "discord.com/developers, webhooks"),
    Form("telegram token", ":aa", r"(?<!\d)\d{8,10}:AA[\w-]{30,}", "core.telegram.org/bots/api"),
    Form("feishu webhook", "/open-apis/bot/",
         r"/open-apis/bot/(?:v2/)?hook/([\w-]{16,})", "open.feishu.cn, custom bots"),
    Form("google key", "aiza", _START + r"AIza[\w-]{30,}", _GITLEAKS),
    Form("google token", "ya29.", _START + r"ya29\.[\w-]{16,}", "Google OAuth 2 access tokens"),
    Form("google secret", "gocspx-", _START + r"GOCSPX-[\w-]{16,}", "Google OAuth 2 client secrets"),
    Form("azure sas", "sig=", r"[?&;]sig=([\w%+/=-]{20,})", "learn.microsoft.com, service SAS"),
    Form("azure account key", "accountkey=",
         r"(?i:accountkey)=([\w+/=]{20,})", "learn.microsoft.com, connection strings"),
    Form("azure client secret", "q~", r"(?<![\w~.])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~])", _GITLEAKS),
    Form("databricks token", "dapi", _START + r"dapi[0-9a-f]{32}(?:-\d+)?", _GITLEAKS),
    Form("nvidia key", "nvapi-", _START + r"nvapi-[\w-]{20,}", "docs.nvidia.com, NGC"),
    Form("groq key", "gsk_", _START + r"gsk_[A-Za-z0-9]{20,}", "console.groq.com"),
    Form("xai key", "xai-", _START + r"xai-[A-Za-z0-9]{20,}", "docs.x.ai"),
    Form("replicate token", "r8_", _START + r"r8_[A-Za-z0-9]{20,}", "replicate.com/docs"),
    Form("perplexity key", "pplx-", _START + r"pplx-[A-Za-z0-9]{20,}", _GITLEAKS),
    Form("npm token", "npm_", _START + r"npm_[A-Za-z0-9]{30,}", _GITLEAKS),
    Form("pypi token", "pypi-", _START + r"pypi-AgE[\w-]{20,}", _GITLEAKS),
    Form("docker token", "dckr_pat_", _START + r"dckr_(?:pat|oat)_[\w-]{16,}", "docs.docker.com, access tokens"),
    Form("sendgrid key", "sg.", _START + r"SG\.[\w-]{16,}\.[\w-]{16,}", _GITLEAKS),
    Form("vault token", "hv", _START + r"hv[sbr]\.[\w-]{20,}", _GITLEAKS),
    Form("age key", "age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{30,}", _GITLEAKS),
    Form("authorization", "bearer",
         r"(?i:\bbearer)\s+(?!<hidden)(?![A-Za-z]?[a-z]*(?![\w.~+/=-]))([\w.~+/=-]{8,})", "RFC 6750"),
    Form("authorization", "basic ", _BASIC, "RFC 7617"),
    Form("netrc password", "machine", _NETRC, "netrc(5)"),
    Form("url userinfo", "://", _URL_USERINFO, "RFC 3986, 3.2.1"),
    Form("password", "@", _BARE_USERINFO, "an address without its scheme, with a password of letters and digits"),
)  # fmt: skip
"""Every shape, the framed ones first."""


class FormRules:
    """The shapes of `FORMS` and those of the user, compiled.

    `hint` matches lower-case text in which any of them can occur; it is the quick way past all
    other texts.
    """

    def __init__(self, own: Iterable[Form] = ()) -> None:
        self._forms = (*FORMS, *own)
        self._patterns: dict[
            str, re.Pattern[str]
        ] = {}  # compiled when a text first has its hint: all take 5 ms
        hints = sorted({form.hint for form in self._forms}, key=len)
        self.hint = (
            ""
            if hints[0] == ""
            else "|".join(sorted({_QUICKER.get(hint, re.escape(hint)) for hint in hints}))
        )

    def hide(self, text: str, found: Callable[[str, str], str]) -> str:
        """The text with every secret of a known shape replaced by `found(label, secret)`; marks are
        left alone.
        """
        lower = text.lower()
        for form in self._forms:
            if form.hint in lower:
                text = _replaced(text, form, self._pattern(form), found)
        return text

    def _pattern(self, form: Form) -> re.Pattern[str]:
        if form.pattern not in self._patterns:
            self._patterns[form.pattern] = re.compile(form.pattern)
        return self._patterns[form.pattern]


def _replaced(
    text: str, form: Form, pattern: re.Pattern[str], found: Callable[[str, str], str]
) -> str:
    pieces: list[str] = []
    done = 0
    for match in pattern.finditer(text):
        start = max(match.start(pattern.groups), done)
        end = marks.end_behind(text, start, match.end(pattern.groups))
        if start >= end or marks.is_inside(text, start) or marks.MARK.fullmatch(text, start, end):
            continue
        pieces += [text[done:start], found(form.label, text[start:end])]
        done = end
    return "".join(pieces) + text[done:] if pieces else text


_QUICKER = {
    "gh": r"gh[pousr]_",
    "gl": r"gl(?:pat|ptt|dt|rt|cbt|oas|soat|ffct|imt|agent)-",
    "a": r"a3t|akia|asia|abia|acca",
    "hv": r"hv[sbr]\.",
}
"""More exact patterns, over lower-case text, for hints that are too short to tell anything."""

_DOTTED = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+){2,}\Z")
"""Names of modules and parameters: `model.layers.0.weight`."""
_RANDOM_TEXT = re.compile(r"[\w+/=.~-]{16,}\Z")


def is_mixed(text: str) -> bool:
    """Whether a text is no plain word or number: one piece of 8 characters or more with letters and
    digits, and no path.
    """
    if len(text) < 8 or len(text.split()) != 1 or text.startswith(("/", "./", "~/")):
        return False
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def looks_random(text: str) -> bool:
    """Whether a text could be a generated key: 16 characters or more without spaces, letters and
    digits (or both cases) mixed, no path.
    """
    if (
        not _RANDOM_TEXT.match(text)
        or text.startswith(("/", "./", "~/", "../"))
        or text.count("/") > 2
    ):
        return False
    if _DOTTED.match(text):
        return False
    has_digit = any(c.isdigit() for c in text)
    has_lower, has_upper = text != text.upper(), text != text.lower()
    return (has_digit and (has_lower or has_upper)) or (has_lower and has_upper)
