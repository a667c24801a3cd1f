"""The logins that trackers' clients keep on disk: read once, so that they are known and hidden,
never used.

Policy: only files at their documented places; nothing is followed, written or reported; a file that
is missing, unreadable, too large or malformed gives what can be made out of it, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from slime_logging.redaction.secret_names import may_be_secret

MAX_BYTES = 65_536
"""Of a login file; real ones have a few lines."""

_NETRC = re.compile(r"\bpassword\s+(\S+)")
_SETTING = re.compile(r"^[ \t]*([\w.-]+)[ \t]*[=:][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)

NETRC_FILES = (
    "$NETRC", "~/.netrc", "~/_netrc", "~/.swanlab/.netrc", "$SWANLAB_SAVE_DIR/.netrc",
)  # fmt: skip
SETTINGS_FILES = (
    "$WANDB_CONFIG_DIR/settings", "$WANDB_DIR/wandb/settings", "~/.config/wandb/settings",
    "~/.mlflow/credentials", "~/.databrickscfg",
)  # fmt: skip
TOKEN_FILES = (
    "$HF_TOKEN_PATH", "$HF_HOME/token", "~/.cache/huggingface/token", "~/.huggingface/token",
)  # fmt: skip


def stored_secrets(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(name, secret) of every login found: netrc, W&B's settings, Hugging Face's, SwanLab's,
    MLflow's and Databricks' files.
    """
    for content in _contents(NETRC_FILES, environ):
        for secret in _NETRC.findall(content):
            yield "netrc password", secret.strip("\"'")
    for content in _contents(SETTINGS_FILES, environ):
        for name, value in _SETTING.findall(content):
            if may_be_secret(name):
                yield name, value.strip("\"'")
    for content in _contents(TOKEN_FILES, environ):
        if token := content.strip():
            yield "stored token", token


def _contents(places: tuple[str, ...], environ: Mapping[str, str]) -> Iterator[str]:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    for place in places:
        first, _, rest = place.partition("/")
        base = home if first == "~" else environ.get(first[1:])
        try:
            path = Path(base or "", rest)
            if base and path.is_file():
                with path.open("rb") as file:
                    yield file.read(MAX_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):  # a variable may hold anything
            continue
