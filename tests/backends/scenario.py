"""The configuration and the rows that every tracker has to hold, and the writer that gets killed.

Run as a program, it opens a tracker, writes batches of rows for ever, and says after each how many were handed over.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from slime_logging.backends.base import Writer
from slime_logging.backends.process import backend_of_anyone
from slime_logging.values.json_value import Json
from slime_logging.values.row import Row
from slime_logging.values.run import RunConfig, RunFacts

START_S = 1_790_000_000.0
BATCH_ROWS = 10

ODD_VALUES: dict[str, Json] = {
    "float": 0.1,
    "int": 3,
    "zero": 0,
    "negative": -1.5,
    "true": True,
    "nan": math.nan,
    "infinity": math.inf,
    "minus_infinity": -math.inf,
    "beyond_2_53": 2**53 + 3,
    "beyond_int64": 2**70,
    "beyond_double": 10**400,
    "tiny": 5e-324,
    "text": "text",
    "empty_text": "",
    "number_text": "0.25",
    "nan_text": "NaN",
    "long_text": "x" * 10_000,
    "lines": "a\nb\r\n\tc",
    "unicode": "größer 大 \u2028 \U0001f600",
    "surrogate": "\ud800",
    "none": None,
    "list": [1, 2.5, "x", None, [True]],
    "empty_list": [],
    "nested": {"a": {"b": 1, "c": "t"}, "d": [1]},
    "empty_nested": {},
}
"""Every value that is no plain number; each as the value of a metric and, where finite, of a configuration key."""

ODD_KEYS = (
    *(
        "plain",
        "with space",
        " edge ",
        "a/b",
        "/a",
        "a/",
        "a//b",
        "a/./b",
        "a/../b",
        ".",
        "..",
        "",
        "_private",
        "__x",
    ),
    *(
        "pass@1",
        "a%b",
        "a#b",
        "a+b",
        "a=b",
        "a<b",
        "a>b",
        "a:b",
        "a;b",
        'a"b',
        "a'b",
        "a`b",
        "a\\b",
        "a|b",
        "a*b",
    ),
    *(
        "größe",
        "大",
        "a\nb",
        "a\tb",
        "a\x00b",
        "a\x7fb",
        "\ud800",
        "\U0001f600",
        "k" * 300,
        "k" * 299 + "l",
        "k" * 1000,
    ),
    *(
        "step",
        "time",
        "timestamp",
        "run",
        "project",
        "metrics",
        "_step",
        "_timestamp",
        "_runtime",
        "a~2",
        "a/text",
    ),
    *(
        "[a]",
        "{a}",
        "(a)",
        "$a",
        "a.b",
        "-a",
        "1",
        "None",
        "nan",
        "__proto__",
        "critic",
        "job",
        "config/x",
        "a~b",
    ),
)


def row(seq: int, metrics: dict[str, Json], **changes: Any) -> Row:
    """A row of the actor at its own time; `changes` are any other fields."""
    given: dict[str, Any] = {
        "journal": "p0",
        "role": "actor",
        "step_key": "train/step",
        "step": seq,
    }
    given |= {"time_s": START_S + seq * 0.25 + 0.001} | changes
    return Row(seq=seq, metrics=metrics, **given)


def odd_rows() -> list[Row]:
    """A row for each odd value and each odd key."""
    values = [
        row(1000 + number, {f"odd/{name}": value})
        for number, (name, value) in enumerate(ODD_VALUES.items())
    ]
    keys = [row(2000 + number, {key: float(number)}) for number, key in enumerate(ODD_KEYS)]
    return values + keys


def plain_rows() -> list[Row]:
    """What a job logs: four processes, three axes, a resumed one that goes back to lower steps, a fractional step."""
    rows = []
    for step in range(12):
        rows.append(row(step, {"train/loss": 1.0 / (step + 1), "train/lr": 1e-6}))
        rows.append(row(100 + step, {"train/critic-loss": 2.0 + step}, role="critic", journal="p1"))
        rows.append(
            row(
                200 + step,
                {"rollout/reward": step * 0.5},
                role=None,
                journal="p2",
                step_key="rollout/step",
            )
        )
    rows += [
        row(300 + step, {"train/loss": 9.0 + step}, step=step, journal="p0b") for step in (5, 6, 7)
    ]
    rows += [row(320 + n, {"train/entropy": n * 0.1}, step=n % 6, journal="p3") for n in range(9)]
    rows.append(
        row(310, {"eval/score": 0.5}, step_key="eval/step", step=2.5, journal="p2", role="rollout")
    )
    rows.append(row(311, {"train/a": 1.0, "train/b": 2, "train/c": "third"}, journal="p0b"))
    return rows


def config(num_keys: int = 5_000, **changes: Json) -> RunConfig:
    """A configuration of two roles with `num_keys` keys in all; `changes` are of the actor."""
    actor: dict[str, Json] = {
        f"option_{number}": number for number in range(num_keys // 2 - len(ODD_VALUES))
    }
    finite = {k: v for k, v in ODD_VALUES.items() if not isinstance(v, float) or math.isfinite(v)}
    actor |= (
        {f"odd_{name}": value for name, value in finite.items()}
        | {"lr": 1e-6, "seed": 42}
        | changes
    )
    critic = actor | {"lr": 5e-6, "only_critic": True}
    values: dict[str, Json] = actor | {f"critic/{key}": value for key, value in critic.items()}
    values |= {
        "overrides/critic/lr": {"base": 1e-6, "value": 5e-6},
        "critic/process/host": "host-1",
        "env_vars": {},
    }
    return RunConfig(values=values, roles={"actor": actor, "critic": critic})


def endless_rows(number: int) -> list[Row]:
    """The rows of one batch of the writer that gets killed."""
    return [
        row(seq, {"train/loss": float(seq), "train/note": f"n{seq % 3}"})
        for seq in range(number * BATCH_ROWS, (number + 1) * BATCH_ROWS)
    ]


def main() -> None:
    """Write until killed."""
    name, facts = sys.argv[1], json.loads(sys.argv[2])
    backend = backend_of_anyone(name)
    backend.open(
        RunFacts(**facts | {"directory": Path(facts["directory"])}), Writer(label="killed")
    )
    backend.set_config(config(200))
    number = 0
    while True:
        backend.write(endless_rows(number))
        number += 1
        print(number, flush=True)


if __name__ == "__main__":
    main()
