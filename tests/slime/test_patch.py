"""The door fits each version of slime that there is: the calls that it makes, read from its own files, are ours, and
the rest of its module stays slime's."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import slime_logging
from slime_logging.slime.patch import CALLS, MODULES, is_wanted
from tests.slime.real import CPU, ONE_LINE, ROOT, VERSIONS, logging_module, needs_peers, unpack

TRACKING = {name.rpartition(".")[2] for name in MODULES}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slime")
    return {version: unpack(folder, f"slime-{version}") for version in VERSIONS}


def asked_of_tracking(tree: Path) -> set[str]:
    """The names that slime's files import from its modules of tracking, or use as their attributes."""
    names: set[str] = set()
    files = [*tree.glob("*.py"), *tree.glob("slime/**/*.py"), *tree.glob("tools/**/*.py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.ImportFrom)
                and (node.module or "").rpartition(".")[2] in TRACKING
            ):
                names |= {alias.name for alias in node.names}
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in TRACKING
            ):
                names.add(node.attr)
    return names


@needs_peers
@pytest.mark.parametrize("version", VERSIONS)
def test_every_call_of_a_version_is_one_of_ours_or_left_to_it(trees, version):
    asked = asked_of_tracking(trees[version])
    assert {"init_tracking", "log"} <= asked
    assert asked - set(CALLS) == {"configure_logger"}
    assert all(callable(getattr(slime_logging, name)) for name in CALLS)


def calls_with(tree: Path, name: str, keyword: str = "") -> list[str]:
    """The files of a version in which a function of this name is called (with this keyword)."""
    return [
        str(file.relative_to(tree))
        for file in sorted({*tree.glob("*.py"), *tree.glob("slime/**/*.py")})
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == name
        and (not keyword or keyword in {one.arg for one in node.keywords})
    ]


@needs_peers
def test_the_places_of_the_versions_are_those_that_are_documented(trees):
    """Where the line is written, what it needs, and who tells where the engines' router is."""
    text = (ROOT / "docs/slime.md").read_text()
    assert f"```python\n{ONE_LINE}```" in text
    places = {name: str(logging_module(tree).relative_to(tree)) for name, tree in trees.items()}
    assert places == {
        "v0.2.0": "slime/utils/tracking_utils.py",
        **dict.fromkeys(("v0.2.2", "v0.2.4", "v0.3.0", "v0.3.1"), "slime/utils/logging_utils.py"),
        "624b824": "slime/observability/logging_utils.py",
    }
    assert all(f"`{place}`" in text for place in places.values())
    further = "update_tracking_open_metrics"
    has_it = {name for name, tree in trees.items() if further in logging_module(tree).read_text()}
    assert has_it == {"v0.2.4", "v0.3.0"}
    told = {
        name: calls_with(tree, further) or calls_with(tree, "init_tracking", "router_addr")
        for name, tree in trees.items()
    }
    assert told == {
        "v0.2.0": ["slime/ray/rollout.py"],
        "v0.2.2": ["slime/ray/rollout.py"],
        "v0.2.4": ["train.py", "train_async.py"],
        "v0.3.0": ["train.py", "train_async.py"],
        "v0.3.1": [],
        "624b824": [],
    }


def look(tree: Path, environment: dict[str, str]) -> str:
    """Who owns each function of slime's module, in a process that imports it as slime does."""
    module = ".".join(logging_module(tree).relative_to(tree).with_suffix("").parts)
    code = f"""
        import importlib, types
        module = importlib.import_module("{module}")
        for name, value in sorted(vars(module).items()):
            if isinstance(value, types.FunctionType):
                print(name, value.__module__.partition(".")[0])
    """
    env = {**os.environ, "PYTHONPATH": f"{CPU}{os.pathsep}{tree}", **environment}
    run = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout


@needs_peers
@pytest.mark.parametrize("version", VERSIONS)
def test_the_variable_replaces_the_calls_and_nothing_else(trees, version):
    module = logging_module(trees[version])
    body = ast.parse(module.read_text()).body
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    patched = {"SLIME_LOGGING_PATCH": "1"}
    after = dict(line.split() for line in look(trees[version], patched).splitlines())
    assert {name for name in defined if after[name] == "slime_logging"} == defined & set(CALLS)
    assert {after[name] for name in defined - set(CALLS)} <= {"slime"}
    assert "init_tracking" in defined


@needs_peers
@pytest.mark.parametrize("version", VERSIONS)
def test_the_line_at_the_end_does_the_same(trees, version, tmp_path):
    copy = unpack(tmp_path, f"slime-{version}")
    with logging_module(copy).open("a") as file:
        file.write(ONE_LINE)
    found = dict(line.split() for line in look(copy, {}).splitlines())
    assert {found[name] for name in ("init_tracking", "log", "finish_tracking")} == {
        "slime_logging"
    }
    assert found.get("configure_logger", "slime") == "slime"


@pytest.mark.parametrize(
    ("text", "wanted"), [("1", True), ("true", True), ("0", False), ("", False), (None, False)]
)
def test_the_variable_switches_it(text, wanted):
    assert is_wanted(text) is wanted


def test_without_the_variable_python_starts_as_ever():
    code = "import sys; print([name for name in sys.modules if name.startswith('slime_logging')])"
    env = {name: text for name, text in os.environ.items() if name != "SLIME_LOGGING_PATCH"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (out.stdout.strip(), out.stderr) == ("[]", "")
