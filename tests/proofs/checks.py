"""What every proof asks of a run at its end."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from typer.testing import CliRunner

from slime_logging.cli.app import app
from slime_logging.delivery.status import journal_rows
from slime_logging.delivery.verify import Verdict, verify
from slime_logging.record.run import RunDirectory

FIGURES = os.environ.get("SLIME_LOGGING_PROOF_FIGURES")
"""A file that gets a line for each check, for the table in docs/guarantees.md."""


def sync(directory: Path, *options: str) -> str:
    """`slime-logging sync`; it must end well."""
    result = CliRunner().invoke(app, ["sync", str(directory), "--timeout", "60", *options])
    assert result.exit_code == 0, f"{result.output}{result.exception or ''}"
    return result.output


def verdict(directory: Path, tracker: str, **options: object) -> Verdict:
    """What `slime-logging verify` finds."""
    run = RunDirectory(directory)
    file = run.read()
    return verify(run, tracker, file.facts(run.path, {**file.options, **options}))


def assert_equal(directory: Path, tracker: str, **options: object) -> Verdict:
    """The tracker holds every row and key of the journals, once."""
    found = verdict(directory, tracker, **options)
    numbers = (len(found.missing), len(found.doubled), len(found.unknown), found.config)
    assert numbers == (0, 0, 0, ()), (
        f"{tracker}: missing, doubled, unknown, config: {numbers}; of {found.num_rows} rows"
    )
    note(f"{tracker}: {found.num_rows} rows, {found.num_keys} keys equal")
    return found


def assert_acknowledged_once(directory: Path, acknowledged: set[tuple[int, int]]) -> None:
    """Every acknowledged row is in the journals, and no row is there twice."""
    rows = Counter(
        (int(row.metrics["train/who"]), int(row.step))
        for row in journal_rows(RunDirectory(directory))
    )
    assert not acknowledged - set(rows)
    assert not [row for row, number in rows.items() if number > 1]
    note(f"{len(acknowledged)} acknowledged, {len(rows)} in journals")


def note(text: str) -> None:
    """Write a figure down, where figures are asked for."""
    if FIGURES:
        with Path(FIGURES).open("a") as file:
            file.write(f"{os.environ.get('PYTEST_CURRENT_TEST', '')}: {text}\n")
