"""`make quick`: the fast tests of the rooms that a change touches, in under a minute.

A room of the package has its tests in the folder of the same name below `tests`. What starts real
jobs (proofs, demos, browsers, clusters) is left to `make test`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SLOW = {"proofs", "demo", "bench", "secrets", "trinity", "verl", "docs", "hosts"}
SLOW_FILES = {
    *(
        f"tests/delivery/test_{name}.py"
        for name in ("child", "environment", "follow", "supervisor")
    ),
    *(f"tests/backends/test_{name}.py" for name in ("mlflow", "swanlab", "trackio", "wandb")),
    *(f"tests/backends/test_{name}.py" for name in ("contract", "media", "place", "samples")),
    "tests/backends/test_wandb_offline.py",
    "tests/report/test_browser.py",
    "tests/slime/test_real_job.py",
}
"""Each starts vendors' clients, servers or whole jobs: minutes together."""

ALWAYS = ("tests/test_package.py", "tests/record", "tests/layout")
ROOT = Path(__file__).parents[1]


def changed_files(base: str) -> list[str]:
    """The files that differ from where the work began, those not committed yet included."""
    committed = _git("diff", "--name-only", f"{base}...HEAD")
    uncommitted = _git("status", "--porcelain").splitlines()
    return [*committed.splitlines(), *(line[3:] for line in uncommitted)]


def tests_of(files: list[str]) -> list[str]:
    """The folders and files of tests for these files of the project."""
    wanted = dict.fromkeys(ALWAYS)
    for name in files:
        parts = Path(name).parts
        if not parts or parts[0] not in ("slime_logging", "tests") or not name.endswith(".py"):
            continue
        room = parts[1].removesuffix(".py")
        for place in (f"tests/{room}", f"tests/test_{room}.py", f"tests/{parts[1]}"):
            path = ROOT / place
            is_test = path.is_dir() or path.name.startswith("test_")
            if is_test and path.exists() and room not in SLOW:
                wanted[place] = None
    return list(wanted)


def main() -> int:
    """Run them."""
    base = sys.argv[1] if len(sys.argv) > 1 else "main"
    ignored = [f"--ignore={name}" for name in sorted(SLOW_FILES)]
    chosen = tests_of(changed_files(base))
    print("tests of the change:", *chosen, flush=True)
    return subprocess.call(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "4",
            "-m",
            "not slow and not long",
            *ignored,
            *chosen,
        ],
        cwd=ROOT,
    )


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
