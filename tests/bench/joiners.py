"""A process that joins a run, and says what that took: `python -m tests.bench.joiners NAME ARGUMENTS_FILE DIRECTORY`.

The answer is one JSON line: seconds of the import and of the call, and the bytes that both added, of this process and
of those that it started. The arguments (873 names) are read before the clock starts, as slime's actors get theirs.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

Join = Callable[[Namespace, Path], object]


def ours() -> Join:
    """A role joins the run of a primary that delivers for it."""
    import slime_logging

    return lambda args, _: slime_logging.init_tracking(args, primary=False, role="critic")


def wandb() -> Join:
    """`wandb.init`, offline, with the same arguments as its configuration."""
    import wandb as client

    settings = client.Settings(silent=True, console="off")
    return lambda args, directory: client.init(
        mode="offline", dir=str(directory), project="bench", config=_plain(args), settings=settings
    )


JOINERS: dict[str, Callable[[], Join]] = {"ours": ours, "wandb": wandb}


def _plain(args: Namespace) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(args).items()
        if isinstance(value, (int, float, str, list, dict))
    }


def _num_bytes() -> int:
    """Resident bytes of this process and its descendants, from /proc, so that nothing is loaded for it."""
    page = os.sysconf("SC_PAGE_SIZE")
    pids, total = [os.getpid()], 0
    while pids:
        pid = pids.pop()
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                pids += map(int, children.read_text().split())
        except OSError:
            continue
    return total


def main() -> None:
    """Join once, answer, and leave without a farewell: the end is not measured."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with Path(sys.argv[2]).open("rb") as file:
        args = pickle.load(file)
    before_bytes, started = _num_bytes(), time.perf_counter()
    join = JOINERS[sys.argv[1]]()
    imported, imported_bytes = time.perf_counter(), _num_bytes()
    call_from = time.perf_counter()
    join(args, Path(sys.argv[3]))
    joined = time.perf_counter()
    after_bytes = _num_bytes()
    answer = {
        "import_s": imported - started,
        "join_s": joined - call_from,
        "bytes": after_bytes - before_bytes,
        "join_bytes": after_bytes - imported_bytes,
    }
    print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
