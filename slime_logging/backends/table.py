"""Every tracker, one row each; adding one is a folder, a row here and an extra.

Policy: a tracker's folder has `backend` (the class named here) and, unless it is `memory`, `place`,
with `place(options, environ, directory)` and `address(run, place, tools)`. Nothing of a vendor is
imported to find out whether its package is there, and new enough.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from slime_logging.errors import MissingBackendError


@dataclass(frozen=True, slots=True)
class Package:
    """What a backend needs: a module, and the oldest version of its distribution that the backend
    was tried with. The extras of the same names say the same.
    """

    module: str
    distribution: str
    oldest: str


@dataclass(frozen=True, slots=True)
class Tracker:
    """A row: where the backend is, `module:class`, its package, and its vendor's variables that its
    process gets, a regular expression.
    """

    backend: str
    package: Package | None = None
    variables: str = ""


BACKENDS = {
    "wandb": Tracker(
        "slime_logging.backends.wandb.backend:WandbBackend",
        Package("wandb", "wandb", "0.24"),
        r"WANDB_(?:API_KEY|MODE|BASE_URL|ENTITY|\w+_DIR|CREDENTIALS_FILE|IDENTITY_TOKEN_FILE"
        r"|HTTP_TIMEOUT|INSECURE_DISABLE_SSL|CORE_DEBUG|X_\w+)",
    ),
    "trackio": Tracker(
        "slime_logging.backends.trackio.backend:TrackioBackend",
        Package("trackio", "trackio", "0.38"),
        r"TRACKIO_(?:DIR|SPACE_ID|SERVER_URL)",
    ),
    "tensorboard": Tracker(
        "slime_logging.backends.tensorboard.backend:TensorboardBackend",
        Package("tensorboard", "tensorboard", "2.14"),
        r"TENSORBOARD_DIR",
    ),
    "mlflow": Tracker(
        "slime_logging.backends.mlflow.backend:MlflowBackend",
        Package("mlflow", "mlflow-skinny", "2.22"),
        r"MLFLOW_(?!RUN_ID)\w+|(?:AWS|AZURE|GOOGLE|GS|DATABRICKS)_\w+",
    ),
    "swanlab": Tracker(
        "slime_logging.backends.swanlab.backend:SwanlabBackend",
        Package("swanlab", "swanlab", "0.10.3"),
        r"SWANLAB_(?!RUN_ID|RESUME|EXP_NAME|GROUP|LOG_?DIR)\w+",
    ),
    "memory": Tracker("slime_logging.backends.memory:MemoryBackend"),
}
"""By name, in the order in which they are reported; `use_<name>` switches one on."""

_COMMON_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|LD_LIBRARY_PATH|SYSTEMROOT"
    r"|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|XDG_\w+|NETRC"
    r"|PYTHON(?!PATH|STARTUP|INSPECT|WARNINGS)\w*|(?i:https?|all|no)_(?i:proxy)"
    r"|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)


def common_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that any process of ours gets: what any program needs."""
    return {name: value for name, value in environ.items() if _COMMON_VARIABLES.fullmatch(name)}


def tracker_environment(tracker: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a tracker's vendor, keys among them, for its process alone."""
    pattern = re.compile(BACKENDS[tracker].variables)
    return {name: value for name, value in environ.items() if pattern.fullmatch(name)}


def require_packages(*backends: str) -> None:
    """Return where the package of each backend that needs one is there and new enough.

    Raises:
        MissingBackendError: one is not; the message says what to install.
    """
    for backend in backends:
        if package := BACKENDS[backend].package:
            _require(backend, package)


def _require(backend: str, package: Package) -> None:
    from importlib import metadata  # tens of milliseconds that a job without trackers is spared

    if not sys.modules.get(package.module) and find_spec(package.module) is None:
        raise MissingBackendError(
            backend, f"{package.distribution} {package.oldest}", "it is not installed here"
        )
    try:
        found = metadata.version(package.distribution)
    except (
        metadata.PackageNotFoundError
    ):  # a checkout on the path, a vendored copy: its owner knows
        return
    if _numbers(found) < _numbers(package.oldest):
        raise MissingBackendError(
            backend, f"{package.distribution} {package.oldest}", f"{found} is installed here"
        )


def _numbers(version: str) -> tuple[int, ...]:
    """`0.10.3rc1` -> (0, 10, 3): what stands before the first part that is no number."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in release.group().split(".")) if release else ()
