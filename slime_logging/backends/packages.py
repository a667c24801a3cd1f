"""The vendors' packages: whether each is there, and new enough; nothing is imported to find out."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from slime_logging.errors import MissingBackendError


@dataclass(frozen=True, slots=True)
class Package:
    """What a backend needs: a module, and the oldest version of its distribution that the backend
    was tried with.
    """

    module: str
    distribution: str
    oldest: str


PACKAGES = {
    "wandb": Package("wandb", "wandb", "0.24"),
    "trackio": Package("trackio", "trackio", "0.38"),
    "tensorboard": Package("tensorboard", "tensorboard", "2.14"),
    "mlflow": Package("mlflow", "mlflow-skinny", "2.22"),
    "swanlab": Package("swanlab", "swanlab", "0.10.3"),
}
"""By backend; the same as the extras say. `memory` needs none."""


def require_packages(*backends: str) -> None:
    """Return where the package of each backend that needs one is there and new enough.

    Raises:
        MissingBackendError: one is not; the message says what to install.
    """
    for backend in backends:
        if backend in PACKAGES:
            _require(backend, PACKAGES[backend])


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
