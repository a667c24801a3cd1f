"""`make docs`: a site of every page, with a search that finds them, whose links all lead somewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.xdist_group("docs")


class Page(HTMLParser):
    """What a page loads, where its links lead, and where links may lead to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("script", "img", "iframe") and "src" in found:
            self.loads.append(found["src"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "preconnect"):
            self.loads.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does, into a folder of its own; any warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(
        [*command, "--config-file", ".ci/mkdocs.yml", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_and_picture_is_there(site: Path) -> None:
    documents = {path.stem for path in (ROOT / "docs").glob("*.md")} | {"index"}
    assert documents <= {path.stem for path in site.glob("*.html")}
    for picture in (ROOT / "docs" / "images").iterdir():
        assert (site / "images" / picture.name).read_bytes() == picture.read_bytes()


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.glob("*.html") if path.name != "404.html"}
    for path, page in pages.items():
        for target in page.loads:
            assert "//" not in target, f"{path.name} loads {target}"
            assert (site / unquote(urlsplit(target).path)).is_file(), f"{path.name}: {target}"
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link in ("", "."):
                continue
            other = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            other = other / "index.html" if other.is_dir() else other
            assert other.exists(), f"{path.name}: {link}"
            if parts.fragment and other in pages:
                assert unquote(parts.fragment) in pages[other].anchors, f"{path.name}: {link}"


@pytest.mark.parametrize("words", ["log_samples", "--tracking-resume", "slime-logging report"])
def test_the_search_finds_calls_flags_and_commands(site: Path, words: str) -> None:
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    assert any(words in entry["text"] or words in entry["title"] for entry in found)
