"""The logins that trackers' clients keep on disk: read once, so that they are known and hidden,
never used.

Policy: only files at their documented places below the environment's home directory; nothing is
followed, written or reported; a file that is missing, unreadable, too large or malformed gives what
can be made out of it, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

MAX_BYTES = 65_536
"""Of a login file; real ones have a few lines."""

_NETRC = re.compile(r"\bpassword\s+(\S+)")
_SETTING = re.compile(r"^[ \t]*([\w.-]+)[ \t]*[=:][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_SECRET_SETTING = re.compile(r"key|token|password|secret", re.IGNORECASE)


def stored_secrets(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(name, secret) of every login found: netrc, W&B's settings, Hugging Face's, SwanLab's,
    MLflow's and Databricks' files.
    """
    home = environ.get("HOME") or environ.get("USERPROFILE")
    for path in _netrc_files(environ, home):
        for secret in _NETRC.findall(_content(path)):
            yield "netrc password", secret.strip("\"'")
    for path in _settings_files(environ, home):
        for name, value in _SETTING.findall(_content(path)):
            if _SECRET_SETTING.search(name):
                yield name, value.strip("\"'")
    for path in _token_files(environ, home):
        token = _content(path).strip()
        if token:
            yield "stored token", token


def _netrc_files(environ: Mapping[str, str], home: str | None) -> list[Path]:
    files = [Path(environ["NETRC"])] if environ.get("NETRC") else []
    if home:
        files += [Path(home, ".netrc"), Path(home, "_netrc"), Path(home, ".swanlab", ".netrc")]
    if environ.get("SWANLAB_SAVE_DIR"):
        files.append(Path(environ["SWANLAB_SAVE_DIR"], ".netrc"))
    return files


def _settings_files(environ: Mapping[str, str], home: str | None) -> list[Path]:
    files = (
        [Path(environ["WANDB_CONFIG_DIR"], "settings")] if environ.get("WANDB_CONFIG_DIR") else []
    )
    if environ.get("WANDB_DIR"):
        files.append(Path(environ["WANDB_DIR"], "wandb", "settings"))
    if home:
        files += [
            Path(home, ".config", "wandb", "settings"),
            Path(home, ".mlflow", "credentials"),
            Path(home, ".databrickscfg"),
        ]
    return files


def _token_files(environ: Mapping[str, str], home: str | None) -> list[Path]:
    files = [Path(environ["HF_TOKEN_PATH"])] if environ.get("HF_TOKEN_PATH") else []
    if environ.get("HF_HOME"):
        files.append(Path(environ["HF_HOME"], "token"))
    if home:
        files += [Path(home, ".cache", "huggingface", "token"), Path(home, ".huggingface", "token")]
    return files


def _content(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
