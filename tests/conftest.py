"""Every test runs without the variables that would point it at somebody's trackers, and leaves no session behind."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

hypothesis.settings.register_profile("same", derandomize=True, database=None)
hypothesis.settings.register_profile("explore", derandomize=False)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
"""`make test` says the same of the same code, whenever it runs; HYPOTHESIS_PROFILE=explore looks for what is new."""

pytest_plugins = ["tests.wandb_server.fixtures"]

VARIABLES = (
    "WANDB_",
    "SLIME_LOGGING_",
    "TRACKIO_",
    "MLFLOW_",
    "SWANLAB_",
    "TENSORBOARD_DIR",
    "SLURM_",
    "HF_TOKEN",
)


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path_factory.getbasetemp() / "no-netrc"))


@pytest.fixture(autouse=True)
def no_session_left() -> Iterator[None]:
    yield
    import sys

    lifetime = sys.modules.get("slime_logging.session.lifetime")
    if lifetime is not None:
        for session in list(lifetime._sessions):
            lifetime.end(session, 0)


LONG = (
    "tests/delivery/test_rewind.py::test_all_trackers",
    "tests/delivery/test_rewind.py::test_points_that_a_tracker_holds_once",
    "tests/hosts/test_relay.py",
    "tests/hosts/test_identity.py::test_workers_of_torchrun",
    "tests/hosts/test_identity.py::test_a_ray_actor",
    *(f"tests/proofs/test_{name}.py" for name in ("cli_runs", "crash_points", "kill")),
    *(f"tests/proofs/test_{name}.py" for name in ("outage", "shared", "shared_stores")),
    "tests/roles/test_oracle.py::test_overrides_are_what_the_flags_would_be[tables]",
    "tests/slime/test_patch.py::test_the_line",
    "tests/slime/test_patch.py::test_the_variable_replaces",
    "tests/slime/test_real_job.py::test_ppo",
    "tests/slime/test_statements.py",
    "tests/bench/",
)
"""Whole clusters, real jobs of other projects and hundreds of kills: marked `long`, and run by `make proofs`."""

FIRST = (
    "tests/slime/test_real_job.py",
    "tests/roles/test_oracle.py",
    "tests/docs/test_docs.py::test_what_is_written_works",
    "tests/hosts/test_clusters_page.py",
    "tests/secrets/",
    "tests/backends/",
    "tests/demo/",
    "tests/delivery/",
    "tests/test_run_object.py",
    "tests/verl/",
)
"""What takes longest begins first, so that no worker is left alone with it in the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the long ones. Tests that share a costly thing of their module (a job, a site, a browser) stay in one worker, or
    each worker would make it anew.
    """
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)
        definitions = getattr(item, "_fixtureinfo", None)
        found = definitions.name2fixturedefs.values() if definitions else ()
        shares = any(
            one.scope == "module" and one.baseid.startswith("tests")
            for many in found
            for one in many
        )
        if shares and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
