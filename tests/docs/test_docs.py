"""Every command and snippet of the documentation is run, and every link in it leads somewhere.

Blocks of one document run in their order, in one folder: `bash` by bash, `python` in one namespace, `yaml` with
`megatron:` as a role file.
`make` targets are checked to exist (`make -n`), `pip install` lines to name extras that there are. `console` and
`text` blocks are output.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

import slime_logging
from slime_logging.settings.options import OPTIONS, OTHER_VARIABLES

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN_LANGUAGES = {"bash", "python", "yaml"}
KNOWN_LANGUAGES = RUN_LANGUAGES | {"console", "text", "json", "diff", "mermaid"}


def blocks(document: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(document.read_text())


@pytest.mark.parametrize(
    "document",
    [pytest.param(each, marks=pytest.mark.xdist_group(f"docs-{each.name}")) for each in DOCUMENTS],
    ids=lambda p: p.name,
)
def test_what_is_written_works(document, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    namespace: dict = {"__name__": "__main__"}
    for language, text in blocks(document):
        if language == "bash":
            run_shell(text, tmp_path)
        elif language == "python":
            exec(compile(text, f"{document.name}", "exec"), namespace)
        elif language == "yaml" and "megatron:" in text:
            (tmp_path / "from_the_text.yaml").write_text(text)
            run_shell("slime-logging check from_the_text.yaml\n", tmp_path)


def run_shell(text: str, folder: Path) -> None:
    script: list[str] = []
    for line in text.splitlines():
        command = line.strip()
        if command.startswith("make "):
            check_target(command)
        elif command.startswith("pip install"):
            check_extras(command)
        else:
            script.append(line)
    run_script(script, folder)


def run_script(lines: list[str], folder: Path) -> None:
    if "".join(lines).strip():
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{lines}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def check_target(command: str) -> None:
    subprocess.run(
        ["make", "-n", *command.split("#")[0].split()[1:]],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )


def check_extras(command: str) -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for extras in re.findall(r"\[([\w,]+)\]", command):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = \[", text, re.MULTILINE), f"no extra {extra}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_every_block_says_what_it_is(document):
    fences = re.findall(r"^```(.*)$", document.read_text(), re.MULTILINE)[::2]
    assert {fence.split()[0] if fence else "" for fence in fences} <= KNOWN_LANGUAGES


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_every_document_is_reached_from_the_readme():
    text = (ROOT / "README.md").read_text()
    assert {path.name for path in DOCUMENTS[1:]} == set(re.findall(r"docs/([\w-]+\.md)", text))


def test_the_reference_names_every_public_name_and_every_flag():
    text = (ROOT / "docs" / "reference.md").read_text()
    for name in slime_logging.__all__:
        assert f"`{name}" in text, name
    for option in OPTIONS:
        assert f"`{option.flag}" in text, option.flag
    variables = {name for option in OPTIONS for name in option.variables}
    for name in (*variables, *OTHER_VARIABLES):
        assert f"`{name}" in text, name


def test_the_reference_names_every_command():
    import typer.main

    from slime_logging.cli.app import app

    text = (ROOT / "docs" / "reference.md").read_text()
    for name in typer.main.get_command(app).commands:
        assert f"`slime-logging {name}" in text, name


def test_every_flag_of_the_reference_exists():
    parser = slime_logging.add_tracking_arguments(ArgumentParser())
    flags = {flag for action in parser._actions for flag in action.option_strings}
    text = (ROOT / "docs" / "reference.md").read_text()
    assert (
        set(re.findall(r"`(--(?:wandb|tb|tracking|use|mlflow|swanlab|disable-wandb)[\w-]*)", text))
        <= flags
    )
