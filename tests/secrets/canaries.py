"""Canaries: distinct secrets for every place of a job in which people keep theirs, and the job that holds them.

Policy: each is used in one place, so that a leak tells where it came from. The text of each is the same at every
call, so that the job and the test that searches it need to hand nothing over.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import functools
import hashlib
import json
import os
import tempfile
import urllib.parse
from pathlib import Path
from typing import Any

CORE_CHARS = 20
WANDB_KEY = hashlib.sha1(b"the key of the tests' server", usedforsecurity=False).hexdigest()
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"


def core(name: str) -> str:
    """The 20 letters and digits of the canary of this name, the same at every call; of `wandb_key`, which is
    hexadecimal, the first 20."""
    if name == "wandb_key":
        return WANDB_KEY[:CORE_CHARS]
    digest = hashlib.blake2b(name.encode(), digest_size=CORE_CHARS).digest()
    return (
        "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:-2]) + f"{digest[-1] % 8 + 2}z"
    )


_SHAPES = {
    # in the arguments
    "wandb_key": WANDB_KEY,
    "arg by name": "{}",
    "arg camel case": "{}",
    "arg nested mapping": "{}",
    "arg nested namespace": "{}",
    "arg dataclass": "{}",
    "arg partial": "{}",
    "arg command list": "{}",
    "arg header pair": "{}",
    "arg bytes": "{}",
    "arg form in a list": "hf_{}",
    "arg odd characters": 'p"w\\{}/ä&=+%',
    "arg userinfo": "{}",
    "arg azure sas": "{}aB3%2Fx%3D",
    "arg connection string": "{}",
    "arg pem": "{}",
    "arg json text": "{}",
    "arg yaml text": "{}",
    "arg two words": "correct {}",
    "arg key of a mapping": "sk-{}",
    "project": "glpat-{}",
    "group": "wandb_v1_{}",
    "experiment": "AIza{}abcdefghijk",
    # in the role file
    "yaml value by name": "{}",
    "yaml value by form": "ghp_{}",
    "yaml comment": "{}",
    # in the environment, on the command line, in files of logins
    "env token": "hf_{}",
    "env by name": "{}",
    "env password": "{}",
    "env logged": "xoxb-{}",
    "env proxy": "{}",
    "env notes": "{}",
    "env tags": "{}",
    "env server": "{}",
    "argv flag": "{}",
    "argv assignment": "{}",
    "netrc": "{}",
    "wandb settings": "{}",
    "hugging face file": "hf_{}",
    # in what is logged
    "metric name by value": "{}",
    "metric name by form": "github_pat_{}",
    "metric text by name": "{}",
    "metric text by form": "gsk_{}",
    "metric jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{}",
    "metric basic header": "{}",
    "metric url quoted": "{}",
    "metric nested": "{}",
    "log_config value": "{}",
    "log_config name": "sk-ant-{}",
    "image caption": "xapp-{}",
    "image text": "{}",
    "table cell by column": "{}",
    "table cell by form": "r8_{}",
    "caption in a list": "npm_{}abcdefghijk",
    "html": "{}",
    "sound caption": "pplx-{}",
    "sound name": "hvs.{}",
    "sound comment": "ghp_{}",
    "cell of a frame": "{}",
    "text of an array": "glpat-{}",
    "long text": "dckr_pat_{}",
    "sample text": "{}",
    "sample by column": "{}",
    "sample name": "ya29.{}",
    "exception of an object": "{}",
    "training exception": "{}",
    "address of mlflow": "{}",
    "address of wandb": "{}",
}

SECRETS = {name: shape.format(core(name)) for name, shape in _SHAPES.items()}
"""Where it is planted -> the secret."""


@dataclasses.dataclass
class RewardService:
    """An argument that is an object, as rewards by a model have it."""

    address: str = "http://127.0.0.1:1"
    api_key: str = SECRETS["arg dataclass"]


def call(address: str, password: str) -> None:
    """Something to be called with a secret later."""


def arguments() -> dict[str, Any]:
    """The arguments that hold secrets, to be set in a job's namespace."""
    s = SECRETS
    pem = f"-----BEGIN PRIVATE KEY-----\n{s['arg pem']}MIIEvQIBADAN\n-----END PRIVATE KEY-----\n"
    return {
        "reward_api_key": s["arg by name"],
        "sglangApiKey": s["arg camel case"],
        "sglang_router": {"address": "127.0.0.1", "retry": {"auth_token": s["arg nested mapping"]}},
        "judge": argparse.Namespace(
            model="qwen", credentials=argparse.Namespace(password=s["arg nested namespace"])
        ),
        "reward_service": RewardService(),
        "reward_call": functools.partial(call, password=s["arg partial"]),
        "launch_command": ["python", "serve.py", "--api-key", s["arg command list"], "--port", "1"],
        "headers": [["Accept", "*/*"], ["X-Api-Key", s["arg header pair"]]],
        "shared_secret": s["arg bytes"].encode(),
        "extra_words": ["a", s["arg form in a list"], "b"],
        "db_password": s["arg odd characters"],
        "rm_url": f"http://reward:{s['arg userinfo']}@127.0.0.1:1/score?x=1",
        "data_address": f"https://x.blob.core.windows.net/c?sv=2024&sp=r&sig={s['arg azure sas']}&se=2030",
        "queue": f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={s['arg connection string']}==;X=y",
        "deploy_text": pem,
        "train_env_vars": json.dumps(
            {"NCCL_DEBUG": "WARN", "AWS_SECRET_ACCESS_KEY": s["arg json text"]}
        ),
        "notes_yaml": f"model: qwen\nservice:\n  password: {s['arg yaml text']}  # the test account\n",
        "pass_phrase_text": f"PASSPHRASE='{s['arg two words']}' run",
        "quota": {s["arg key of a mapping"]: 3},
        "wandb_project": f"project-{s['project']}",
        "wandb_group": f"group-{s['group']}",
        "wandb_random_suffix": True,
        "mlflow_experiment": f"experiment-{s['experiment']}",
        "swanlab_project": f"swan-{s['experiment']}",
        "tb_experiment_name": f"board-{s['experiment']}",
        "wandb_key": s["wandb_key"],
        "tracking_env": ["SLACK_BOT_VALUE", "NOTHING"],
    }


def metrics() -> dict[str, Any]:
    """A row with secrets in names and values, but for the step."""
    import numpy
    import pandas
    import wandb

    s = SECRETS
    basic = base64.b64encode(f"user:{s['metric basic header']}".encode()).decode()
    return {
        f"rollout/{s['env password']}/reward": 1.0,
        f"rollout/{s['metric name by form']}/reward": 2.0,
        "rollout/command": f"curl -H 'X-Api-Key: {s['metric text by name']}' http://127.0.0.1:1",
        "rollout/answer": f"the model said {s['metric text by form']}, and stopped",
        "rollout/jwt": s["metric jwt"],
        "rollout/basic": f"Authorization: Basic {basic}",
        "rollout/quoted": "next="
        + urllib.parse.quote(f"http://h/?password={s['metric url quoted']}", safe=""),
        "rollout/hex": f"dump {s['arg by name'].encode().hex()} end",
        "rollout/nested": {"a": [{"password": s["metric nested"]}, 1]},
        "rollout/known": f"echo of {s['arg by name']}, {s['argv flag']}, {s['netrc']}, {s['env server']}",
        "rollout/odd": f"json {json.dumps(s['arg odd characters'])}, repr {s['arg odd characters']!r}",
        "rollout/object": Unreadable(),
        "rollout/image": wandb.Image(_picture(), caption=f"sent with {s['image caption']}"),
        "rollout/picture": _picture(),
        "rollout/table": _table(),
        "rollout/images": [
            wandb.Image(_picture(), caption=f"by {s['caption in a list']}"),
            _picture(),
        ],
        "rollout/html": wandb.Html(f"<p>sent with api_key={s['html']}</p>"),
        "rollout/sound": _sound(),
        "rollout/frame": pandas.DataFrame({"prompt": ["a"], "api_key": [s["cell of a frame"]]}),
        "rollout/array": numpy.array([f"uses {s['text of an array']}"] * 100),
    }


def long_text() -> str:
    """Longer than what stands in a row: it is whole in a file of the run."""
    return f"{'so it goes ' * 100_000}{SECRETS['long text']} and {SECRETS['env by name']}"


def samples() -> list[dict[str, Any]]:
    """Samples with secrets in texts, names and columns."""
    s = SECRETS
    return [
        {
            "rollout/step": 1,
            "prompt": f"call it with api_key={s['sample text']}",
            "api_key": s["sample by column"],
            f"by {s['sample name']}": 1,
            "completion": [f"I see {s['env by name']}"],
            "reward": 0.5,
        }
    ]


class Unreadable:
    """A value whose own code fails, with a secret in its message."""

    def __float__(self) -> float:
        raise RuntimeError(f"cannot: password={SECRETS['exception of an object']}")

    item = __float__

    def __repr__(self) -> str:
        raise RuntimeError(f"cannot: password={SECRETS['exception of an object']}")


def late_config() -> dict[str, Any]:
    """Values that become known late."""
    s = SECRETS
    return {
        "engine": {"token": {"hf_token": s["log_config value"]}},
        f"server/{s['log_config name']}": "up",
        "argv": [
            "job.py",
            "--judge-api-key",
            s["argv flag"],
            f"--judge-token={s['argv assignment']}",
        ],
        "settings_of_wandb": f"echo {s['wandb settings']}",
    }


def _picture() -> Any:
    """A picture with a secret in the texts that its file carries along."""
    from PIL import Image

    picture = Image.new("RGB", (4, 4))
    picture.info["parameters"] = f"steps: 20, api_key: {SECRETS['image text']}"
    exif = picture.getexif()
    exif[0x010E] = f"api_key={SECRETS['image text']}"
    picture.info["exif"] = exif.tobytes()
    return picture


def _sound() -> Any:
    """A sound whose file has a secret in its name and another in its comment."""
    import wandb

    path = Path(tempfile.mkdtemp(dir=os.environ["GIVEN"]), f"{SECRETS['sound name']}.wav")
    note = f"by {SECRETS['sound comment']} {SECRETS['env by name']}".encode()
    path.write_bytes(b"RIFF\xff\0\0\0WAVELIST" + note + b"data\x04\0\0\0\xff\xfe\x80\x7f")
    return wandb.Audio(str(path), caption=f"with {SECRETS['sound caption']}")


def _table() -> Any:
    import wandb

    rows = [["a", SECRETS["table cell by column"], f"see {SECRETS['table cell by form']}"]]
    return wandb.Table(columns=["prompt", "api_key", "note"], data=rows)


def role_file() -> str:
    """A role file with secrets in values and a comment."""
    s = SECRETS
    return f"""\
# for the judge: password: {s["yaml comment"]}
megatron:
  - name: policy
    role: actor
    overrides:
      lr: 2e-3
      train_env_vars: {{"NCCL_DEBUG": "INFO", "OPENAI_API_KEY": "{s["yaml value by name"]}"}}
  - name: value
    role: critic
    overrides:
      lr: 5e-3  # key: {s["yaml comment"]}
      data_cache_path: /tmp/{s["yaml value by form"]}/cache
"""


def environment() -> dict[str, str]:
    """Environment variables with secrets."""
    s = SECRETS
    return {
        "HF_TOKEN": s["env token"],
        "JUDGE_API_KEY": s["env by name"],
        "PGPASSWORD": s["env password"],
        "SLACK_BOT_VALUE": s["env logged"],
        "https_proxy": f"http://user:{s['env proxy']}@127.0.0.1:1",
        "WANDB_NOTES": f"run with password={s['env notes']} and {s['env by name']}",
        "WANDB_TAGS": f"nightly,api_key={s['env tags']}",
        "JUDGE_DATABASE": f"postgres://judge:{s['env server']}@127.0.0.1:1/x",
    }


def argv() -> list[str]:
    """Flags of a command line with secrets."""
    return ["--judge-api-key", SECRETS["argv flag"], f"--judge-token={SECRETS['argv assignment']}"]


def write_home(home: Path) -> frozenset[Path]:
    """Write the files of logins below a home directory; returns their paths."""
    files = {
        ".netrc": f"machine example.org login me password {SECRETS['netrc']}\n",
        ".config/wandb/settings": f"[default]\napi_key = {SECRETS['wandb settings']}\n",
        ".cache/huggingface/token": SECRETS["hugging face file"],
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return frozenset(home / name for name in files)


def address(name: str) -> str:
    """The address of a server that is not there, with a user and a password in it."""
    return f"http://tester:{SECRETS[name]}@127.0.0.1:9"
