"""Where a person looks at a run, by tracker and by where its rows go."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from slime_logging.backends.place import Address, address_of
from slime_logging.values.run import RunFacts


def run(tmp_path: Path, **options: object) -> RunFacts:
    return RunFacts(
        run_id="ab c",
        project="my project",
        name="n",
        group=None,
        directory=tmp_path / "a b" / "ab c",
        created_s=0.0,
        axes={},
        options=options,
    )


@pytest.mark.parametrize("tracker", ["wandb", "trackio", "tensorboard", "mlflow", "swanlab"])
def test_a_local_tracker_has_a_command_that_can_be_pasted(tracker: str, tmp_path: Path) -> None:
    address = address_of(tracker, run(tmp_path), {})
    assert address is not None
    words = shlex.split(address.command)
    assert any(str(tmp_path / "a b") in word for word in words)
    assert tracker in words[0] or tracker in words[1]


@pytest.mark.parametrize(
    ("tracker", "options", "environ", "place"),
    [
        (
            "wandb",
            {"wandb_mode": "online", "wandb_team": "us"},
            {},
            "https://wandb.ai/us/my%20project/runs/ab%20c",
        ),
        (
            "wandb",
            {"wandb_mode": "online"},
            {"WANDB_BASE_URL": "http://me:pw@own.host:8080/"},
            "http://own.host:8080 (project my project, run ab c)",
        ),
        ("mlflow", {"mlflow_tracking_uri": "http://u:p@h:5000/x?token=t"}, {}, "http://h:5000/x"),
        (
            "swanlab",
            {"swanlab_mode": "cloud"},
            {},
            "https://swanlab.cn (project my project, run ab c)",
        ),
    ],
)
def test_a_servers_page_has_no_secret_in_its_address(
    tracker: str, options: dict[str, str], environ: dict[str, str], place: str, tmp_path: Path
) -> None:
    assert address_of(tracker, run(tmp_path, **options), environ) == Address(place=place)


def test_what_shows_nothing_has_none(tmp_path: Path) -> None:
    assert address_of("memory", run(tmp_path), {}) is None
